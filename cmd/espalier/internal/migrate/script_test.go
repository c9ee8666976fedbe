package migrate_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/migrate"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"espalier": command.Main})
}

func TestScripts(t *testing.T) {
	needsCompiler(t)
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := peerModule()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: migrate.Updates(),
		Setup: func(env *testscript.Env) error {
			env.Setenv("ESPALIER", root)
			env.Setenv("PEER", theirs)
			return passGo(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"fixture": fixtureCommand, "module": moduleCommand, "exits": exitsCommand,
		},
	})
}

// passGo has the go command of a script use the caches of this one.
func passGo(env *testscript.Env) error {
	for name := range strings.FieldsSeq("GOCACHE GOMODCACHE GOPROXY GONOSUMDB GOSUMDB GOFLAGS GOTOOLCHAIN") {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return err
		}
		env.Setenv(name, string(out[:len(out)-1]))
	}
	// The user's cache, with the peer.
	env.Setenv("HOME", os.Getenv("HOME"))
	return nil
}

// fixture NAME FOLDER copies a folder of testdata.
func fixtureCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fixture NAME FOLDER")
	}
	// The working directory of this process is the folder of the package.
	ts.Check(copyFixture(args[0], ts.MkAbs(args[1])))
}

// module NAME FOLDER writes go.mod and go.sum of a module that uses the peer.
func moduleCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: module NAME FOLDER")
	}
	ts.Check(writeModuleFiles(ts.MkAbs(args[1]), args[0]))
}

// exits CODE PROGRAM [ARGUMENT...] wants a program to end with an exit code.
func exitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	failed := &exec.ExitError{}
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s has the exit code %d, want %d", filepath.Base(args[1]), got, want)
	}
}

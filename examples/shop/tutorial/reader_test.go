package tutorial

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// root is the folder of the module that the page is about.
const root = "../../.."

// reader is somebody who follows the page in a folder of his own. What he downloads comes from this repository and from
// the module cache.
type reader struct {
	t *testing.T
	// root is the folder of this repository.
	root string
	// dir is the folder that he is in.
	dir string
	// bin is where he installs programs.
	bin string
	// kubeconfig is empty until he needs a cluster.
	kubeconfig string
	env        []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, root: absolute, dir: home, bin: bin}
	r.env = append(os.Environ(),
		"GOBIN="+bin, "GOWORK=off", "GOFLAGS=-ldflags=-w -vet=off", "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return r
}

// write writes the file of a go block, or compares it with the block.
func (r *reader) write(at string, block block) {
	r.t.Helper()
	name, shows := strings.CutPrefix(block.argument, "shows ")
	file := filepath.Join(r.dir, filepath.FromSlash(name))
	if shows {
		content, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(content), block.content) {
			r.t.Fatalf("%s: %s has other content (%v)\n%s", at, name, err, content)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(block.content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// offline are commands that would download something, and what gives the same from this repository and the module
// cache.
var offline = map[string]string{
	"go get github.com/espalier-dev/espalier@latest": `
		go mod edit -require github.com/espalier-dev/espalier@v0.0.0 -replace github.com/espalier-dev/espalier=$ROOT
		cp $ROOT/go.sum .`,
	"go install sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0": `
		go -C $ROOT/hack/tools list -m sigs.k8s.io/controller-tools | grep -qx "sigs.k8s.io/controller-tools v0.23.0"
		go -C $ROOT/hack/tools build -o $GOBIN/ sigs.k8s.io/controller-tools/cmd/controller-gen`,
}

// run runs a sh block and returns what it has printed. The folder that it ends in is that of the next block.
func (r *reader) run(at string, block block) string {
	r.t.Helper()
	folder := filepath.Join(r.t.TempDir(), "folder")
	script := "set -e\n" + block.content + "pwd >" + folder + "\n"
	for command, instead := range offline {
		script = strings.ReplaceAll(script, command, strings.ReplaceAll(instead, "$ROOT", r.root))
	}
	output, err := r.command(script).CombinedOutput()
	if fails := block.argument == "fails"; fails != (err != nil) {
		r.t.Fatalf("%s: the commands have ended with %v\n%s", at, err, output)
	}
	if err == nil {
		dir, err := os.ReadFile(folder)
		if err != nil {
			r.t.Fatal(err)
		}
		r.dir = strings.TrimSpace(string(dir))
	}
	return string(output)
}

func (r *reader) command(script string) *exec.Cmd {
	command := exec.CommandContext(r.t.Context(), "sh", "-c", script)
	command.Dir, command.Env = r.dir, r.env
	return command
}

// runOnCluster is run for a block that needs an API server. It tries until the commands succeed.
func (r *reader) runOnCluster(at string, block block) string {
	r.t.Helper()
	var output []byte
	err := demo.Eventually(r.t.Context(), time.Minute, func(context.Context) error {
		var err error
		output, err = r.command("set -e\n" + block.content).CombinedOutput()
		return err
	})
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", at, err, output)
	}
	return string(output)
}

// leaveRunning starts a command that ends with the test.
func (r *reader) leaveRunning(at string, block block) {
	r.t.Helper()
	command := r.command("exec " + block.content)
	// The command may start others, they end with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		r.t.Fatalf("%s: %v", at, err)
	}
	r.t.Cleanup(func() {
		if err := syscall.Kill(-command.Process.Pid, syscall.SIGKILL); err != nil {
			r.t.Errorf("%s: %v", at, err)
		}
		_ = command.Wait() // it was killed
		if r.t.Failed() {
			r.t.Logf("%s has printed\n%s", at, &output)
		}
	})
}

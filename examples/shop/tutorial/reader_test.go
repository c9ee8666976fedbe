package tutorial

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
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
	env []string
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
		"GOBIN="+bin, "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -ldflags=-w -vet=off",
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
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

// instead are commands that would download something, and what gives the same from this repository and the module
// cache. When it is interrupted, "go run" fails, whatever the program does.
var instead = map[string]string{
	"go get github.com/espalier-dev/espalier@latest": `
		go mod edit -require github.com/espalier-dev/espalier@v0.0.0 -replace github.com/espalier-dev/espalier=$ROOT
		cp $ROOT/go.sum .`,
	"go run ./dev": "go build -o $GOBIN/dev ./dev && exec $GOBIN/dev",
	"go install github.com/espalier-dev/espalier/hack/kubectl@latest": "go -C $ROOT/hack/kubectl build -o $GOBIN/ .",
	"go install sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0": `
		go -C $ROOT/hack/tools list -m sigs.k8s.io/controller-tools | grep -qx "sigs.k8s.io/controller-tools v0.23.0"
		go -C $ROOT/hack/tools build -o $GOBIN/ sigs.k8s.io/controller-tools/cmd/controller-gen`,
}

// run runs a sh block and returns what it has printed. The folder that it ends in is that of the next block.
func (r *reader) run(at string, block block) string {
	r.t.Helper()
	folder := filepath.Join(r.t.TempDir(), "folder")
	script := "set -e\n" + block.content + "pwd >" + folder + "\n"
	output, err := printed(r.command(script))
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
	return output
}

// printed returns what a command prints. The error has what it says on its standard error output, such as what Go
// downloads.
func printed(command *exec.Cmd) (string, error) {
	said := &bytes.Buffer{}
	command.Stderr = said
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, said)
	}
	return string(output), err
}

func (r *reader) command(script string) *exec.Cmd {
	for command, instead := range instead {
		script = strings.ReplaceAll(script, command, strings.ReplaceAll(instead, "$ROOT", r.root))
	}
	command := exec.CommandContext(r.t.Context(), "sh", "-c", script)
	command.Dir, command.Env = r.dir, r.env
	return command
}

// runOnCluster is run for a block that needs an API server. It tries until the commands succeed.
func (r *reader) runOnCluster(at string, block block) string {
	r.t.Helper()
	var output string
	err := demo.Eventually(r.t.Context(), demo.Patience, func(context.Context) error {
		var err error
		output, err = printed(r.command("set -e\n" + block.content))
		return err
	})
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", at, err, output)
	}
	return output
}

// leaveRunning starts a command that ends with the test, has the following ones use its kubeconfig, and returns what it
// has printed.
func (r *reader) leaveRunning(block block) string {
	r.t.Helper()
	kubeconfig, printed := demotest.StartWithKubeconfig(r.t, r.command(block.content))
	r.env = append(r.env, "KUBECONFIG="+kubeconfig)
	return printed()
}

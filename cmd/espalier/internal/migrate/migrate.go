// Package migrate moves the Go code of a module to the packages of Espalier: from reconciler.io/runtime, from
// component-operator-runtime, and from older names of the packages.
//
// It works in three steps. A [Plan] is made from type-checked packages, and nothing is written. Its files are then
// recorded in a folder of the module, the journal, and put in place one by one. A run that is interrupted after the
// journal is complete is finished by the next one.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is the path of the module that code is moved to.
const Module = "github.com/espalier-dev/espalier"

// Options say what is moved, and how.
type Options struct {
	// Folder is where the patterns start. It must be in a module.
	Folder string
	// Patterns are those of packages as the go command knows them; the default is "./...". Their files are changed.
	Patterns []string
	// Tags are build tags that hold, in addition to those that the files themselves ask for.
	Tags []string
	// Version is the version of Espalier that go.mod is to require.
	Version string
	// Replace is a folder with a checkout of Espalier that go.mod is to use instead of a version.
	Replace string
	// Force goes on although the code does not compile. What cannot be told without types is left as it is.
	Force bool
	// SkipTidy leaves "go mod tidy" and the check that the outcome compiles to the user.
	SkipTidy bool

	// buildFlags are those of the go command besides the tags.
	buildFlags []string
}

// ErrUnfinished is the error of a folder with the journal of a run that was interrupted. [Finish] finishes it.
var ErrUnfinished = errors.New("a migration was interrupted")

// ErrUnchanged is the error of a plan of which nothing was written.
var ErrUnchanged = errors.New("nothing was changed")

// NewPlan returns what there is to do. It writes nothing.
func NewPlan(ctx context.Context, o Options) (*Plan, error) {
	root, err := moduleRoot(ctx, o.Folder)
	if err != nil {
		return nil, err
	}
	if hasJournal(root) {
		return nil, fmt.Errorf("%s: %w", root, ErrUnfinished)
	}
	loaded, err := load(ctx, root, o)
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		Root: root, skipTidy: o.SkipTidy,
		// Programs that read the report get lists.
		Files: []Change{}, Remaining: []Remaining{}, Findings: []Finding{}, Unseen: []Unseen{}, Left: []string{},
		Broken: []string{},
	}
	if err := plan.addSources(loaded, o.Force); err != nil {
		return nil, err
	}
	plan.addFindings(loaded)
	if len(plan.Files) == 0 {
		return plan, nil
	}
	if err := plan.addModuleFile(loaded, o); err != nil {
		return nil, err
	}
	return plan, nil
}

// Write writes the files of the plan, and has the go command complete go.mod. The outcome is then loaded again: what
// does not compile is added to the plan. Unless the error is [ErrUnchanged], the plan is the report of what was done.
func (p *Plan) Write(ctx context.Context, o Options) error {
	if len(p.Files) == 0 {
		return nil
	}
	p.follow()
	if err := newJournal(p); err != nil {
		return fmt.Errorf("%w: %w", ErrUnchanged, err)
	}
	finished, err := Finish(ctx, o)
	if finished != nil {
		p.Left, p.Broken = finished.Left, finished.Broken
	}
	return err
}

// Finish puts the files of a journal in place, has the go command complete go.mod, removes the journal, and loads the
// outcome. It returns the plan that the journal is of, also with an error, unless it is that of reading the journal.
func Finish(ctx context.Context, o Options) (*Plan, error) {
	root, err := moduleRoot(ctx, o.Folder)
	if err != nil {
		return nil, err
	}
	j, err := readJournal(root)
	if err != nil {
		return nil, err
	}
	if err := j.finish(os.Rename); err != nil {
		return j.Plan, err
	}
	if j.SkipTidy {
		return j.Plan, j.remove()
	}
	if err := runGo(ctx, root, "mod", "tidy"); err != nil {
		return j.Plan, fmt.Errorf("the files are changed, but go.mod is not complete; mend it, and run this again: %w",
			err)
	}
	if err := j.remove(); err != nil {
		return j.Plan, err
	}
	if exists(filepath.Join(root, "vendor", "modules.txt")) {
		j.Plan.Left = append(j.Plan.Left, "vendor: run \"go mod vendor\"")
		o.buildFlags = []string{"-mod=readonly"}
	}
	loaded, err := load(ctx, root, o)
	if err != nil {
		return j.Plan, err
	}
	j.Plan.Broken = append([]string{}, loaded.errors...)
	return j.Plan, nil
}

// moduleRoot returns the folder of the module that the folder is in.
func moduleRoot(ctx context.Context, folder string) (string, error) {
	command := exec.CommandContext(ctx, "go", "env", "GOMOD")
	command.Dir = folder
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD in %s: %w", folder, err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", fmt.Errorf("%s is not in a Go module: there is no go.mod there or above", folder)
	}
	return filepath.Dir(file), nil
}

func runGo(ctx context.Context, folder string, arguments ...string) error {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s",
			strings.Join(arguments, " "), folder, err, strings.TrimSpace(string(out)))
	}
	return nil
}

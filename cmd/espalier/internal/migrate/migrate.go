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
}

// ErrUnfinished is the error of a folder with the journal of a run that was interrupted. [Finish] finishes it.
var ErrUnfinished = errors.New("a migration was interrupted")

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
// does not compile is added to the plan.
func (p *Plan) Write(ctx context.Context, o Options) error {
	if len(p.Files) == 0 {
		return nil
	}
	if err := newJournal(p); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := Finish(ctx, p.Root); err != nil {
		return err
	}
	p.follow()
	if o.SkipTidy {
		return nil
	}
	loaded, err := load(ctx, p.Root, o)
	if err != nil {
		return err
	}
	p.Broken = loaded.errors
	return nil
}

// Finish puts the files of a journal in place, has the go command complete go.mod, and removes the journal.
func Finish(ctx context.Context, folder string) error {
	root, err := moduleRoot(ctx, folder)
	if err != nil {
		return err
	}
	j, err := readJournal(root)
	if err != nil {
		return err
	}
	if err := j.finish(os.Rename); err != nil {
		return err
	}
	if !j.SkipTidy {
		if err := runGo(ctx, root, "mod", "tidy"); err != nil {
			return fmt.Errorf("the files are changed, but go.mod is not complete; mend it, and run this again: %w", err)
		}
	}
	return j.remove()
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

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/migrate"
)

// The exit codes of migrate besides 0 and 1.
const (
	exitByHand  = 2
	exitChanges = 3
)

func newMigrate() *cobra.Command {
	o, dry, output := migrate.Options{}, false, ""
	c := &cobra.Command{
		Use:   "migrate [PACKAGES or FOLDER]",
		Short: "Move the code of an operator to Espalier",
		Long: `Move the Go code of an operator to Espalier.

It comes from reconciler.io/runtime, whose names are the same here, or from
component-operator-runtime: names with a counterpart are changed, and the others
are listed with what to use instead. The command type-checks the packages, with
their tests and with the files that build tags hide, so only real imports and
names change. Modules below are left alone, and so is what is no Go code. go.mod
requires the version of Espalier that this program is of, and the other module no
more if nothing needs it. By default all packages below the current folder change.

The report has each place whose behavior may differ, with what to check, and in
the end the differences that code does not show.

Nothing is written if the code does not compile before. Each file is replaced as a
whole. If a run is interrupted, the next one finishes it, and if all is done, it
says so.

The exit code is 0 if nothing is left but to read the report, 1 if the command
failed, 2 if something has to be changed by hand, and 3 if --dry-run has changes.`,
		Example: `  # see what would change, and what to check
  espalier migrate --dry-run

  # change it
  espalier migrate

  # use a checkout, and keep the report
  espalier migrate --replace ../espalier -o json > report.json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output is %q, and must be json or left out", output)
			}
			if err := complete(&o, args); err != nil {
				return err
			}
			plan, err := runMigrate(c.Context(), c.ErrOrStderr(), o, dry)
			if plan == nil {
				return err
			}
			// What has changed is said also if the run fails.
			if err := errors.Join(err, writePlan(c.OutOrStdout(), plan, dry, output)); err != nil {
				return err
			}
			return leftBy(plan, dry)
		},
	}
	addMigrateFlags(c.Flags(), &o)
	flags := c.Flags()
	flags.BoolVar(&dry, "dry-run", false, "print the changes as a unified diff, and the report, and write nothing")
	flags.StringVarP(&output, "output", "o", "", "json prints the report as JSON")
	return c
}

func addMigrateFlags(flags *pflag.FlagSet, o *migrate.Options) {
	flags.StringSliceVar(&o.Tags, "tags", nil, "build tags, in addition to those that files ask for")
	flags.StringVar(&o.Version, "version", libraryVersion(), "the version of Espalier that go.mod is to require")
	flags.StringVar(&o.Replace, "replace", "", "the folder of a checkout of Espalier that go.mod is to use")
	flags.BoolVar(&o.Force, "force", false, "go on although the code does not compile")
	flags.BoolVar(&o.SkipTidy, "skip-tidy", false, "do not run go mod tidy, nor see whether the outcome compiles")
}

// leftBy returns an error with an exit code that says what a plan leaves to do, or nil.
func leftBy(plan *migrate.Plan, dry bool) error {
	switch {
	case dry && len(plan.Files) > 0:
		return &exitError{code: exitChanges}
	case len(plan.Remaining)+len(plan.Broken) > 0:
		return &exitError{code: exitByHand}
	}
	return nil
}

// complete takes the folder and the patterns from the arguments. One that is the folder of a module is that module.
func complete(o *migrate.Options, args []string) (err error) {
	if o.Folder, err = os.Getwd(); err != nil {
		return err
	}
	o.Patterns = args
	if len(args) == 1 {
		if _, err := os.Stat(filepath.Join(args[0], "go.mod")); err == nil {
			if o.Folder, err = filepath.Abs(args[0]); err != nil {
				return err
			}
			o.Patterns = nil
		}
	}
	// The go command and this program may see the folder by different names.
	if o.Folder, err = filepath.EvalSymlinks(o.Folder); err != nil {
		return err
	}
	if o.Replace != "" && o.Version != libraryVersion() {
		return errors.New("--version and --replace exclude each other")
	}
	return nil
}

// runMigrate finishes what an earlier run has left, or makes the plan and carries it out. With an error, the plan is
// that of what has begun, or nil.
func runMigrate(ctx context.Context, notes io.Writer, o migrate.Options, dry bool) (*migrate.Plan, error) {
	plan, err := migrate.NewPlan(ctx, o)
	if errors.Is(err, migrate.ErrUnfinished) && !dry {
		fmt.Fprintln(notes, "Finishing a migration that was interrupted.")
		return migrate.Finish(ctx, o)
	}
	if err != nil || dry {
		return plan, err
	}
	err = plan.Write(ctx, o)
	if errors.Is(err, migrate.ErrUnchanged) {
		return nil, err
	}
	return plan, err
}

func writePlan(out io.Writer, plan *migrate.Plan, dry bool, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(plan)
	}
	if dry {
		diff, err := plan.Diff()
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, diff); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, plan.Report(dry))
	return err
}

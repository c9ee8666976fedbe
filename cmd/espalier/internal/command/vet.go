package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/espalier-dev/espalier/cmd/espalier/vet"
)

func newVet() *cobra.Command {
	return &cobra.Command{
		Use:   "vet [FLAGS] [PACKAGES]",
		Short: "Find what compiles and goes wrong in a cluster",
		Long: `Find what compiles and goes wrong in a cluster, in packages that use Espalier.

Packages are named as for the go command, and are looked at with their tests.
Without packages it looks at that of the current folder. -json prints findings as
JSON, -tags are the build tags, -desired=false leaves an analyzer out, and -desired
runs that one alone. The exit code is 1 if something was found, and 0 with -json.`,
		Example:            "  espalier vet ./...",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if slices.Contains(args, "-h") || slices.Contains(args, "--help") {
				return c.Help()
			}
			options, err := parseVet(args)
			if err != nil {
				return err
			}
			return runVet(c.Context(), options, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
}

// vetOptions are what the arguments of the command say.
type vetOptions struct {
	analyzers []*analysis.Analyzer
	packages  []string
	tags      string
	json      bool
}

// parseVet reads flags as those of go vet are written, with one dash or two.
func parseVet(args []string) (vetOptions, error) {
	var options vetOptions
	flags := flag.NewFlagSet("espalier vet", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&options.json, "json", false, "")
	flags.StringVar(&options.tags, "tags", "", "")
	asked := map[string]bool{}
	only := false
	all := slices.Concat(vet.Analyzers, vet.Heuristics)
	for _, analyzer := range all {
		flags.BoolFunc(analyzer.Name, "", func(value string) error {
			on, err := strconv.ParseBool(value)
			asked[analyzer.Name] = on
			only = only || on
			return err
		})
	}
	if err := flags.Parse(args); err != nil {
		return options, err
	}
	for _, analyzer := range all {
		on, ok := asked[analyzer.Name]
		if on || !ok && !only && slices.Contains(vet.Analyzers, analyzer) {
			options.analyzers = append(options.analyzers, analyzer)
		}
	}
	options.packages = flags.Args()
	return options, nil
}

// vetMode has types of dependencies read from what the compiler writes for importers, which the go command caches.
const vetMode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule |
	packages.NeedForTest

// runVet prints findings to errOut, as go vet does, or as JSON to out.
func runVet(ctx context.Context, options vetOptions, out, errOut io.Writer) error {
	config := &packages.Config{Context: ctx, Mode: vetMode, Tests: true}
	if options.tags != "" {
		config.BuildFlags = []string{"-tags=" + options.tags}
	}
	loaded, err := packages.Load(config, options.packages...)
	if err != nil {
		return fmt.Errorf("load packages: %w", err)
	}
	if failures := failuresOf(loaded); len(failures) > 0 {
		for _, failure := range failures {
			fmt.Fprintln(errOut, failure)
		}
		return fmt.Errorf("nothing was looked at, since the packages have errors: %d", len(failures))
	}
	graph, err := checker.Analyze(options.analyzers, withTests(loaded), nil)
	if err != nil {
		return err
	}
	found := 0
	for action := range graph.All() {
		if action.Err != nil {
			return fmt.Errorf("%s of %s: %w", action.Analyzer.Name, action.Package.PkgPath, action.Err)
		}
		if action.IsRoot {
			found += len(action.Diagnostics)
		}
	}
	switch {
	case options.json:
		return graph.PrintJSON(out)
	case found == 0:
		return nil
	}
	if err := graph.PrintText(errOut, -1); err != nil {
		return err
	}
	return fmt.Errorf("findings: %d", found)
}

// failuresOf returns what kept packages from being loaded, each once: a package and that of its tests have it both.
func failuresOf(loaded []*packages.Package) []string {
	failures := map[string]bool{}
	for _, pkg := range loaded {
		for _, err := range pkg.Errors {
			failures[strings.TrimPrefix(err.Error(), "-: ")] = true
		}
	}
	return slices.Sorted(maps.Keys(failures))
}

// withTests leaves each package out that is there once more, with the files of its tests.
func withTests(loaded []*packages.Package) []*packages.Package {
	tested := map[string]bool{}
	for _, pkg := range loaded {
		tested[pkg.ForTest] = tested[pkg.ForTest] || pkg.ForTest == pkg.PkgPath
	}
	return slices.DeleteFunc(loaded, func(pkg *packages.Package) bool {
		return pkg.ForTest == "" && tested[pkg.PkgPath]
	})
}

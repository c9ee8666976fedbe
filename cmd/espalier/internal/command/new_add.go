package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold"
)

// addTo adds a root to a project of Kubebuilder, and says what is left to do.
func (o *newOptions) addTo(c *cobra.Command, dir string) error {
	if o.force {
		return fmt.Errorf("--force is not for --add, which leaves what is there")
	}
	existing, err := scaffold.ReadExisting(dir)
	if err != nil {
		return err
	}
	complete, err := existing.Complete(o.Options)
	if err != nil {
		return err
	}
	addition, err := existing.Add(complete)
	if err != nil {
		return err
	}
	if err := addition.Files.WriteNew(dir); err != nil {
		return err
	}
	out := &strings.Builder{}
	fmt.Fprintln(out, "Added:")
	for _, name := range slices.Sorted(maps.Keys(addition.Files)) {
		fmt.Fprintln(out, "    "+name)
	}
	section(out, "Add to the imports of main.go:", addition.Imports...)
	section(out, "Add to its function init:", addition.Scheme)
	section(out, "Add to its function main, before the manager starts:", strings.Split(addition.SetUp, "\n")...)
	section(out, "Then run:", addition.Get, "go mod tidy", "make generate manifests")
	_, err = fmt.Fprint(c.OutOrStdout(), out)
	return err
}

func section(out *strings.Builder, title string, lines ...string) {
	fmt.Fprintf(out, "\n%s\n\n", title)
	for _, line := range lines {
		fmt.Fprintln(out, "    "+line)
	}
}

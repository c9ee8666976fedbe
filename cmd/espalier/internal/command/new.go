package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold"
)

// newOptions are what the flags of "espalier new" say besides the options of the project.
type newOptions struct {
	scaffold.Options
	headerFile string
	force      bool
	add        bool
	skipTidy   bool
}

func newNew() *cobra.Command {
	o := &newOptions{}
	c := &cobra.Command{
		Use:   "new DIR --group GROUP --kind KIND",
		Short: "Start the project of an operator, or of a plugin",
		Long: `Start the project of an operator, in a folder that is new or empty.

The project builds, tests and runs at once: "make run" runs it on a cluster in its
process, and "make test" runs its tests. The resources of its kind each have a
Deployment by a tree of nodes; with --component they are components, made by
code, by a Helm chart, or by a kustomization.

With --add, a root is put into a project of Kubebuilder, next to what is there:
the folder is that of its PROJECT file. No file is changed. The command says what
it adds, and which lines to add to main.go.

With --plugin, it is the project of a plugin: a program that says which objects
fulfil a capability, and that is released apart from the operators that use it.`,
		Example: `  # a project, and then its operator on a cluster in its process
  espalier new shop --group shop.example.com --kind Shop
  make -C shop run

  # components from a Helm chart, with a webhook, for a resource without namespaces
  espalier new portal --group portal.example.com --kind Portal --component chart --namespaced=false --validating-webhook

  # one more kind for a project of Kubebuilder
  espalier new . --add --group shop --version v1 --kind Branch

  # a plugin for the capability postgres of the category database
  espalier new postgres --plugin database/postgres`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.checkPlugin(c.Flags()); err != nil {
				return err
			}
			if err := o.read(args[0]); err != nil {
				return err
			}
			if o.add {
				return o.addTo(c, args[0])
			}
			return o.create(c, args[0])
		},
	}
	o.addFlags(c.Flags())
	return c
}

func (o *newOptions) addFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&o.Group, "group", "", "the API group, such as shop.example.com")
	flags.StringVar(&o.Version, "version", "v1alpha1", "the version of the API")
	flags.StringVar(&o.Kind, "kind", "", "the kind, such as Shop")
	flags.StringVar(&o.Plural, "plural", "", "the name of the resource; by default the plural of the kind")
	flags.BoolVar(&o.Namespaced, "namespaced", true, "whether resources are in namespaces")
	flags.StringVar(&o.Component, "component", "", "make a resource a component, whose objects are made by "+
		strings.Join(scaffold.Generators, ", "))
	flags.BoolVar(&o.Defaulting, "defaulting-webhook", false, "add a webhook that fills in defaults")
	flags.BoolVar(&o.Validating, "validating-webhook", false, "add a webhook that refuses what is wrong")
	flags.StringVar(&o.Plugin, "plugin", "",
		"make the project of a plugin instead, for a category and a type, such as database/postgres")
	flags.StringVar(&o.Module, "module", "",
		"the path of the Go module; by default example.com/ and the name of the folder")
	flags.StringVar(&o.GoVersion, "go-version", scaffold.GoVersion, "the version of Go in go.mod")
	flags.StringVar(&o.Operator, "operator-name", "",
		"the name of what is deployed, and of the Lease; by default the kind in lower case and -operator")
	flags.StringVar(&o.Image, "image", "", "the image; by default the name of the operator with the tag dev")
	flags.StringVar(&o.Owner, "owner", "", "who has the copyright, for the header of Go files")
	flags.StringVar(&o.License, "license", "", "an SPDX expression for the header of Go files, such as Apache-2.0")
	flags.StringVar(&o.headerFile, "license-header", "", "a file with the text of that header instead")
	flags.StringVar(&o.EspalierVersion, "espalier-version", libraryVersion(),
		"the version of Espalier; by default that of this command")
	flags.StringVar(&o.Replace, "replace", "", "a folder with a checkout of Espalier, that go.mod refers to")
	flags.BoolVar(&o.force, "force", false, "write over files in a folder that is not empty")
	flags.BoolVar(&o.add, "add", false, "add a root to the project of Kubebuilder in the folder")
	flags.BoolVar(&o.skipTidy, "skip-tidy", false, "leave go mod tidy to you; the project does not build before")
}

// ofOperators are the flags that say what an operator is like.
var ofOperators = []string{
	"group", "version", "kind", "plural", "namespaced", "component", "defaulting-webhook", "validating-webhook",
	"operator-name", "add",
}

// checkPlugin returns an error if a flag is given that is not for plugins.
func (o *newOptions) checkPlugin(flags *pflag.FlagSet) error {
	if !flags.Changed("plugin") {
		return nil
	}
	if o.Plugin == "" {
		return fmt.Errorf("--plugin is empty: give a category and a type, such as database/postgres")
	}
	for _, name := range ofOperators {
		if flags.Changed(name) {
			return fmt.Errorf("--%s is not for --plugin: it says what an operator is like", name)
		}
	}
	return nil
}

// read completes what flags say by what is in files.
func (o *newOptions) read(dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if o.Module == "" {
		o.Module = "example.com/" + strings.ToLower(filepath.Base(absolute))
	}
	if o.headerFile != "" {
		file, err := os.Open(o.headerFile)
		if err != nil {
			return fmt.Errorf("--license-header: %w", err)
		}
		defer func() { _ = file.Close() }()
		text, err := io.ReadAll(io.LimitReader(file, scaffold.MaxHeader+1))
		if err != nil {
			return fmt.Errorf("--license-header: %w", err)
		}
		// controller-gen has the year in the place of this word.
		o.LicenseHeader = strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"),
			" YEAR", " "+strconv.Itoa(time.Now().Year()))
	}
	if o.Replace == "" {
		return nil
	}
	if o.Replace, err = filepath.Abs(o.Replace); err != nil {
		return fmt.Errorf("--replace: %w", err)
	}
	return scaffold.CheckCheckout(o.Replace)
}

// create writes a new project, and has go.sum made.
func (o *newOptions) create(c *cobra.Command, dir string) error {
	complete, err := o.Complete()
	if err != nil {
		return err
	}
	files, err := complete.Files()
	if err != nil {
		return err
	}
	if err := files.Write(dir, o.force); err != nil {
		return err
	}
	if !o.skipTidy {
		if err := complete.Tidy(c.Context(), dir); err != nil {
			return err
		}
	}
	what, next := "Run the operator on a cluster in its process", "make -C "+dir+" run"
	if o.Plugin != "" {
		what, next = "Test the plugin, and build it", "make -C "+dir+" test build"
	}
	if o.skipTidy {
		next = "(cd " + dir + " && go mod tidy)\n    " + next
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d files are in %s. %s:\n\n    %s\n\n", len(files), dir, what, next)
	return err
}

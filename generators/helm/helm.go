// Package helm generates the objects of a component from a Helm chart, by the Helm SDK.
//
//	//go:embed all:chart
//	var folder embed.FS
//
//	generator, err := helm.NewGenerator(folder, "chart", helm.Options{})
//
// The parameters of the component are the values of the chart. A release is the component: its name and namespace are
// those the component is deployed with, its revision is the revision of the component, and it is an installation while
// that is 1.
package helm

import (
	"context"
	"io/fs"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generators/gotemplate"
)

// Options of a [Generator]. The zero value is complete.
type Options struct {
	// Definitions says what becomes of the CustomResourceDefinitions in the folders crds of a chart. Default:
	// [DefinitionsManaged].
	Definitions DefinitionsPolicy

	// DropHooks lists kinds of hooks that are left out. A hook of a kind that a component cannot run is an error unless
	// it is listed here: pre-delete, post-delete, pre-rollback, post-rollback. Tests are always left out. Default: none.
	DropHooks []string

	// DropHookFailed ignores the delete policy hook-failed, which is an error otherwise: a hook that failed stays for
	// inspection, until the component changes.
	DropHookFailed bool

	// TakeOver takes over the objects of a Helm release of the same name that is there already, without recreating
	// them, and deletes them with the component from then on. By default, they are refused.
	TakeOver bool

	// Limits bound each rendering.
	Limits gotemplate.Limits
}

// DefinitionsPolicy says what becomes of the CustomResourceDefinitions in the folders crds.
type DefinitionsPolicy string

const (
	// DefinitionsManaged treats them as other objects: they are upgraded with the component, and deleted with it once
	// nobody else uses the type.
	DefinitionsManaged DefinitionsPolicy = "Managed"
	// DefinitionsInstalled does as Helm does: they are created if they do not exist, never changed, and never deleted.
	DefinitionsInstalled DefinitionsPolicy = "Installed"
	// DefinitionsSkipped leaves them out.
	DefinitionsSkipped DefinitionsPolicy = "Skipped"
)

// Generator is a [component.Generator] for a chart. It is safe for concurrent use. All components that it serves share
// one parsed copy of the chart.
type Generator struct{}

var (
	_ component.Generator     = (*Generator)(nil)
	_ component.Deterministic = (*Generator)(nil)
	_ component.InputReporter = (*Generator)(nil)
)

// NewGenerator reads and parses a chart. path is a folder with a Chart.yaml, or a packed chart (.tgz), in folder. An
// empty path stands for folder itself. Nothing outside folder is read, also not through symbolic links. If folder is
// nil, path is on the disk of the operator, and the folder of the chart is the limit.
//
// The error names the file that is wrong.
func NewGenerator(folder fs.FS, path string, options Options) (*Generator, error) { panic("contract") }

// Generate renders the chart. The context must contain what a reconciler adds, see [component.Context].
func (g *Generator) Generate(
	ctx context.Context, namespace, name string, parameters component.Unstructurable,
) ([]client.Object, error) {
	panic("contract")
}

// Deterministic is true.
func (g *Generator) Deterministic() bool { return true }

// Inputs identifies what the cluster serves, and what the last rendering for the component has looked up.
func (g *Generator) Inputs(ctx context.Context, namespace, name string) (string, error) {
	panic("contract")
}

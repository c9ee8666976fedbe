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
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// Options of a [Generator]. The zero value is complete.
type Options struct {
	// Definitions says what becomes of the CustomResourceDefinitions in the folders crds of a chart. Default:
	// [DefinitionsManaged].
	Definitions DefinitionsPolicy

	// DropHooks lists kinds of hooks that are left out, such as pre-delete. A component runs no hooks when it is
	// deleted, so pre-delete and post-delete are an error unless they are listed here. The kinds test, test-success,
	// pre-rollback and post-rollback are always left out: a component never runs them. An object with further kinds
	// stays for these. Default: none.
	DropHooks []string

	// DropHookFailed ignores the delete policy hook-failed, which is an error otherwise: a hook that failed stays. If
	// it is one of an upgrade, the next revision recreates it.
	DropHookFailed bool

	// TakeOver takes over the objects of a Helm release of the same name that is there already, without recreating
	// them, and deletes them with the component from then on. Objects of others are taken over too. A hook of the
	// installation that is there is not run again; one that is gone runs, unless DropHooks lists its kind. By default,
	// objects that exist are refused.
	TakeOver bool

	// Limits bound each rendering.
	Limits gotemplate.Limits
}

// DefinitionsPolicy says what becomes of the CustomResourceDefinitions in the folders crds.
type DefinitionsPolicy string

const (
	// DefinitionsManaged treats them as other objects: they are upgraded with the component, and deleted with it once
	// nobody else uses the type. They come in wave -202, before all hooks, unless the chart has annotated an order.
	DefinitionsManaged DefinitionsPolicy = "Managed"
	// DefinitionsInstalled does as Helm does: they are created if they do not exist, never changed, and never deleted.
	// One that exists is only read, and the component waits until it is ready. They come in the same wave.
	DefinitionsInstalled DefinitionsPolicy = "Installed"
	// DefinitionsSkipped leaves them out.
	DefinitionsSkipped DefinitionsPolicy = "Skipped"
)

// Generator is a [generator.Generator] for a chart. It is safe for concurrent use. All components that it serves share
// one parsed copy of the chart.
type Generator struct {
	*parsed
	options Options
	memory  *memory
}

var (
	_ generator.Generator     = (*Generator)(nil)
	_ generator.Deterministic = (*Generator)(nil)
	_ generator.InputReporter = (*Generator)(nil)

	_ generator.ContentDigester = (*Generator)(nil)
)

// NewGenerator reads and parses a chart. path is a folder with a Chart.yaml, or a packed chart (.tgz), in folder. An
// empty path stands for folder itself. Nothing outside folder is read, also not through symbolic links. If folder is
// nil, path is on the disk of the operator, and the folder of the chart is the limit.
//
// A file that .helmignore names is left out. A symbolic link is an error, except on the disk of the operator, where it
// may lead to what is in the folder of the chart. A schema of the values that refers to another file is an error.
//
// The error names the file that is wrong.
func NewGenerator(folder fs.FS, path string, options Options) (*Generator, error) {
	options.Definitions = cmp.Or(options.Definitions, DefinitionsManaged)
	switch options.Definitions {
	case DefinitionsManaged, DefinitionsInstalled, DefinitionsSkipped:
	default:
		return nil, fmt.Errorf("option Definitions: %q is not a policy", options.Definitions)
	}
	if err := checkDropHooks(&options); err != nil {
		return nil, err
	}
	p, err := load(folder, path)
	if err != nil {
		return nil, fmt.Errorf("unable to load chart %q: %w", path, err)
	}
	if options.Definitions == DefinitionsInstalled && len(p.definitions) > 0 {
		p.looksUp = true
	}
	options.DropHooks = slices.Clone(options.DropHooks)
	return &Generator{parsed: p, options: options, memory: newMemory()}, nil
}

// Generate renders the chart. The context must contain what a reconciler adds, see [generator.Context].
//
// The parameters win over the values of the chart, as with Helm: maps are merged, other values are replaced, and null
// removes a value. .Release.Service is Helm, and Capabilities are those of the cluster that the component is deployed
// to. Templates can call the functions of Helm, and further ones of package gotemplate that look up objects.
//
// A function that returns another value each time, such as genCA or now, does so in each rendering, as with Helm. So
// look up what is there already.
//
// The error names the chart, and the template or the value that is wrong. It has no values.
func (g *Generator) Generate(
	ctx context.Context, namespace, name string, parameters generator.Unstructurable,
) ([]client.Object, error) {
	objects, err := g.generate(ctx, namespace, name, parameters)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", g.chart.Name(), err)
	}
	return objects, nil
}

func (g *Generator) generate(
	ctx context.Context, namespace, name string, parameters generator.Unstructurable,
) (_ []client.Object, err error) {
	defer recoverInto(&err)
	prefix, err := generator.ReconcilerNameFromContext(ctx)
	if err != nil {
		return nil, err
	}
	revision, err := generator.ComponentRevisionFromContext(ctx)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := release{prefix: prefix, install: revision <= 1}
	lookups := &gotemplate.Lookups{}
	ctx = gotemplate.WithLookups(ctx, lookups)
	if g.looksUp {
		// What has failed may succeed when it finds something else.
		defer g.memory.remember(keyOf(ctx, namespace, name), lookups)
	}
	chart := clone(g.chart)
	guard := gotemplate.NewGuard(ctx, g.options.Limits)
	defer guard.End()
	files, err := g.render(ctx, chart, parameters.ToUnstructured(), common.ReleaseOptions{
		Name: name, Namespace: namespace, Revision: int(max(revision, 1)), IsInstall: r.install, IsUpgrade: !r.install,
	}, guard)
	if err != nil {
		return nil, err
	}
	objects, err := parseFiles(files, g.options.Limits)
	if err != nil {
		return nil, err
	}
	// The rest may look for definitions in the cluster.
	guard.End()
	return g.finish(ctx, chart, objects, r, lookups)
}

// finish adds the definitions, and translates annotations of Helm.
func (g *Generator) finish(
	ctx context.Context, chart *v2.Chart, objects []*unstructured.Unstructured, r release, lookups *gotemplate.Lookups,
) ([]client.Object, error) {
	var definitions []*unstructured.Unstructured
	if g.options.Definitions != DefinitionsSkipped {
		definitions = definitionsOf(chart, g.definitions)
	}
	if g.options.Definitions == DefinitionsInstalled {
		if err := installDefinitions(ctx, definitions, lookups); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, definition := range definitions {
		errs = append(errs, translateDefinition(definition, r, &g.options))
	}
	objects, err := translate(objects, r, &g.options)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	if err := g.options.Limits.CheckObjects(len(definitions) + len(objects)); err != nil {
		return nil, err
	}
	all := make([]client.Object, 0, len(definitions)+len(objects))
	for _, object := range slices.Concat(definitions, objects) {
		all = append(all, object)
	}
	return all, nil
}

// Deterministic is true.
func (g *Generator) Deterministic() bool { return true }

// ContentDigest identifies the files of the chart. So another chart is an upgrade.
func (g *Generator) ContentDigest(context.Context) (string, error) { return g.digest, nil }

// Inputs identifies what the cluster serves, and what the last rendering for the component has looked up. It is empty,
// and makes no request, if no template mentions Capabilities, lookup or tpl, and the chart needs no version of
// Kubernetes. What a template looks up costs one request for each object or list. What the cluster serves is read every
// 10 minutes.
func (g *Generator) Inputs(ctx context.Context, namespace, name string) (string, error) {
	var served, found string
	if g.discovers {
		answer, err := gotemplate.Discover(ctx)
		if err != nil {
			return "", fmt.Errorf("chart %s: %w", g.chart.Name(), err)
		}
		served = answer.Identity()
	}
	if g.looksUp {
		found = g.memory.identity(ctx, keyOf(ctx, namespace, name))
	}
	return served + found, nil
}

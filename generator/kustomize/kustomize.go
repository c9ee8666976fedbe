// Package kustomize generates the objects of a component from a kustomization, or from a folder of plain manifests.
// Files may be templates.
//
//	//go:embed all:manifests
//	var folder embed.FS
//
//	generator, err := kustomize.NewGenerator(folder, "manifests", kustomize.Options{})
//
// [ObjectTransformer] applies patches, images, labels and the like to the objects of any generator.
package kustomize

import (
	"context"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// Options of a [Generator]. The zero value is complete.
type Options struct {
	// TemplateSuffix is the suffix of the files that are templates; it is cut off. Other files are taken as they are,
	// also if they contain {{. Default: .tpl. If the file with settings says templateSuffix: "", all files are
	// templates.
	TemplateSuffix string
	// LeftDelimiter and RightDelimiter are those of actions in templates. Default: {{ and }}.
	LeftDelimiter, RightDelimiter string
	// Decrypt is called with the content and the path of each file when the generator is made. Optional.
	Decrypt func(content []byte, path string) ([]byte, error)
	// Bases are folders outside the folder of the kustomization, relative to it, such as ../base, that it may refer to.
	// Their files may be templates too, with the same options. A base must not contain the kustomization, nor another
	// base. Default: none. A remote base is an error.
	Bases []string
	// Limits bound the templates of each build, and the number of objects. kustomize compares each object with each
	// other one and cannot be interrupted, so a build that would take longer than Limits.Time is an error before it
	// begins. The default admits about 4,000 objects.
	Limits gotemplate.Limits
}

// Generator is a [generator.Generator] for a kustomization. It is safe for concurrent use. The zero value generates
// nothing but errors.
type Generator struct {
	// folders are that of the kustomization, and its bases.
	folders []*folder
	// dynamic says that there are templates. Otherwise all builds have the same result, which is in static.
	dynamic bool
	static  staticObjects
	inputs  inputs
	limits  gotemplate.Limits
	digest  string
}

var (
	_ generator.Generator     = (*Generator)(nil)
	_ generator.Deterministic = (*Generator)(nil)
	_ generator.InputReporter = (*Generator)(nil)

	_ generator.ContentDigester = (*Generator)(nil)
)

// NewGenerator reads a kustomization and parses its templates. path is a folder in folder; an empty path stands for
// folder itself. Nothing outside folder is read, also not through symbolic links. If folder is nil, path is on the disk
// of the operator. A folder without a kustomization file is one of plain manifests.
//
// Later changes of the files have no effect. The error names the file that is wrong.
func NewGenerator(folder fs.FS, path string, options Options) (*Generator, error) {
	from := source{files: folder, raw: files{}}
	g, err := newGenerator(from, path, options)
	if err != nil {
		return nil, fmt.Errorf("kustomization %s: %w", orDot(path), err)
	}
	return g, nil
}

// Generate builds the kustomization. Templates see the parameters. The context must contain what a reconciler adds, see
// [generator.Context].
//
// One build runs at a time in the process, because kustomize needs that; files are read, and templates are executed,
// outside of it. A build of another generator is waited for as long as the context is not done. kustomize cannot be
// stopped while it works on a file, but stops at the next file.
func (g *Generator) Generate(
	ctx context.Context, namespace, name string, parameters generator.Unstructurable,
) ([]client.Object, error) {
	if g == nil || len(g.folders) == 0 {
		return nil, errNotMade
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !g.dynamic {
		return g.static.get(func() ([]*unstructured.Unstructured, error) {
			return build(ctx, g.tree(), g.folders[0].dir, g.limits)
		})
	}
	values := map[string]any{}
	if parameters != nil {
		values = parameters.ToUnstructured()
	}
	if err := g.inputs.discover(ctx); err != nil {
		return nil, err
	}
	t := g.tree()
	err := g.inputs.record(ctx, namespace, name, func(ctx context.Context) error {
		functions := functionsFor(ctx, namespace, name)
		for _, f := range g.folders {
			if err := f.render(ctx, values, functions, t.files); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	objects, err := build(ctx, t, g.folders[0].dir, g.limits)
	if err != nil {
		return nil, err
	}
	return toObjects(objects), nil
}

// Deterministic is true.
func (g *Generator) Deterministic() bool { return true }

// ContentDigest identifies the files, as they are before they are decrypted. So other files start another revision.
func (g *Generator) ContentDigest(context.Context) (string, error) {
	if g == nil {
		return "", nil
	}
	return g.digest, nil
}

// Inputs identifies what the cluster serves, if a template can use that, and what the last build for the component has
// looked up. It makes a request for each lookup, and none if there are none.
func (g *Generator) Inputs(ctx context.Context, namespace, name string) (string, error) {
	if g == nil || !g.dynamic {
		return "", nil
	}
	return g.inputs.identity(ctx, namespace, name)
}

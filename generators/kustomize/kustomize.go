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
	"io/fs"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generators/gotemplate"
)

// Options of a [Generator]. The zero value is complete: all files are templates.
type Options struct {
	// TemplateSuffix is the suffix of the files that are templates; it is cut off. Other files are taken as they are.
	// Default: none, so all files are templates.
	TemplateSuffix string
	// LeftDelimiter and RightDelimiter are those of actions in templates. Default: {{ and }}.
	LeftDelimiter, RightDelimiter string
	// Decrypt is called with the content and the path of each file when the generator is made. Optional.
	Decrypt func(content []byte, path string) ([]byte, error)
	// Bases are folders outside the folder of the kustomization, relative to it, such as ../base, that it may refer to.
	// Default: none. A remote base is an error.
	Bases []string
	// Limits bound the templates of each build.
	Limits gotemplate.Limits
}

// Generator is a [component.Generator] for a kustomization. It is safe for concurrent use.
type Generator struct{}

var (
	_ component.Generator     = (*Generator)(nil)
	_ component.Deterministic = (*Generator)(nil)
	_ component.InputReporter = (*Generator)(nil)
)

// NewGenerator reads a kustomization and parses its templates. path is a folder in folder; an empty path stands for
// folder itself. Nothing outside folder is read, also not through symbolic links. If folder is nil, path is on the disk
// of the operator. A folder without a kustomization file is one of plain manifests.
func NewGenerator(folder fs.FS, path string, options Options) (*Generator, error) { panic("contract") }

// Generate builds the kustomization. Templates see the parameters. The context must contain what a reconciler adds, see
// [component.Context].
func (g *Generator) Generate(
	ctx context.Context, namespace, name string, parameters component.Unstructurable,
) ([]client.Object, error) {
	panic("contract")
}

// Deterministic is true.
func (g *Generator) Deterministic() bool { return true }

// Inputs identifies what the cluster serves, and what the last build for the component has looked up.
func (g *Generator) Inputs(ctx context.Context, namespace, name string) (string, error) {
	panic("contract")
}

// ObjectTransformer changes objects as a kustomization with these fields would. The zero value changes nothing.
type ObjectTransformer struct {
	// Patches are strategic merge patches or JSON patches. A patch without a target applies to the object that it names.
	Patches []Patch `json:"patches,omitempty"`
	// Images replaces names, tags and digests of images.
	Images []Image `json:"images,omitempty"`
	// Labels are set on all objects, not on their selectors.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are set on all objects.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Namespace is set on all objects with a namespace, and on the subjects of role bindings. Default: unchanged.
	Namespace string `json:"namespace,omitempty"`
}

// Patch is a patch of a kustomization.
type Patch struct {
	// Patch is the patch, as YAML or JSON.
	Patch string `json:"patch"`
	// Target selects the objects. Optional for a strategic merge patch.
	Target *Target `json:"target,omitempty"`
}

// Target selects objects. An empty field selects all. Name and Namespace are regular expressions.
type Target struct {
	Group              string `json:"group,omitempty"`
	Version            string `json:"version,omitempty"`
	Kind               string `json:"kind,omitempty"`
	Name               string `json:"name,omitempty"`
	Namespace          string `json:"namespace,omitempty"`
	LabelSelector      string `json:"labelSelector,omitempty"`
	AnnotationSelector string `json:"annotationSelector,omitempty"`
}

// Image replaces parts of the images that have a name.
type Image struct {
	Name    string `json:"name"`
	NewName string `json:"newName,omitempty"`
	NewTag  string `json:"newTag,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

var _ component.ObjectTransformer = (*ObjectTransformer)(nil)

// TransformObjects implements [component.ObjectTransformer].
func (t *ObjectTransformer) TransformObjects(_, _ string, objects []client.Object) ([]client.Object, error) {
	panic("contract")
}

// Deterministic is true.
func (t *ObjectTransformer) Deterministic() bool { return true }

package kustomize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	//lint:ignore SA1019 nothing else applies one patch after the other
	"sigs.k8s.io/kustomize/api/builtins"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
	"github.com/espalier-dev/espalier/internal/document"
	"github.com/espalier-dev/espalier/internal/gotype"
)

// ObjectTransformer changes objects as a kustomization with these fields would. The zero value changes nothing.
//
// +kubebuilder:object:generate=true
type ObjectTransformer struct {
	// Patches are strategic merge patches or JSON patches. A patch without a target applies to the object that it
	// names. A patch sees what the patches before it did.
	Patches []Patch `json:"patches,omitempty"`
	// Images replaces names, tags and digests of images.
	Images []Image `json:"images,omitempty"`
	// Labels are set on all objects, not on their selectors, nor on templates of pods.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are set on all objects, not on templates of pods.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Namespace is set on all objects with a namespace, and on the subject default of role bindings. A Namespace gets
	// it as its name. An object of a type that is not built in counts as one with a namespace. Default: unchanged.
	Namespace string `json:"namespace,omitempty"`
}

var _ generator.ObjectTransformer = (*ObjectTransformer)(nil)

// Patch is a patch of a kustomization.
//
// +kubebuilder:object:generate=true
type Patch struct {
	// Patch is the patch, as YAML or JSON.
	Patch string `json:"patch"`
	// Target selects the objects. Optional for a strategic merge patch.
	Target *Target `json:"target,omitempty"`
}

// Target selects objects. An empty field selects all. Name and Namespace are regular expressions.
//
// +kubebuilder:object:generate=true
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
//
// +kubebuilder:object:generate=true
type Image struct {
	Name    string `json:"name"`
	NewName string `json:"newName,omitempty"`
	NewTag  string `json:"newTag,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// TransformObjects implements [generator.ObjectTransformer]. It returns new objects, in the given order, unless there
// is nothing to change. A nil transformer changes nothing. An object must have apiVersion, kind and name; a typed
// object without them is an error, because there is no scheme.
//
// An error names the field, with the index of a patch. A patch that matches no object is an error.
func (t *ObjectTransformer) TransformObjects(_, _ string, objects []client.Object) ([]client.Object, error) {
	if t == nil || len(objects) == 0 || t.isZero() {
		return objects, nil
	}
	var changed []*unstructured.Unstructured
	texts, err := serialize(objects)
	if err != nil {
		return nil, err
	}
	if err := (work{objects: len(objects)}).built().check(gotemplate.Limits{}); err != nil {
		return nil, err
	}
	hide := func(err error) error { return withhold(err, func() []string { return t.secrets(texts) }) }
	err = exclusively(context.Background(), func() error {
		all, err := load(objects, texts, hide)
		if err != nil {
			return err
		}
		if all, err = t.patch(all, texts, hide); err != nil {
			return err
		}
		if all, err = t.customize(all); err != nil {
			return hide(err)
		}
		all.RemoveBuildAnnotations()
		if changed, err = decode(all); err != nil {
			return hide(err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return toObjects(changed), nil
}

// patch applies the patches, one after the other.
func (t *ObjectTransformer) patch(all resmap.ResMap, texts [][]byte, hide func(error) error) (resmap.ResMap, error) {
	s := sizes{}
	for _, text := range texts {
		s.total, s.largest = s.total+len(text), max(s.largest, len(text))
	}
	for i := range t.Patches {
		err := recovered(func() (err error) {
			all, err = t.Patches[i].apply(all, &s, hide)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("patches[%d]: %w", i, err)
		}
	}
	return all, nil
}

// Deterministic is true.
func (t *ObjectTransformer) Deterministic() bool { return true }

func (t *ObjectTransformer) isZero() bool { return len(t.Patches) == 0 && t.isPatched() }

// isPatched reports whether there is nothing to do after the patches.
func (t *ObjectTransformer) isPatched() bool {
	return len(t.Images) == 0 && len(t.Labels) == 0 && len(t.Annotations) == 0 && t.Namespace == ""
}

// serialize returns the objects as JSON.
func serialize(objects []client.Object) ([][]byte, error) {
	texts := make([][]byte, len(objects))
	for i, object := range objects {
		if gotype.IsNil(object) {
			return nil, fmt.Errorf("object %d is nil", i)
		}
		kind := object.GetObjectKind().GroupVersionKind()
		if kind.Version == "" || kind.Kind == "" || object.GetName() == "" {
			return nil, fmt.Errorf("object %d (%T %s) has no apiVersion, kind or name", i, object, object.GetName())
		}
		text, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be written as JSON", describe(object))
		}
		texts[i] = text
	}
	return texts, nil
}

func describe(object client.Object) string {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + name
}

// load returns the objects as those of kustomize.
func load(objects []client.Object, texts [][]byte, hide func(error) error) (resmap.ResMap, error) {
	factory := provider.NewDefaultDepProvider().GetResourceFactory()
	all := resmap.New()
	for i, text := range texts {
		what := describe(objects[i])
		if _, ok := objects[i].GetAnnotations()[konfig.IgnoredByKustomizeAnnotation]; ok {
			return nil, fmt.Errorf("%s: kustomize leaves out objects with the annotation %s",
				what, konfig.IgnoredByKustomizeAnnotation)
		}
		resources, err := factory.SliceFromBytes(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, hide(err))
		}
		if len(resources) != 1 {
			return nil, fmt.Errorf("%s: it is a list", what)
		}
		if err := all.Append(resources[0]); err != nil {
			return nil, fmt.Errorf("%s: there is another object with this kind and name", what)
		}
	}
	return all, nil
}

var (
	errNoPatch = errors.New("patch is empty")
	errNoMatch = errors.New("no object matches")
)

// apply changes the objects, and returns those that the patch does not delete. hide is for errors of kustomize, which
// quote objects and patches.
func (p *Patch) apply(all resmap.ResMap, s *sizes, hide func(error) error) (resmap.ResMap, error) {
	if strings.TrimSpace(p.Patch) == "" {
		return nil, errNoPatch
	}
	bytes, err := document.Bytes([]byte(p.Patch))
	if errors.Is(err, document.ErrTooLarge) {
		return nil, fmt.Errorf("patch: %w", err)
	} else if err == nil {
		err = checkDocuments([]byte(p.Patch))
	}
	if err != nil {
		return nil, fmt.Errorf("patch: %w", hide(err))
	}
	fields, matches := map[string]any{"patch": p.Patch}, 1
	if p.Target != nil {
		selector := p.Target.selector()
		matching, err := all.Select(selector)
		if err != nil {
			return nil, fmt.Errorf("target: %w", hide(err))
		}
		if matches = len(matching); matches == 0 {
			return nil, fmt.Errorf("target: %w", errNoMatch)
		}
		fields["target"] = selector
	}
	if err := s.grow(p.Patch, bytes, matches); err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(fields)
	if err != nil {
		return nil, hide(err)
	}
	plugin := &builtins.PatchTransformerPlugin{}
	factory := resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory())
	helpers := resmap.NewPluginHelpers(nil, nil, factory, types.DisabledPluginConfig())
	if err := plugin.Config(helpers, config); err != nil {
		return nil, fmt.Errorf("patch: %w", hide(err))
	}
	if err := plugin.Transform(all); err != nil {
		return nil, hide(err)
	}
	if !slices.ContainsFunc(all.Resources(), (*resource.Resource).IsNilOrEmpty) {
		return all, nil
	}
	left := resmap.New()
	for _, resource := range all.Resources() {
		if resource.IsNilOrEmpty() {
			continue
		}
		if err := left.Append(resource); err != nil {
			return nil, hide(err)
		}
	}
	return left, nil
}

// maxPatched is how many bytes all objects may have after the patches, and maxCopied how many the operations copy of a
// JSON patch may add to an object. The library of kustomize has the latter for all its users.
const maxPatched, maxCopied = 64 << 20, 3 << 20

func init() { atomic.CompareAndSwapInt64(&jsonpatch.AccumulatedCopySizeLimit, 0, maxCopied) }

// sizes are how many bytes the objects have at most, in total and the largest of them.
type sizes struct{ total, largest int }

// grow counts what a patch of some bytes adds to the objects that match. Each copy at most doubles an object.
func (s *sizes) grow(patch string, bytes, matches int) error {
	s.largest += bytes
	copied := 0
	// A backslash may stand for any letter.
	for range strings.Count(patch, "copy") + strings.Count(patch, `\`) {
		copied = min(copied+s.largest+copied, maxCopied)
	}
	s.largest += copied
	if s.total += matches * (bytes + copied); s.total > maxPatched {
		return fmt.Errorf("patch: it would give the objects more than %d bytes", maxPatched)
	}
	return nil
}

func (t *Target) selector() types.Selector {
	return types.Selector{
		ResId: resid.ResId{
			Gvk: resid.Gvk{Group: t.Group, Version: t.Version, Kind: t.Kind}, Name: t.Name, Namespace: t.Namespace,
		},
		LabelSelector: t.LabelSelector, AnnotationSelector: t.AnnotationSelector,
	}
}

// customize builds a kustomization of the objects with all fields but the patches.
func (t *ObjectTransformer) customize(all resmap.ResMap) (resmap.ResMap, error) {
	if t.isPatched() || all.Size() == 0 {
		return all, nil
	}
	all.RemoveBuildAnnotations()
	var text strings.Builder
	for _, resource := range all.Resources() {
		// JSON quotes all strings, so none is taken for a number.
		object, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
		text.WriteString("---\n" + string(object) + "\n")
	}
	k, err := yaml.Marshal(t.kustomization())
	if err != nil {
		return nil, err
	}
	memory := filesys.MakeFsInMemory()
	if err := memory.WriteFile("/objects.yaml", []byte(text.String())); err != nil {
		return nil, err
	}
	if err := memory.WriteFile("/"+konfig.DefaultKustomizationFileName(), k); err != nil {
		return nil, err
	}
	return krusty.MakeKustomizer(krustyOptions()).Run(memory, "/")
}

func (t *ObjectTransformer) kustomization() types.Kustomization {
	k := types.Kustomization{Resources: []string{"objects.yaml"}, Namespace: t.Namespace}
	k.APIVersion, k.Kind = types.KustomizationVersion, types.KustomizationKind
	if len(t.Labels) > 0 {
		k.Labels = []types.Label{{Pairs: t.Labels}}
	}
	if len(t.Annotations) > 0 {
		// The field commonAnnotations would change pod templates too.
		plugin, _ := json.Marshal(map[string]any{ // strings only
			"apiVersion": "builtin", "kind": "AnnotationsTransformer",
			"metadata":    map[string]any{"name": "annotations"},
			"annotations": t.Annotations,
			"fieldSpecs":  []types.FieldSpec{{Path: "metadata/annotations", CreateIfNotPresent: true}},
		})
		k.Transformers = []string{string(plugin)}
	}
	for _, image := range t.Images {
		k.Images = append(k.Images, types.Image{
			Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest,
		})
	}
	return k
}

// secrets returns what must not be in errors: data of Secrets, and patches as a whole.
func (t *ObjectTransformer) secrets(texts [][]byte) []string {
	var found []string
	for _, text := range texts {
		found = append(found, secretsOf(text, 0)...)
	}
	for _, patch := range t.Patches {
		found = append(found, strings.TrimSpace(patch.Patch))
		if _, err := document.ToJSON([]byte(patch.Patch)); err != nil {
			found = append(found, strings.Split(patch.Patch, "\n")...)
			continue
		}
		found = append(found, secretsOf([]byte(patch.Patch+aboutSecret), 0)...)
	}
	return found
}

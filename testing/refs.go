package testing

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// PatchRef is an expected patch. By default patches in JSON are compared as structures, not byte by byte. The options
// at the end are compared only if they are set.
type PatchRef struct {
	Group       string
	Kind        string
	Namespace   string
	Name        string
	SubResource string
	PatchType   types.PatchType
	Patch       []byte

	// FieldOwner is the field manager of the call; empty for any.
	FieldOwner string
	// Force reports whether conflicts are forced; nil for any.
	Force *bool
	// DryRun reports whether the call is a dry run; nil for any.
	DryRun *bool
}

// NewPatchRef returns the expectation that the action meets. It leaves the options unset.
func NewPatchRef(action PatchAction) PatchRef {
	return PatchRef{
		Group:       action.GetResource().Group,
		Kind:        action.GetResource().Resource,
		Namespace:   action.GetNamespace(),
		Name:        action.GetName(),
		SubResource: action.GetSubresource(),
		PatchType:   action.GetPatchType(),
		Patch:       action.GetPatch(),
	}
}

// observed returns the action as a ref with the options that r sets.
func (r PatchRef) observed(action PatchAction) PatchRef {
	ref := NewPatchRef(action)
	ref.FieldOwner, ref.Force, ref.DryRun = observedPatchOptions(action, r.FieldOwner, r.Force, r.DryRun)
	return ref
}

// inJSON returns the ref with JSON for a patch that is YAML, as server-side apply allows.
func (r PatchRef) inJSON() PatchRef {
	if r.PatchType == types.ApplyYAMLPatchType {
		if raw, err := yaml.YAMLToJSON(r.Patch); err == nil {
			r.Patch = raw
		}
	}
	return r
}

// withoutServerSet returns the ref without what only a server sets, where expected does not set it. A JSON patch stays
// as it is.
func (r PatchRef) withoutServerSet(expected PatchRef) PatchRef {
	if r.PatchType != types.JSONPatchType {
		got := r.inJSON().Patch
		if short := check.PatchWithoutServerSet(expected.inJSON().Patch, got); !bytes.Equal(short, got) {
			r.Patch = short
		}
	}
	return r
}

// DeleteRef is an expected delete. The options at the end are compared only if they are set.
type DeleteRef struct {
	Group     string
	Kind      string
	Namespace string
	Name      string

	// Preconditions are the expected preconditions; nil for any. Empty preconditions expect a call without them.
	Preconditions *metav1.Preconditions
	// PropagationPolicy is the expected policy; nil for any. A pointer to the empty policy expects a call without one.
	PropagationPolicy *metav1.DeletionPropagation
	// DryRun reports whether the call is a dry run; nil for any.
	DryRun *bool
}

// NewDeleteRef returns the expectation that the action meets. It leaves the options unset.
func NewDeleteRef(action DeleteAction) DeleteRef {
	return DeleteRef{
		Group:     action.GetResource().Group,
		Kind:      action.GetResource().Resource,
		Namespace: action.GetNamespace(),
		Name:      action.GetName(),
	}
}

// NewDeleteRefFromObject returns the expectation that obj is deleted. It panics if the kind of obj is not known.
func NewDeleteRefFromObject(obj client.Object, scheme *runtime.Scheme) DeleteRef {
	obj = objects.Copy(obj)
	kind, err := objects.KindOf(obj, scheme)
	if err != nil {
		panic(err)
	}
	return DeleteRef{Group: kind.Group, Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

func (r DeleteRef) observed(action DeleteAction) DeleteRef {
	ref, opts := NewDeleteRef(action), action.GetDeleteOptions()
	if r.Preconditions != nil {
		ref.Preconditions = &metav1.Preconditions{}
		if opts.Preconditions != nil {
			ref.Preconditions = opts.Preconditions
		}
	}
	if r.PropagationPolicy != nil {
		ref.PropagationPolicy = new(metav1.DeletionPropagation)
		if opts.PropagationPolicy != nil {
			ref.PropagationPolicy = opts.PropagationPolicy
		}
	}
	if r.DryRun != nil {
		ref.DryRun = new(recording.OptionsOf(action).DryRun)
	}
	return ref
}

// DeleteCollectionRef is an expected delete of all objects that match.
type DeleteCollectionRef struct {
	Group     string
	Kind      string
	Namespace string
	Labels    labels.Selector
	Fields    fields.Selector
}

// NewDeleteCollectionRef returns the expectation that the action meets.
func NewDeleteCollectionRef(action DeleteCollectionAction) DeleteCollectionRef {
	return DeleteCollectionRef{
		Group:     action.GetResource().Group,
		Kind:      action.GetResource().Resource,
		Namespace: action.GetNamespace(),
		Labels:    action.GetListRestrictions().Labels,
		Fields:    action.GetListRestrictions().Fields,
	}
}

// withoutEmptySelectors returns the ref with nil for selectors that select everything.
func (r DeleteCollectionRef) withoutEmptySelectors() DeleteCollectionRef {
	if r.Labels != nil && r.Labels.Empty() {
		r.Labels = nil
	}
	if r.Fields != nil && r.Fields.Empty() {
		r.Fields = nil
	}
	return r
}

// ApplyRef is an expected server-side apply. The options at the end are compared only if they are set.
type ApplyRef struct {
	Group              string
	Kind               string
	Namespace          string
	Name               string
	ApplyConfiguration runtime.ApplyConfiguration

	// FieldOwner is the field manager of the call; empty for any.
	FieldOwner string
	// Force reports whether conflicts are forced; nil for any.
	Force *bool
	// DryRun reports whether the call is a dry run; nil for any.
	DryRun *bool
}

// NewApplyRef returns the expectation that the action meets. It leaves the options unset.
func NewApplyRef(action ApplyAction) ApplyRef {
	return ApplyRef{
		Group:              action.GetResource().Group,
		Kind:               action.GetResource().Resource,
		Namespace:          action.GetNamespace(),
		Name:               action.GetName(),
		ApplyConfiguration: action.GetApplyConfiguration(),
	}
}

// NewApplyRefFromObject returns the expectation that obj is applied as it is, without its status and without the
// metadata that only the API server sets. A UID is part of it. It panics if the kind of obj is not known, or if obj is
// not valid.
func NewApplyRefFromObject(obj client.Object, scheme *runtime.Scheme) ApplyRef {
	ref, err := applyRefOf(objects.Copy(obj), scheme)
	if err != nil {
		panic(err)
	}
	return ref
}

func applyRefOf(obj client.Object, scheme *runtime.Scheme) (ApplyRef, error) {
	kind, err := objects.KindOf(obj, scheme)
	if err != nil {
		return ApplyRef{}, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return ApplyRef{}, fmt.Errorf("%T %s cannot be applied: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	applied := &unstructured.Unstructured{Object: content}
	applied.SetGroupVersionKind(kind)
	delete(applied.Object, "status")
	serverFields := "creationTimestamp resourceVersion generation managedFields selfLink deletionTimestamp"
	for _, field := range strings.Fields(serverFields) {
		unstructured.RemoveNestedField(applied.Object, "metadata", field)
	}
	return ApplyRef{
		Group: kind.Group, Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		ApplyConfiguration: client.ApplyConfigurationFromUnstructured(applied),
	}, nil
}

func (r ApplyRef) observed(action ApplyAction) ApplyRef {
	ref := NewApplyRef(action)
	ref.FieldOwner, ref.Force, ref.DryRun = observedPatchOptions(action, r.FieldOwner, r.Force, r.DryRun)
	return ref
}

// observedPatchOptions returns the options of a patch or an apply that an expectation sets.
func observedPatchOptions(action Action, owner string, force, dryRun *bool) (string, *bool, *bool) {
	opts := recording.OptionsOf(action)
	if owner != "" {
		owner = opts.FieldManager
	}
	if force != nil {
		force = &opts.Force
	}
	if dryRun != nil {
		dryRun = &opts.DryRun
	}
	return owner, force, dryRun
}

// WriteOptions are expected options of a create or an update. Unset options may have any value.
type WriteOptions struct {
	// FieldOwner is the field manager of the call; empty for any. The digest that an ApplyingObjectManager adds to its
	// name for a create is left out.
	FieldOwner string
	// DryRun reports whether the call is a dry run; nil for any.
	DryRun *bool
}

// WithOptions returns obj as an expectation, for ExpectCreates, ExpectUpdates and ExpectStatusUpdates, that the call
// also has the options.
func WithOptions(obj client.Object, options WriteOptions) client.Object {
	return optioned{object: obj, options: options}
}

// optioned is an object of a table with the options it must be written with. It stands for the object.
type optioned struct {
	object
	options WriteOptions
}

// optionsOf returns the options that obj expects.
func optionsOf(obj client.Object) WriteOptions {
	if o, ok := obj.(optioned); ok {
		return o.options
	}
	return WriteOptions{}
}

// diff returns how the options of a call differ from the options that o sets.
func (o WriteOptions) diff(action Action) string {
	opts, actual := recording.OptionsOf(action), WriteOptions{}
	if o.FieldOwner != "" {
		actual.FieldOwner = opts.FieldManager
	}
	if o.DryRun != nil {
		actual.DryRun = &opts.DryRun
	}
	return cmp.Diff(o, actual)
}

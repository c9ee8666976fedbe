package testing

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// objectLiterals returns what a table may have for an object that was created or updated, the shortest first.
func objectLiterals(obj client.Object, scheme *runtime.Scheme) []client.Object {
	if kept, ok := asInventory(obj).(*Inventory); ok {
		return []client.Object{kept.pastable(), kept}
	}
	return check.Forms(obj, scheme)
}

// statusLiterals is objectLiterals for an object of which only the status is written.
func statusLiterals(obj client.Object, scheme *runtime.Scheme) []client.Object {
	literals := objectLiterals(obj, scheme)
	return append([]client.Object{check.StatusPart(literals[0])}, literals...)
}

// withOptionsOf returns the literal of an object that was written by a call with options.
func withOptionsOf(obj any, action Action) any {
	seen := recording.OptionsOf(action)
	if seen.FieldManager == "" && !seen.DryRun {
		return obj
	}
	options := WriteOptions{FieldOwner: seen.FieldManager}
	if seen.DryRun {
		options.DryRun = new(true)
	}
	return literal.Call{Package: words.Harness, Func: "WithOptions", Args: []any{obj, options}}
}

// deleteLiterals returns the expectation of a delete with its options.
func deleteLiterals(action DeleteAction, live bool) []DeleteRef {
	ref, opts := NewDeleteRef(action), action.GetDeleteOptions()
	ref.Preconditions, ref.PropagationPolicy = opts.Preconditions, opts.PropagationPolicy
	if live {
		// The UIDs and versions of a real API server are others in each run.
		ref.Preconditions = nil
	}
	if recording.OptionsOf(action).DryRun {
		ref.DryRun = new(true)
	}
	return []DeleteRef{ref}
}

// patchLiterals returns the expectations of a patch with its options, the shortest first: without transition times.
func patchLiterals(action PatchAction) []PatchRef {
	ref, seen := NewPatchRef(action), recording.OptionsOf(action)
	ref.FieldOwner = seen.FieldManager
	ref.Force, ref.DryRun = ifSet(seen.Force), ifSet(seen.DryRun)
	short := ref
	short.Patch = check.WithoutTransitionTimes(ref.Patch)
	return []PatchRef{short, ref}
}

// applyLiterals returns the expectations of an apply with its options: typed where the scheme has the kind.
func applyLiterals(action ApplyAction, scheme *runtime.Scheme) []ApplyRef {
	ref, seen := NewApplyRef(action), recording.OptionsOf(action)
	ref.FieldOwner, ref.Force, ref.DryRun = seen.FieldManager, &seen.Force, ifSet(seen.DryRun)
	var literals []ApplyRef
	for _, configuration := range appliedLiterals(ref.ApplyConfiguration, scheme) {
		ref.ApplyConfiguration = configuration
		literals = append(literals, ref)
	}
	return literals
}

func appliedLiterals(ac runtime.ApplyConfiguration, scheme *runtime.Scheme) []runtime.ApplyConfiguration {
	content, ok := ac.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return []runtime.ApplyConfiguration{ac}
	}
	u := &unstructured.Unstructured{Object: content.UnstructuredContent()}
	var literals []runtime.ApplyConfiguration
	short := check.WithoutComputed(u).(*unstructured.Unstructured)
	if len(check.OwnerPrefixes(u.GetLabels())) > 0 {
		// A component sends it for some objects, see ignoreUnsetApplied.
		short.SetResourceVersion("")
	}
	for _, sent := range []*unstructured.Unstructured{short, u} {
		if typed, ok := check.AsTyped(sent, scheme); ok {
			typed.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			literals = append(literals, applied{object: typed, scheme: scheme})
		}
	}
	return append(literals, client.ApplyConfigurationFromUnstructured(short), ac)
}

func ifSet(option bool) *bool {
	if option {
		return &option
	}
	return nil
}

// trackLiteral returns the usual call for a request to a tracker.
func trackLiteral(r TrackRequest) any {
	ref := r.TrackedReference
	if ref.Selector != nil {
		return r
	}
	return literal.Call{
		Package: words.Harness, Func: "CreateTrackRequest",
		Args:   []any{ref.APIGroup, ref.Kind, ref.Namespace, ref.Name},
		Method: "By", MethodArgs: []any{r.Tracker.Namespace, r.Tracker.Name},
	}
}

func nameOfEvent(e Event) string {
	about := objects.Text(e.Kind, e.Namespace, e.Name)
	return strings.TrimSpace(fmt.Sprintf("%s %s on %s: %q", e.Type, e.Reason, about, e.Message+e.Note))
}

func nameOfTrack(r TrackRequest) string {
	ref := r.TrackedReference
	name := ref.Name
	if ref.Selector != nil {
		name = "* (" + ref.Selector.String() + ")"
	}
	return objects.Text(ref.Kind, ref.Namespace, name) + " by " + objects.Path(r.Tracker.Namespace, r.Tracker.Name)
}

// asWritten returns literals with the shortest one first: without what only an API server sets.
func (c *ExpectConfig) asWritten(literals []client.Object) []client.Object {
	if _, kept := literals[0].(*Inventory); !c.how.APIServer || kept {
		return literals
	}
	return append([]client.Object{check.WithoutAnyServerSet(literals[0])}, literals...)
}

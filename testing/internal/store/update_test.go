package store_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// label changes an object.
func label(obj client.Object) { obj.SetLabels(map[string]string{"changed": "true"}) }

func TestUpdate(t *testing.T) {
	t.Parallel()
	const unconditional = true
	for _, test := range []struct {
		name   string
		change func(client.Object)
		// builtIn is what is different for a kind that allows updates without a version.
		builtIn bool
		reason  metav1.StatusReason
		text    string
		written bool
	}{
		{name: "nothing", change: func(client.Object) {}},
		{name: "a label", change: label, written: true},
		{name: "no UID", change: func(o client.Object) { o.SetUID(""); label(o) }, written: true},
		{name: "generation", change: func(o client.Object) { o.SetGeneration(9) }},
		{name: "creation time", change: func(o client.Object) { o.SetCreationTimestamp(metav1.Time{}) }},
		{name: "old version", change: func(o client.Object) { o.SetResourceVersion("1"); label(o) },
			reason: metav1.StatusReasonConflict, text: "the object has been modified"},
		{name: "other UID", change: func(o client.Object) { o.SetUID("other"); label(o) },
			reason: metav1.StatusReasonConflict, text: "Precondition failed: UID in precondition: other"},
		{name: "no version", change: func(o client.Object) { o.SetResourceVersion(""); label(o) },
			reason: metav1.StatusReasonInvalid, text: "metadata.resourceVersion: Invalid value: 0: must be specified"},
		{name: "no version", change: func(o client.Object) { o.SetResourceVersion(""); label(o) },
			builtIn: unconditional, written: true},
		{name: "deletion time", change: func(o client.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: now}) },
			reason: metav1.StatusReasonInvalid, text: "metadata.deletionTimestamp"},
		{name: "invalid label", change: func(o client.Object) { o.SetLabels(map[string]string{"a": "b c"}) },
			reason: metav1.StatusReasonInvalid, text: "metadata.labels"},
		{name: "other name", change: func(o client.Object) { o.SetName("other") },
			reason: metav1.StatusReasonNotFound, text: `"other" not found`},
	} {
		objs := []client.Object{app("one"), widget("one")}
		if test.builtIn {
			objs = []client.Object{configMap("one")}
		}
		for _, obj := range objs {
			s := newStore(t, widgets(), obj)
			c := s.Client(store.ClientOptions{})
			live := read(t, c, obj)
			revision := s.Revision()
			changed := live.DeepCopyObject().(client.Object)
			test.change(changed)
			reason(t, c.Update(t.Context(), changed), test.reason, test.text)
			if written := s.Revision() > revision; written != test.written {
				t.Errorf("%s of %T was written: %t, want %t", test.name, obj, written, test.written)
			}
			if test.reason == "" && (changed.GetUID() != live.GetUID() || changed.GetGeneration() != 1 &&
				!test.builtIn || changed.GetCreationTimestamp() != live.GetCreationTimestamp()) {
				t.Errorf("%s of %T gives %v, want the UID, the creation time and the generation kept", test.name, obj,
					changed)
			}
		}
	}
}

func TestUpdateOfARecreatedObject(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	first := configMap("one")
	must(t, c.Create(t.Context(), first))
	must(t, c.Delete(t.Context(), first))
	must(t, c.Create(t.Context(), configMap("one")))
	first.ResourceVersion = ""
	reason(t, c.Update(t.Context(), first), metav1.StatusReasonConflict, "Precondition failed: UID")
}

func TestUpdateOfNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets())
	for _, obj := range []client.Object{configMap("one"), app("one"), widget("one")} {
		reason(t, c.Update(t.Context(), obj), metav1.StatusReasonNotFound, `"one" not found`)
		reason(t, c.Status().Update(t.Context(), app("one")), metav1.StatusReasonNotFound, `"one" not found`)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metadata("one")}
	must(t, c.Update(t.Context(), lease))
	if lease.UID == "" {
		t.Error("the lease was not created, want it to be")
	}
}

func TestGenerationAndStatus(t *testing.T) {
	t.Parallel()
	s := newStore(t, widgets(), app("one"), widget("one"))
	c := s.Client(store.ClientOptions{})

	a := read(t, c, app("one"))
	a.Spec.Size, a.Status.Ready = 2, true
	must(t, c.Update(t.Context(), a))
	if a.Generation != 2 || a.Status.Ready {
		t.Errorf("an update gives %+v, want the generation 2 and it not ready", a)
	}
	a.Spec.Size, a.Status.Ready, a.Labels = 3, true, map[string]string{"a": "b"}
	must(t, c.Status().Update(t.Context(), a))
	if a.Generation != 2 || !a.Status.Ready || a.Spec.Size != 2 || a.Labels != nil {
		t.Errorf("an update of the status gives %+v, want it ready, and the rest as it was", a)
	}
	revision := s.Revision()
	must(t, c.Status().Update(t.Context(), a))
	if s.Revision() != revision {
		t.Errorf("the same status brought the store to revision %d, want %d", s.Revision(), revision)
	}

	w := read(t, c, widget("one"))
	w.Object["status"] = map[string]any{"ready": true}
	must(t, c.Status().Update(t.Context(), w))
	if ready, _, _ := unstructured.NestedBool(w.Object, "status", "ready"); !ready || w.GetGeneration() != 1 {
		t.Errorf("an update of the status gives %v, want it ready, with the generation 1", w)
	}
}

func TestKindsWithoutStatus(t *testing.T) {
	t.Parallel()
	c := newClient(t, configMap("one"))
	reason(t, c.Status().Update(t.Context(), configMap("one")), metav1.StatusReasonNotFound,
		"the server could not find the requested resource")
}

func TestUpdateDryRun(t *testing.T) {
	t.Parallel()
	s := newStore(t, app("one"))
	c := s.Client(store.ClientOptions{})
	a := read(t, c, app("one"))
	version := a.ResourceVersion
	a.Spec.Size = 5
	must(t, c.Update(t.Context(), a, client.DryRunAll))
	if a.Generation != 2 || a.ResourceVersion != version || s.Revision() != 999 || read(t, c, a).Spec.Size != 1 {
		t.Errorf("the answer is %+v, want the generation 2, the version %s and nothing written", a, version)
	}
}

func TestUpdateWithMetadataOnly(t *testing.T) {
	t.Parallel()
	c := newClient(t, configMap("one"))
	partial := &metav1.PartialObjectMetadata{ObjectMeta: metadata("one")}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	reason(t, c.Create(t.Context(), partial), "", "cannot create using only metadata")
	reason(t, c.Update(t.Context(), partial), "", "did you mean to patch?")
	reason(t, c.Status().Update(t.Context(), partial), "", "did you mean to patch?")
	before := partial.DeepCopy()
	partial.Labels = map[string]string{"a": "b"}
	must(t, c.Patch(t.Context(), partial, client.MergeFrom(before)))
	if got := read(t, c, configMap("one")); got.Labels["a"] != "b" || got.Data["k"] != "v" || partial.UID == "" {
		t.Errorf("%+v is stored and %+v answered, want the label a=b, k:v and a UID", got, partial)
	}
	must(t, c.Delete(t.Context(), partial))
}

func TestUpdateOfADefinitionNeedsAVersion(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets())
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(widgets().GroupVersionKind())
	d.SetName(widgets().Name)
	d = read(t, c, d)
	d.SetResourceVersion("")
	label(d)
	reason(t, c.Update(t.Context(), d), metav1.StatusReasonInvalid, "metadata.resourceVersion")
}

package store_test

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// TestOptionsAreValidated makes calls with options that an API server refuses.
func TestOptionsAreValidated(t *testing.T) {
	t.Parallel()
	c := newClient(t, app("one"))
	ctx := t.Context()
	raw := client.RawPatch(types.MergePatchType, []byte(`{}`))
	policy := client.PropagationPolicy("Sideways")
	for name, err := range map[string]error{
		"status update": c.Status().Update(ctx, app("one"), client.FieldOwner(strings.Repeat("x", 200))),
		"status patch":  c.Status().Patch(ctx, app("one"), raw, client.FieldOwner(strings.Repeat("x", 200))),
		"patch": c.Patch(ctx, app("one"), raw,
			client.FieldValidation("Loose")),
		"delete":        c.Delete(ctx, app("one"), policy),
		"delete all of": c.DeleteAllOf(ctx, app(""), client.InNamespace("ns"), policy),
	} {
		if err == nil || !strings.Contains(err.Error(), "Options.meta.k8s.io") {
			t.Errorf("%s: the error is %v, want one of the kind of the options", name, err)
		}
	}
}

// TestStrictUpdateOfAStatus writes fields that the kind does not have.
func TestStrictUpdateOfAStatus(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets(), widget("one"))
	w := read(t, c, widget("one"))
	for _, name := range []string{"zz", "aa", "mm"} {
		must(t, unstructured.SetNestedSlice(w.Object, []any{"x"}, "spec", name))
	}
	for range 5 {
		reason(t, c.Status().Update(t.Context(), w.DeepCopy(), client.FieldValidation("Strict")),
			metav1.StatusReasonBadRequest,
			`unknown field "spec.aa", unknown field "spec.mm", unknown field "spec.zz"`)
	}
}

// TestStrictGoType writes a Go type that has a field that the definition does not have.
func TestStrictGoType(t *testing.T) {
	t.Parallel()
	d := widgets()
	d.Name = "apps.example.com"
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "apps", Kind: "App"}
	for _, version := range d.Spec.Versions {
		delete(version.Schema.OpenAPIV3Schema.Properties["spec"].Properties, "size")
		version.Subresources.Scale = nil
	}
	c := newClient(t, d)
	strict := client.FieldValidation("Strict")
	reason(t, c.Create(t.Context(), app("one"), strict), metav1.StatusReasonBadRequest, `unknown field "spec.size"`)
	a := app("one")
	must(t, c.Create(t.Context(), a))
	if a.Spec.Size != 0 {
		t.Errorf("the answer is %+v, want no size", a.Spec)
	}
	a.Status.Ready = true
	must(t, c.Status().Update(t.Context(), a, strict))
	a.Spec.Size = 1
	reason(t, c.Status().Update(t.Context(), a, strict), metav1.StatusReasonBadRequest, `unknown field "spec.size"`)
}

// TestScaleIsOwnedAsASubresource looks at the managed fields after writes of a scale.
func TestScaleIsOwnedAsASubresource(t *testing.T) {
	t.Parallel()
	s := store.New(store.Options{Scheme: newScheme(), ManagedFields: true})
	give(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	c := s.Client(store.ClientOptions{})
	d := deployment("one")
	must(t, c.Create(t.Context(), d))
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
	must(t, c.SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(scale),
		client.FieldOwner("autoscaler")))
	for _, entry := range read(t, c, d).ManagedFields {
		if entry.Manager == "autoscaler" && entry.Subresource == "scale" {
			return
		}
	}
	t.Errorf("the managed fields are %v, want an entry of autoscaler for the scale", read(t, c, d).ManagedFields)
}

// TestPatchOfManagedFields hands the fields of a manager to another, as package csaupgrade of client-go does.
func TestPatchOfManagedFields(t *testing.T) {
	t.Parallel()
	for _, obj := range []client.Object{configMap("one"), widget("one")} {
		s := newStore(t, widgets())
		c := s.Client(store.ClientOptions{FieldManager: "before"})
		must(t, c.Create(t.Context(), obj))
		patch := `[{"op":"replace","path":"/metadata/managedFields/0/manager","value":"after"}]`
		must(t, c.Patch(t.Context(), obj, client.RawPatch(types.JSONPatchType, []byte(patch))))
		if got := read(t, c, obj).GetManagedFields(); len(got) != 1 || got[0].Manager != "after" {
			t.Errorf("the managed fields of %T are %v, want 1 entry, of after", obj, got)
		}
	}
}

func TestStrategicMergePatchErrors(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	d := deployment("one")
	must(t, c.Create(t.Context(), d))
	for _, test := range []struct {
		patch  string
		reason metav1.StatusReason
	}{
		{`{"spec":{"strategy":{"$retainKeys":"x"}}}`, metav1.StatusReasonBadRequest},
		{`{"spec":{"strategy":{"$retainKeys":["x"],"type":"Recreate"}}}`, metav1.StatusReasonBadRequest},
	} {
		err := c.Patch(t.Context(), d, client.RawPatch(types.StrategicMergePatchType, []byte(test.patch)))
		if got := apierrors.ReasonForError(err); got != test.reason {
			t.Errorf("%s: the error is %v with the reason %q, want %q", test.patch, err, got, test.reason)
		}
	}
}

// Wrapped embeds an object, and has no copies but those of the embedded one.
type Wrapped struct{ corev1.ConfigMap }

func TestObjectsWithoutCopiesOfTheirOwn(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(appVersion.WithKind("Wrapped"), &Wrapped{})
	s := store.New(store.Options{Scheme: scheme})
	give(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	c := s.Client(store.ClientOptions{})
	reason(t, c.Create(t.Context(), &Wrapped{*configMap("one")}), "", "needs a method DeepCopyObject of its own")
}

// Remembering has what it does not write.
type Remembering struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Parts             []part `json:"parts,omitempty"`
}

type part struct {
	Name string `json:"name"`
	seen bool   `json:"-"`
}

func (r *Remembering) DeepCopyObject() runtime.Object {
	out := *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Parts = append([]part(nil), r.Parts...)
	return &out
}

// The converter of apimachinery panics at fields that are not exported and are not written.
func TestFieldsThatAreNotExported(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	kind := appVersion.WithKind("Remembering")
	scheme.AddKnownTypeWithName(kind, &Remembering{})
	s := store.New(store.Options{Scheme: scheme})
	give(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	c := s.Client(store.ClientOptions{})
	obj := &Remembering{ObjectMeta: metadata("one"), Parts: []part{{Name: "a", seen: true}}}
	must(t, c.Create(t.Context(), obj))
	must(t, c.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"parts":[{"name":"b"}]}`))))
	if got := read(t, c, obj).Parts; len(got) != 1 || got[0].Name != "b" {
		t.Errorf("after a patch the parts are %v, want b", got)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("ns")
	u.SetName("two")
	u.Object["parts"] = []any{map[string]any{"name": "c"}}
	must(t, c.Create(t.Context(), u))
	if got := read(t, c, &Remembering{ObjectMeta: metadata("two")}).Parts; len(got) != 1 || got[0].Name != "c" {
		t.Errorf("after an unstructured create the parts are %v, want c", got)
	}
}

// TestGiveIsAllOrNothing gives an object that no store can have after one that it can.
func TestGiveIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	revision := s.Revision()
	given := configMap("one")
	given.Namespace, given.ResourceVersion = "more", "5000"
	unknown := &unstructured.Unstructured{}
	unknown.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Unknown"})
	if err := s.Give(widgets(), given, unknown); err == nil {
		t.Fatal("the error is nil, want one of the unknown kind")
	}
	c := s.Client(store.ClientOptions{})
	if s.Revision() != revision || exists(t, c, given) {
		t.Errorf("the store is at revision %d, want %d and nothing given", s.Revision(), revision)
	}
	if err := c.Create(t.Context(), widget("one")); err == nil {
		t.Error("the widget was created, want an error since its definition was not given")
	}
	give(t, s, widgets(), given)
}

func TestApplyOfYAML(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	patch := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {k: z}\n"
	cm := configMap("one")
	apply := client.RawPatch(types.ApplyYAMLPatchType, []byte(patch))
	must(t, c.Patch(t.Context(), cm, apply, client.FieldOwner("one")))
	if cm.Data["k"] != "z" {
		t.Errorf("the data are %v, want k:z", cm.Data)
	}
}

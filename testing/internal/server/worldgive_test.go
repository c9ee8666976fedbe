package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

// unstructuredKinds is [unstructuredTypes] by kind.
func unstructuredKinds(kind schema.GroupKind) *server.Kind {
	t, ok := unstructuredTypes(schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind) + "s"})
	if !ok {
		return nil
	}
	k := server.NewKind(t)
	return &k
}

func (w world) world() server.World {
	return server.World{Storage: w.Storage, Types: unstructuredTypes, Kinds: unstructuredKinds}
}

func (w world) give(objects ...client.Object) {
	w.Helper()
	w.must(w.world().Give(worldScheme(), objects...))
}

// odd has an object have metadata that no server would give it.
func odd(obj client.Object) client.Object {
	obj.SetUID(types.UID(fmt.Sprintf("%T %v %s", obj, obj.GetObjectKind(), obj.GetName())))
	obj.SetResourceVersion("999")
	obj.SetGeneration(7)
	obj.SetCreationTimestamp(metav1.NewTime(time.Date(1999, time.May, 1, 2, 3, 4, 0, time.UTC)))
	obj.SetDeletionTimestamp(&metav1.Time{Time: time.Date(1999, time.May, 2, 0, 0, 0, 0, time.UTC)})
	obj.SetLabels(map[string]string{"not a label": "not a value!"})
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "one", Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: obj.GetObjectKind().GroupVersionKind().GroupVersion().String(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`),
	}})
	return obj
}

// TestGivenObjectsAreReadAsGiven has objects of all sorts of kinds that no server would store.
func TestGivenObjectsAreReadAsGiven(t *testing.T) {
	everywhere(t, 2, func(t *testing.T, _ int) {
		w := newWorld(t)
		w.ctx = w.world().In(w.Context())
		bare := &appsv1.Deployment{ObjectMeta: meta("bare")}
		bare.Status.Replicas = 3
		scaler := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: meta("scaler")}
		scaler.Spec.TargetCPUUtilizationPercentage = ptr.To[int32](0)
		definition := widgetsWith("5")
		definition.Spec.Names.Singular, definition.Spec.Names.ListKind = "", ""
		custom, untyped := typed("example.com", "v1", "Widget", "unknown"), typed("", "v1", "Planet", "field")
		objects := []client.Object{bare, scaler, definition, custom, untyped, &corev1.Pod{ObjectMeta: meta("pod")}}
		for _, obj := range objects {
			odd(obj)
		}
		var sent []client.Object
		for _, obj := range objects {
			sent = append(sent, obj.DeepCopyObject().(client.Object))
		}
		w.give(objects...)
		for i, obj := range objects {
			if !equality.Semantic.DeepEqual(obj, sent[i]) {
				t.Errorf("to be given changed %v to %v", sent[i], obj)
			}
			got := obj.DeepCopyObject().(client.Object)
			w.get(got)
			got.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
			if !equality.Semantic.DeepEqual(got, obj) {
				t.Errorf("given was\n%s\nread is\n%s", asJSON(t, obj), asJSON(t, got))
			}
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "WidgetList"})
		w.must(w.List(w.ctx, list))
		if len(list.Items) != 1 || !equality.Semantic.DeepEqual(&list.Items[0], client.Object(custom)) {
			t.Errorf("listed are %v", list.Items)
		}
		untyped = typed("apps", "v1", "Deployment", "unknown")
		w.give(untyped)
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(untyped), bare))
		if bare.Spec.Replicas != nil || bare.Labels != nil {
			t.Errorf("an unstructured Deployment was given, read is\n%s", asJSON(t, bare))
		}
		if w.Revision() != 999 {
			t.Errorf("the revision is %d, want 999", w.Revision())
		}
	})
}

func asJSON(t testing.TB, obj any) string {
	t.Helper()
	encoded, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestGivenObjectsGetMetadata(t *testing.T) {
	now := time.Date(2030, time.May, 1, 0, 0, 0, 5, time.UTC)
	w := worldOf(t, shared(t), func() time.Time { return now })
	owned := configMap("owned")
	owned.Namespace = "elsewhere"
	owned.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: "owner"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "missing"},
	}
	given, owner := configMap("given"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
	w.give(owned, owner, given, namespaceOf("default"))
	created := configMap("created")
	w.create(created)
	for _, obj := range []client.Object{owned, owner, given} {
		w.get(obj)
	}
	if owned.ResourceVersion != "5" || owner.ResourceVersion != "6" || created.ResourceVersion != "1000" {
		t.Errorf("the versions are %s, %s, %s", owned.ResourceVersion, owner.ResourceVersion, created.ResourceVersion)
	}
	if owned.OwnerReferences[0].UID != owner.UID || owner.UID == "" || owned.OwnerReferences[1].UID != "" {
		t.Errorf("the owners are %v", owned.OwnerReferences)
	}
	if !given.CreationTimestamp.Equal(&metav1.Time{Time: now.Truncate(time.Second)}) || given.Generation != 0 {
		t.Errorf("the object has the metadata %v", given.ObjectMeta)
	}
	elsewhere := namespaceOf("elsewhere")
	w.get(elsewhere)
	if elsewhere.Status.Phase != corev1.NamespaceActive {
		t.Errorf("the namespace is %v", elsewhere)
	}
	// As if it had been created.
	w.must(w.Delete(w.ctx, created))
	other := newWorld(t)
	other.give(configMap("created"))
	again := configMap("created")
	other.get(again)
	if again.UID != created.UID {
		t.Errorf("the UID is %s, want %s", again.UID, created.UID)
	}
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestObjectsThatCannotBeGiven(t *testing.T) {
	w := newWorld(t)
	w.give(configMap("there"))
	same := configMap("same")
	same.UID = "same"
	version, nowhere := configMap("version"), configMap("nowhere")
	version.ResourceVersion = "first"
	nowhere.Namespace = ""
	late := typed("example.com", "v9", "Widget", "field")
	for want, obj := range map[string]client.Object{
		"ConfigMap default/there: it is already there":                    configMap("there"),
		`ConfigMap default/twin: its UID "same" is that of ConfigMap`:     withUID(configMap("twin"), "same"),
		`ConfigMap default/version: the resource version "first" is no`:   version,
		"ConfigMap /nowhere: it has no namespace":                         nowhere,
		"ConfigMap default/: it has no name":                              configMap(""),
		`Widget default/a: no matches for kind "Widget" in version "exam`: late,
		"request is too large":                                            large("large"),
	} {
		err := w.world().Give(worldScheme(), same, obj)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	w.refused(w.Get(w.ctx, client.ObjectKeyFromObject(same), same), func(err error) bool { return err != nil })
}

func withUID(obj *corev1.ConfigMap, uid types.UID) *corev1.ConfigMap {
	obj.UID = uid
	return obj
}

func large(name string) *corev1.ConfigMap {
	obj := configMap(name)
	obj.Data["a"] = strings.Repeat("a", 2<<20)
	return obj
}

// TestGivenObjectsAreUpdated changes objects that lack defaults.
func TestGivenObjectsAreUpdated(t *testing.T) {
	w := newWorld(t)
	bare, custom := deployment("bare"), widget("a", 0)
	bare.Spec.Replicas = nil
	w.give(widgetsWith("5"), bare, custom)
	w.get(bare)
	version := bare.ResourceVersion
	w.must(w.Update(w.ctx, bare))
	if bare.ResourceVersion != version {
		t.Error("an update without change is a write")
	}
	for _, change := range []func() error{
		func() error { bare.Labels = map[string]string{"a": "b"}; return w.Update(w.ctx, bare) },
		func() error { bare.Status.Replicas = 1; return w.Status().Update(w.ctx, bare) },
		func() error {
			return w.Patch(w.ctx, bare, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["a/b"]}}`)))
		},
	} {
		w.must(change())
		if bare.Spec.Replicas != nil || bare.Generation != 1 {
			t.Errorf("an update of anything but the contents made\n%s", asJSON(t, bare))
		}
	}
	bare.Spec.MinReadySeconds = 5
	w.must(w.Update(w.ctx, bare))
	if bare.Spec.Replicas == nil || bare.Generation != 2 {
		t.Errorf("an update of the contents made\n%s", asJSON(t, bare))
	}
	w.get(custom)
	if _, ok, _ := unstructured.NestedInt64(custom.Object, "spec", "size"); ok {
		t.Errorf("a given object is read with defaults: %v", custom.Object)
	}
	custom.SetLabels(map[string]string{"a": "b"})
	w.must(w.Update(w.ctx, custom))
	w.get(custom)
	if size, _, _ := unstructured.NestedInt64(custom.Object, "spec", "size"); size != 5 || custom.GetGeneration() != 1 {
		t.Errorf("an update made %v", custom.Object)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "widgets.example.com"
	w.get(definition)
	w.must(w.Update(w.ctx, definition))
	if definition.Spec.Conversion == nil || definition.Generation != 1 {
		t.Errorf("an update made\n%s", asJSON(t, definition))
	}
}

// TestGivenObjectsInForks has given objects and definitions in forks, which differ.
func TestGivenObjectsInForks(t *testing.T) {
	base := newWorld(t)
	base.give(widgetsWith("5"))
	w := base.fork()
	w.give(widget("a", 0))
	other := base.fork()
	other.give(odd(widget("a", 2)))
	for _, test := range []struct {
		world
		size int64
	}{{w, 0}, {other, 2}} {
		obj := widget("a", 0)
		test.get(obj)
		if size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size"); size != test.size {
			t.Errorf("the size is %d, want %d", size, test.size)
		}
	}
}

// TestDefinedKind has a definition with several versions, and deletes it.
func TestDefinedKind(t *testing.T) {
	w := newWorld(t)
	d := widgets()
	d.Spec.Names.Singular = "gizmo"
	second := *d.Spec.Versions[0].DeepCopy()
	second.Name, second.Storage = "v2", false
	hidden := *second.DeepCopy()
	hidden.Name, hidden.Served = "v3", false
	d.Spec.Versions = append([]apiextensionsv1.CustomResourceDefinitionVersion{hidden, second}, d.Spec.Versions...)
	w.give(d)
	bare := w.world()
	bare.Kinds = nil
	widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	k, ok := bare.Kind(widget)
	if !ok || k.Singular != "gizmo" || len(k.Versions) != 2 || k.Versions[0].Name != "v1" || !k.Versions[0].HasStatus {
		t.Errorf("the kind is %+v, want gizmo with v1, which is stored, and v2", k)
	}
	w.must(w.Delete(w.ctx, d))
	if _, ok := bare.Kind(widget); ok {
		t.Error("a kind is served whose definition was deleted, want it not to be")
	}
}

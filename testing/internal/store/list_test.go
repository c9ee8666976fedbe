package store_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

func TestListSelects(t *testing.T) {
	t.Parallel()
	labelled, elsewhere := configMap("b"), configMap("a")
	labelled.Labels = map[string]string{"a": "b"}
	elsewhere.Namespace = "more"
	c := newClient(t, configMap("c"), labelled, elsewhere)
	notB, err := labels.Parse("a!=b")
	must(t, err)
	for _, test := range []struct {
		name    string
		options []client.ListOption
		want    []string
	}{
		{"all", nil, []string{"a", "b", "c"}},
		{"a namespace", []client.ListOption{client.InNamespace("ns")}, []string{"b", "c"}},
		{"an empty namespace", []client.ListOption{client.InNamespace("none")}, nil},
		{"labels", []client.ListOption{client.MatchingLabels{"a": "b"}}, []string{"b"}},
		{"other labels", []client.ListOption{client.MatchingLabelsSelector{Selector: notB}}, []string{"a", "c"}},
		{"the name", []client.ListOption{client.MatchingFields{"metadata.name": "c"}}, []string{"c"}},
		{"another name", []client.ListOption{client.MatchingFieldsSelector{
			Selector: fields.OneTermNotEqualSelector("metadata.name", "c"),
		}}, []string{"a", "b"}},
		{"the field of a namespace", []client.ListOption{client.MatchingFields{"metadata.namespace": "more"}},
			[]string{"a"}},
	} {
		if got := names(t, c, test.options...); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
	err = c.List(t.Context(), &corev1.ConfigMapList{}, client.MatchingFields{"data.k": "v"})
	reason(t, err, metav1.StatusReasonBadRequest, "data.k")
}

func TestFieldsOfKinds(t *testing.T) {
	t.Parallel()
	event := &corev1.Event{ObjectMeta: metadata("one"), InvolvedObject: corev1.ObjectReference{Kind: "App", Name: "a"}}
	red := widget("red")
	must(t, unstructured.SetNestedField(red.Object, "red", "spec", "color"))
	c := newClient(t, widgets(), red, widget("blue"), event,
		&corev1.Pod{ObjectMeta: metadata("one"), Spec: corev1.PodSpec{NodeName: "a"}},
		&corev1.Pod{ObjectMeta: metadata("two"), Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	widgetList := &unstructured.UnstructuredList{}
	widgetList.SetGroupVersionKind(appVersion.WithKind("WidgetList"))
	for _, test := range []struct {
		list   client.ObjectList
		fields client.MatchingFields
		want   string
	}{
		{&corev1.PodList{}, client.MatchingFields{"spec.nodeName": "a"}, "one"},
		{&corev1.PodList{}, client.MatchingFields{"status.phase": "Running"}, "two"},
		{&corev1.EventList{}, client.MatchingFields{"involvedObject.name": "a", "involvedObject.kind": "App"}, "one"},
		{&corev1.EventList{}, client.MatchingFields{"involvedObject.name": "b"}, ""},
		{widgetList, client.MatchingFields{"spec.color": "red"}, "red"},
	} {
		must(t, c.List(t.Context(), test.list, test.fields))
		if got := onlyName(t, test.list); got != test.want {
			t.Errorf("%v: got %q, want %q", test.fields, got, test.want)
		}
	}
	reason(t, c.List(t.Context(), widgetList, client.MatchingFields{"spec.size": "1"}),
		metav1.StatusReasonBadRequest, "field label not supported: spec.size")
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for i := range 5 {
		give(t, s, configMap(fmt.Sprint("c", i)))
	}
	c := s.Client(store.ClientOptions{})
	first, second := &corev1.ConfigMapList{}, &corev1.ConfigMapList{}
	must(t, c.List(t.Context(), first, client.InNamespace("ns"), client.Limit(2)))
	if len(first.Items) != 2 || first.Continue == "" || *first.RemainingItemCount != 3 ||
		first.ResourceVersion != "999" {
		t.Fatalf("the first page is %+v, want 2 items of revision 999 and 3 to come", first)
	}
	must(t, c.Delete(t.Context(), configMap("c3")))
	must(t, c.List(t.Context(), second, client.InNamespace("ns"), client.Limit(9), client.Continue(first.Continue)))
	if len(second.Items) != 3 || second.Items[1].Name != "c3" || second.Continue != "" ||
		second.ResourceVersion != "999" {
		t.Errorf("the second page is %+v, want the last 3 items of revision 999, with c3", second)
	}
	must(t, c.List(t.Context(), second))
	if len(second.Items) != 4 || second.ResourceVersion != "1000" {
		t.Errorf("the list is %+v, want 4 items of revision 1000", second)
	}
	err := c.List(t.Context(), first, client.Continue("?"))
	reason(t, err, metav1.StatusReasonBadRequest, "continue key is not valid")
	exact := &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: "999", ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}}
	if got := names(t, c, exact); len(got) != 5 {
		t.Errorf("at the first revision there were %v, want 5 objects", got)
	}
}

// TestForms reads an object in each of the forms that callers want.
func TestForms(t *testing.T) {
	t.Parallel()
	mapKind, widgetKind := corev1.SchemeGroupVersion.WithKind("ConfigMap"), appVersion.WithKind("Widget")
	s := newStore(t, widgets(), configMap("one"), widget("one"), app("one"))
	for _, cached := range []bool{false, true} {
		options := store.ClientOptions{}
		if cached {
			options.View = store.NewView()
		}
		c := s.Client(options)
		for _, gvk := range []schema.GroupVersionKind{mapKind, widgetKind, appVersion.WithKind("App")} {
			u, partial := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
			for _, obj := range []client.Object{u, partial} {
				obj.GetObjectKind().SetGroupVersionKind(gvk)
				must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "one"}, obj))
				if obj.GetObjectKind().GroupVersionKind() != gvk || obj.GetUID() == "" {
					t.Errorf("the object is %v, want a UID and the kind %s", obj, gvk)
				}
			}
			list, partials := &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}
			for _, l := range []client.ObjectList{list, partials} {
				l.GetObjectKind().SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
				must(t, c.List(t.Context(), l))
				if got := onlyName(t, l); got != "one" || l.GetObjectKind().GroupVersionKind().Kind != gvk.Kind+"List" {
					t.Errorf("the list is %v, want the object one and the kind %sList", l, gvk.Kind)
				}
			}
			if list.Items[0].GroupVersionKind() != gvk || partials.Items[0].GroupVersionKind() != gvk {
				t.Errorf("the items are %v and %v, want the kind %s", list.Items[0], partials.Items[0], gvk)
			}
		}
		cm := read(t, c, configMap("one"))
		if want := (schema.GroupVersionKind{}); !cached && cm.GroupVersionKind() != want ||
			cached && cm.GroupVersionKind() != mapKind {
			t.Errorf("cached %t: the kind is %s, want none, and %s of the cache", cached, cm.GroupVersionKind(),
				mapKind)
		}
	}
}

func TestAnswersHaveTheKindThatTheyHad(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	cm := configMap("one")
	cm.SetGroupVersionKind(kind)
	must(t, c.Create(t.Context(), cm))
	if got := cm.GroupVersionKind(); !got.Empty() {
		t.Errorf("create: the kind is %s, want none", got)
	}
	cm.SetGroupVersionKind(kind)
	must(t, c.Update(t.Context(), cm))
	if got := cm.GroupVersionKind(); got != kind {
		t.Errorf("update: the kind is %s, want %s", got, kind)
	}
}

func TestReadsReplaceWhatWasThere(t *testing.T) {
	t.Parallel()
	c := newClient(t, configMap("one"))
	cm := configMap("one")
	cm.Data, cm.Labels = map[string]string{"other": "x"}, map[string]string{"other": "x"}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
	if len(cm.Labels) > 0 || len(cm.Data) != 1 {
		t.Errorf("the object is %+v, want no label and one value", cm)
	}
	list := &corev1.ConfigMapList{Items: []corev1.ConfigMap{*cm, *cm}}
	must(t, c.List(t.Context(), list, client.InNamespace("none")))
	if len(list.Items) != 0 {
		t.Errorf("the items are %+v, want none", list.Items)
	}
}

// TestAnswersAreCopies changes what was answered, and what was sent.
func TestAnswersAreCopies(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets(), widget("one"))
	cm := configMap("one")
	must(t, c.Create(t.Context(), cm))
	cm.Data["k"] = "changed"
	got := read(t, c, cm)
	got.Data["k"] = "changed"
	list := &corev1.ConfigMapList{}
	must(t, c.List(t.Context(), list))
	list.Items[0].Data["k"] = "changed"
	if got := read(t, c, cm); got.Data["k"] != "v" {
		t.Errorf("the data are %v, want k:v", got.Data)
	}
	w := read(t, c, widget("one"))
	must(t, unstructured.SetNestedField(w.Object, int64(7), "spec", "size"))
	if size, _, _ := unstructured.NestedInt64(read(t, c, w).Object, "spec", "size"); size != 1 {
		t.Errorf("the size is %d, want 1", size)
	}
}

// onlyName returns the name of the only item, or nothing.
func onlyName(t *testing.T, list client.ObjectList) string {
	t.Helper()
	items, err := meta.ExtractList(list)
	must(t, err)
	switch len(items) {
	case 0:
		return ""
	case 1:
		return items[0].(client.Object).GetName()
	}
	t.Errorf("there are %d items, want at most 1", len(items))
	return ""
}

package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// receive returns the next n events, such as "ADDED one 1000".
func receive(t *testing.T, w watch.Interface, n int) []string {
	t.Helper()
	var events []string
	for range n {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("the watch ended after %v, want %d events", events, n)
			}
			obj := event.Object.(client.Object)
			events = append(events, fmt.Sprint(event.Type, " ", obj.GetName(), " ", obj.GetResourceVersion()))
		case <-t.Context().Done():
			t.Fatalf("the events are %v, want %d", events, n)
		}
	}
	return events
}

// TestWatch makes the same changes under watches with different options.
func TestWatch(t *testing.T) {
	t.Parallel()
	raw := func(options metav1.ListOptions) client.ListOption { return &client.ListOptions{Raw: &options} }
	for _, test := range []struct {
		name    string
		options []client.ListOption
		want    []string
	}{
		{"everything", nil, []string{
			"ADDED given 5", "ADDED elsewhere 1000", "ADDED one 1001", "MODIFIED one 1002", "DELETED one 1003",
			"DELETED given 1004",
		}},
		{"a namespace", []client.ListOption{client.InNamespace("ns")}, []string{
			"ADDED given 5", "ADDED one 1001", "MODIFIED one 1002", "DELETED one 1003", "DELETED given 1004",
		}},
		{"a label", []client.ListOption{client.MatchingLabels{"changed": "true"}}, []string{
			"ADDED one 1002", "DELETED one 1003",
		}},
		{"no label", []client.ListOption{client.InNamespace("ns"), without(t, "changed")}, []string{
			"ADDED given 5", "ADDED one 1001", "DELETED one 1002", "DELETED given 1004",
		}},
		{"a name", []client.ListOption{client.MatchingFields{"metadata.name": "given"}}, []string{
			"ADDED given 5", "DELETED given 1004",
		}},
		{"after a version", []client.ListOption{raw(metav1.ListOptions{ResourceVersion: "1002"})}, []string{
			"DELETED one 1003", "DELETED given 1004",
		}},
		{"with a bookmark", []client.ListOption{client.InNamespace("ns"), raw(metav1.ListOptions{
			SendInitialEvents: new(true), AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})}, []string{"ADDED given 5", "BOOKMARK  999", "ADDED one 1001"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			given := configMap("given")
			given.ResourceVersion = "5"
			s := newStore(t, given, namespace("more"))
			c := s.Client(store.ClientOptions{})
			w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, test.options...)
			must(t, err)
			defer w.Stop()
			change(t, c)
			if got := receive(t, w, len(test.want)); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// change makes the changes of TestWatch.
func change(t *testing.T, c client.Client) {
	t.Helper()
	elsewhere, one := configMap("elsewhere"), configMap("one")
	elsewhere.Namespace = "more"
	must(t, c.Create(t.Context(), elsewhere))
	must(t, c.Create(t.Context(), one))
	label(one)
	must(t, c.Update(t.Context(), one))
	must(t, c.Delete(t.Context(), one))
	must(t, c.Delete(t.Context(), configMap("given")))
}

func without(t *testing.T, key string) client.ListOption {
	t.Helper()
	selector, err := labels.Parse("!" + key)
	must(t, err)
	return client.MatchingLabelsSelector{Selector: selector}
}

func TestWatchForms(t *testing.T) {
	t.Parallel()
	kind := appVersion.WithKind("WidgetList")
	objects, partials := &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}
	c := newClient(t, widgets(), widget("one"))
	for _, list := range []client.ObjectList{objects, partials} {
		list.GetObjectKind().SetGroupVersionKind(kind)
		w, err := c.Watch(t.Context(), list)
		must(t, err)
		event := <-w.ResultChan()
		w.Stop()
		if got := event.Object.GetObjectKind().GroupVersionKind(); got != appVersion.WithKind("Widget") {
			t.Errorf("the kind is %s, want %s", got, appVersion.WithKind("Widget"))
		}
	}
}

// TestWatchEnds ends watches that nobody receives from, in two ways. TestMain looks for goroutines.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	c := newClient(t, configMap("given"))
	ctx, cancel := context.WithCancel(t.Context())
	stopped, err := c.Watch(t.Context(), &corev1.ConfigMapList{})
	must(t, err)
	ended, err := c.Watch(ctx, &corev1.ConfigMapList{})
	must(t, err)
	must(t, c.Create(t.Context(), configMap("one")))
	stopped.Stop()
	stopped.Stop()
	cancel()
	for range stopped.ResultChan() {
	}
	for range ended.ResultChan() {
	}
}

func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	_, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: "x"},
	})
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "invalid") {
		t.Errorf("got the error %v, want one about the invalid version", err)
	}
	_, err = c.Watch(t.Context(), &corev1.ConfigMapList{}, client.MatchingFields{"data": "x"})
	reason(t, err, metav1.StatusReasonBadRequest, "data")
}

func TestWatchOfAnObjectThatIsNoLongerSelected(t *testing.T) {
	t.Parallel()
	c := newClient(t, configMap("one"))
	w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("ns"), without(t, "changed"))
	must(t, err)
	defer w.Stop()
	receive(t, w, 1)
	cm := read(t, c, configMap("one"))
	label(cm)
	must(t, c.Update(t.Context(), cm))
	event := <-w.ResultChan()
	got := event.Object.(client.Object)
	if event.Type != watch.Deleted || len(got.GetLabels()) > 0 || got.GetResourceVersion() != cm.ResourceVersion {
		t.Errorf("the event is %s %v, want the deletion at version %s, without labels", event.Type, got,
			cm.ResourceVersion)
	}
}

// The size of an App is a number in Go, and text in its definition.
func TestAWatchTellsOfWhatItCannotConvert(t *testing.T) {
	t.Parallel()
	definition := widgets()
	definition.Name = "apps.example.com"
	definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "apps", Singular: "app", Kind: "App", ListKind: "AppList",
	}
	definition.Spec.Versions = definition.Spec.Versions[:1]
	definition.Spec.Versions[0].Subresources = nil // A scale would be a number.
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["size"] = text
	c := newClient(t, definition)
	w, err := c.Watch(t.Context(), &AppList{})
	must(t, err)
	defer w.Stop()
	must(t, c.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": appVersion.String(), "kind": "App", "metadata": map[string]any{"namespace": "ns", "name": "one"},
		"spec": map[string]any{"size": "big"},
	}}))
	event := <-w.ResultChan()
	err = apierrors.FromObject(event.Object)
	if event.Type != watch.Error {
		t.Errorf("got %s: %v, want an error", event.Type, err)
	}
}

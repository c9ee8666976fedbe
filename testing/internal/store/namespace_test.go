package store_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestNamespacesOfTheControlPlane(t *testing.T) {
	t.Parallel()
	s := store.New(store.Options{Scheme: newScheme()})
	c := s.Client(store.ClientOptions{})
	list := &corev1.NamespaceList{}
	must(t, c.List(t.Context(), list))
	var got []string
	for _, ns := range list.Items {
		got = append(got, ns.Name)
		if ns.Status.Phase != corev1.NamespaceActive || ns.UID == "" {
			t.Errorf("the namespace is %+v, want it active and with a UID", ns)
		}
	}
	if want := []string{"default", "kube-node-lease", "kube-public", "kube-system"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, name := range []string{"default", "kube-public", "kube-system"} {
		err := c.Delete(t.Context(), namespace(name))
		reason(t, err, metav1.StatusReasonForbidden, "this namespace may not be deleted")
	}
}

// A given namespace takes the place of one that the control plane has made, once.
func TestGivenNamespaceOfTheControlPlane(t *testing.T) {
	t.Parallel()
	given := namespace("default")
	given.UID, given.Labels = "given-uid", map[string]string{"a": "b"}
	s := store.New(store.Options{Scheme: newScheme()})
	must(t, s.Give(given))
	got := read(t, s.Client(store.ClientOptions{}), namespace("default"))
	if got.UID != "given-uid" || got.Labels["a"] != "b" {
		t.Errorf("got the UID %q and the labels %v, want those of the given one", got.UID, got.Labels)
	}
	if err := store.New(store.Options{Scheme: newScheme()}).Give(given, given); err == nil {
		t.Error("it was given twice, want an error")
	}
}

func TestNamespaceDeletion(t *testing.T) {
	t.Parallel()
	s := newStore(t, configMap("one"), held(configMap("two")), held(namespace("held")), namespace("empty"))
	c := s.Client(store.ClientOptions{})
	for _, name := range []string{"ns", "held", "empty"} {
		must(t, c.Delete(t.Context(), namespace(name)))
		ns := read(t, c, namespace(name))
		if ns.DeletionTimestamp == nil || ns.Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("the namespace is %+v, want it terminating", ns)
		}
		revision := s.Revision()
		must(t, c.Delete(t.Context(), namespace(name)))
		if s.Revision() != revision {
			t.Errorf("a second delete brought the store to revision %d, want %d", s.Revision(), revision)
		}
	}
	if !exists(t, c, configMap("one")) {
		t.Error("an object is gone at once, want it there until the garbage is collected")
	}
	s.CollectGarbage()
	if exists(t, c, configMap("one")) || read(t, c, configMap("two")).DeletionTimestamp == nil {
		t.Error("the namespace was not emptied, want one gone and two to be deleted")
	}
	for name, want := range map[string]bool{"ns": true, "held": true, "empty": false} {
		if exists(t, c, namespace(name)) != want {
			t.Errorf("%s: the namespace is there: %t, want %t", name, exists(t, c, namespace(name)), want)
		}
	}
	two := read(t, c, configMap("two"))
	two.Finalizers = nil
	must(t, c.Update(t.Context(), two))
	ns := read(t, c, namespace("held"))
	ns.Finalizers = nil
	must(t, c.Update(t.Context(), ns))
	s.CollectGarbage()
	if exists(t, c, namespace("ns")) || exists(t, c, namespace("held")) {
		t.Error("a namespace is there without contents and finalizers, want it gone")
	}
	must(t, c.Create(t.Context(), namespace("ns")))
	must(t, c.Create(t.Context(), configMap("one")))
}

// TestGivenNamespaces gives an object in a namespace that was not given.
func TestGivenNamespaces(t *testing.T) {
	t.Parallel()
	elsewhere := configMap("one")
	elsewhere.Namespace = "made"
	c := newClient(t, elsewhere)
	if got := read(t, c, namespace("made")); got.Status.Phase != corev1.NamespaceActive {
		t.Errorf("the namespace is %+v, want it active", got)
	}
}

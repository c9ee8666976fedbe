package store_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// world is a store whose objects are ConfigMaps that own each other.
type world struct {
	*testing.T
	store *store.Store
	c     client.Client
}

func newWorld(t *testing.T) world {
	t.Helper()
	s := newStore(t)
	return world{t, s, s.Client(store.ClientOptions{})}
}

// create makes a ConfigMap with owners in the same namespace.
func (w world) create(name string, change func(*corev1.ConfigMap), owners ...string) {
	w.Helper()
	cm := configMap(name)
	for _, owner := range owners {
		reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: "gone"}
		found := configMap(owner)
		if err := w.c.Get(w.Context(), client.ObjectKeyFromObject(found), found); err == nil {
			reference.UID = found.UID
		}
		cm.OwnerReferences = append(cm.OwnerReferences, reference)
	}
	if change != nil {
		change(cm)
	}
	must(w, w.c.Create(w.Context(), cm))
}

func (w world) delete(name string, policy metav1.DeletionPropagation) {
	w.Helper()
	must(w, w.c.Delete(w.Context(), configMap(name), client.PropagationPolicy(policy)))
}

// want collects garbage and checks what is left.
func (w world) want(names ...string) {
	w.Helper()
	w.store.CollectGarbage()
	left := map[string]bool{}
	list := &corev1.ConfigMapList{}
	must(w, w.c.List(w.Context(), list, client.InNamespace("ns")))
	for _, item := range list.Items {
		left[item.Name] = true
	}
	for _, name := range names {
		if !left[name] {
			w.Errorf("%s is gone, want it there", name)
		}
		delete(left, name)
	}
	if len(left) > 0 {
		w.Errorf("%v are left, want them gone", left)
	}
	if w.store.CollectGarbage() {
		w.Error("there is more garbage, want none")
	}
}

func (w world) release(name string) {
	w.Helper()
	cm := read(w, w.c, configMap(name))
	cm.Finalizers = nil
	must(w, w.c.Update(w.Context(), cm))
}

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

func blocking(cm *corev1.ConfigMap) { cm.OwnerReferences[0].BlockOwnerDeletion = new(true) }

func holding(cm *corev1.ConfigMap) { cm.Finalizers = []string{hold} }

func TestGarbage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(world){
		"nothing to do": func(w world) {
			w.create("owner", nil)
			w.create("child", nil, "owner")
			w.want("owner", "child")
		},
		"background, a chain of owners": func(w world) {
			w.create("owner", nil)
			w.create("child", nil, "owner")
			w.create("grandchild", nil, "child")
			w.create("other", nil)
			w.delete("owner", background)
			w.want("other")
		},
		"an owner that never was": func(w world) {
			w.create("child", nil, "owner")
			w.want()
		},
		"an owner that was created again": func(w world) {
			w.create("owner", nil)
			w.create("child", nil, "owner")
			w.delete("owner", background)
			w.create("owner", nil)
			w.want("owner")
		},
		"a finalizer": func(w world) {
			w.create("owner", nil)
			w.create("child", holding, "owner")
			w.delete("owner", background)
			w.want("child")
			w.release("child")
			w.want()
		},
		"one owner of two": func(w world) {
			w.create("owner", nil)
			w.create("other", nil)
			w.create("child", nil, "owner", "other")
			w.delete("owner", background)
			w.want("other", "child")
			if got := read(w, w.c, configMap("child")).OwnerReferences; len(got) != 1 || got[0].Name != "other" {
				w.Errorf("the owners are %v, want other alone", got)
			}
			w.delete("other", background)
			w.want()
		},
		"foreground": func(w world) {
			w.create("owner", nil)
			w.create("child", func(cm *corev1.ConfigMap) { blocking(cm); holding(cm) }, "owner")
			w.delete("owner", foreground)
			w.want("owner", "child")
			w.release("child")
			w.want()
		},
		"foreground with a dependent that does not block": func(w world) {
			w.create("owner", nil)
			w.create("child", holding, "owner")
			w.delete("owner", foreground)
			w.want("child")
		},
		"foreground of a chain": func(w world) {
			w.create("owner", nil)
			w.create("child", blocking, "owner")
			w.create("grandchild", func(cm *corev1.ConfigMap) { blocking(cm); holding(cm) }, "child")
			w.delete("owner", foreground)
			w.want("owner", "child", "grandchild")
			w.release("grandchild")
			w.want()
		},
		"orphan": func(w world) {
			w.create("owner", nil)
			w.create("child", nil, "owner")
			w.delete("owner", orphan)
			w.want("child")
			if got := read(w, w.c, configMap("child")).OwnerReferences; got != nil {
				w.Errorf("the owners are %v, want none", got)
			}
		},
		"orphan of several dependents, one of which has two owners": func(w world) {
			w.create("owner", nil)
			w.create("other", nil)
			w.create("a", nil, "owner")
			w.create("b", blocking, "owner")
			w.create("both", nil, "owner", "other")
			w.delete("owner", orphan)
			if got := read(w, w.c, configMap("owner")).Finalizers; len(got) != 1 || got[0] != "orphan" {
				w.Errorf("the finalizers are %v, want orphan", got)
			}
			w.want("other", "a", "b", "both")
			for name, want := range map[string]int{"a": 0, "b": 0, "both": 1} {
				if got := read(w, w.c, configMap(name)).OwnerReferences; len(got) != want {
					w.Errorf("the owners of %s are %v, want %d", name, got, want)
				}
			}
			w.delete("other", background)
			w.want("a", "b")
		},
		"orphan of an owner with a finalizer": func(w world) {
			w.create("owner", holding)
			w.create("child", nil, "owner")
			w.delete("owner", orphan)
			w.want("owner", "child")
			w.release("owner")
			w.want("child")
		},
		"foreground of a circle": func(w world) {
			w.create("a", nil)
			w.create("b", blocking, "a")
			a, b := read(w, w.c, configMap("a")), read(w, w.c, configMap("b"))
			a.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: "b", UID: b.UID, BlockOwnerDeletion: new(true),
			}}
			must(w, w.c.Update(w.Context(), a))
			w.delete("a", foreground)
			w.want()
		},
		"an owner in another namespace": func(w world) {
			give(w, w.store, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
			owner := configMap("owner")
			owner.Namespace = "other"
			must(w, w.c.Create(w.Context(), owner))
			w.create("child", func(cm *corev1.ConfigMap) {
				cm.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID},
				}
			})
			w.want()
		},
		"an owner of an unknown kind": func(w world) {
			w.create("child", func(cm *corev1.ConfigMap) {
				cm.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "unknown.com/v1", Kind: "Unknown", Name: "owner", UID: "1"},
				}
			})
			w.want("child")
		},
		"an owner that is gone, and one of an unknown kind": func(w world) {
			w.create("child", func(cm *corev1.ConfigMap) {
				cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{
					APIVersion: "unknown.com/v1", Kind: "Unknown", Name: "owner", UID: "1",
				})
			}, "owner")
			w.want("child")
		},
		"an owner in no namespace": func(w world) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
			must(w, w.c.Create(w.Context(), node))
			w.create("child", func(cm *corev1.ConfigMap) {
				cm.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "Node", Name: "node", UID: node.UID},
				}
			})
			w.want("child")
			must(w, w.c.Delete(w.Context(), node))
			w.want()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t))
		})
	}
}

func TestGarbageIsCollectedByTheControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("child", nil, "owner")
	revision := w.store.Revision()
	if !w.store.CollectGarbage() {
		t.Error("nothing changed, want the child collected")
	}
	changes := w.store.Changes(revision)
	if len(changes) != 1 || changes[0].Manager != "" || changes[0].After != nil ||
		changes[0].Key.String() != "ConfigMap ns/child" {
		t.Errorf("the changes are %+v, want the deletion of ConfigMap ns/child by no manager", changes)
	}
}

// TestGivenGarbage gives a dependent after garbage was collected.
func TestGivenGarbage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.CollectGarbage()
	child := configMap("child")
	child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1"}}
	give(t, w.store, child)
	w.want()
}

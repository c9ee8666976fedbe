package reconcilers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nursery makes random objects, and changes them at random, from a seed.
type nursery struct{ *rand.Rand }

func (n nursery) text() string {
	texts := []string{"", "a", "b", "ü", "<&>", "\x00", "\u2028", `"`, "{}", "null", "1", "\xff"}
	return texts[n.IntN(len(texts))]
}

func (n nursery) texts() map[string]string {
	if n.IntN(4) == 0 {
		return nil
	}
	texts := map[string]string{}
	for range n.IntN(4) {
		texts[n.text()] = n.text()
	}
	return texts
}

func (n nursery) number() int64 {
	return []int64{0, 1, 1<<53 + 1, 1<<63 - 1, -1}[n.IntN(5)]
}

func (n nursery) time() metav1.Time {
	return metav1.NewTime(requestTime.Add(time.Duration(n.IntN(1000)) * time.Second))
}

func (n nursery) metadata() metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: n.text(), Namespace: n.text(), UID: types.UID(n.text()), ResourceVersion: n.text(),
		Generation: n.number(), Labels: n.texts(), Annotations: n.texts(), CreationTimestamp: n.time(),
	}
	for range n.IntN(3) {
		m.Finalizers = append(m.Finalizers, n.text())
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{Kind: n.text(), Controller: new(n.IntN(2) == 0)})
	}
	if n.IntN(3) == 0 {
		m.DeletionTimestamp = new(n.time())
	}
	return m
}

func (n nursery) widget() *resources.Widget {
	w := &resources.Widget{ObjectMeta: n.metadata()}
	if n.IntN(2) == 0 {
		w.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
	}
	w.Spec.Fields = n.texts()
	w.Status.Fields = n.texts()
	w.Status.ObservedGeneration = n.number()
	for range n.IntN(4) {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
			Type: n.text(), Status: metav1.ConditionStatus(n.text()), Message: n.text(), LastTransitionTime: n.time(), ObservedGeneration: n.number(),
		})
	}
	return w
}

// grow changes what a tree of JSON has in it: members and items come, go, move and change. It stays fit for the type it is of.
func (n nursery) grow(tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		return n.growObject(tree)
	case []any:
		return n.growList(tree)
	case int64:
		return n.number()
	case bool:
		return !tree
	}
	return tree
}

func (n nursery) growObject(tree map[string]any) any {
	texts := true
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		_, isText := tree[name].(string)
		texts = texts && isText
		switch n.IntN(6) {
		case 0:
			delete(tree, name)
		case 1, 2, 3:
			tree[name] = n.grow(tree[name])
		}
	}
	if texts {
		tree[n.text()] = n.text()
	}
	return tree
}

func (n nursery) growList(tree []any) any {
	if len(tree) == 0 {
		return tree
	}
	i, j := n.IntN(len(tree)), n.IntN(len(tree))
	switch n.IntN(4) {
	case 0:
		return slices.Delete(tree, i, i+1)
	case 1:
		tree[i], tree[j] = tree[j], tree[i]
	case 2:
		return append(tree, tree[i])
	default:
		tree[i] = n.grow(tree[i])
	}
	return tree
}

// growView changes the containers as a node sees them.
func (n nursery) growView(containers []containerView) []containerView {
	for range 1 + n.IntN(3) {
		if len(containers) == 0 {
			return append(containers, containerView{Name: "first"})
		}
		i, j := n.IntN(len(containers)), n.IntN(len(containers))
		switch n.IntN(5) {
		case 0:
			containers = slices.Delete(containers, i, i+1)
		case 1:
			containers[i], containers[j] = containers[j], containers[i]
		case 2:
			containers = slices.Insert(containers, i, containerView{Name: fmt.Sprint("new-", n.Uint32())})
		case 3:
			containers[i].Image = fmt.Sprint("image-", n.Uint32())
		default:
			containers[i].Name = fmt.Sprint("renamed-", n.Uint32())
		}
	}
	return containers
}

// castAndChange runs a cast over a node that does nothing but change.
func castAndChange[From, To client.Object](resource From, change func(To)) error {
	node := &reconcilers.CastResource[From, To]{Reconciler: &reconcilers.SyncReconciler[To]{
		SyncDuringFinalization: true,
		Sync: func(_ context.Context, cast To) error {
			change(cast)
			return nil
		},
	}}
	_, err := node.Reconcile(context.Background(), resource)
	return err
}

func sameForm(expected, actual any) error {
	var forms [2]any
	for i, v := range []any{expected, actual} {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		if err := decoder.Decode(&forms[i]); err != nil {
			return err
		}
	}
	if diff := cmp.Diff(forms[0], forms[1]); diff != "" {
		return fmt.Errorf("-expected, +actual:\n%s", diff)
	}
	return nil
}

func TestCastInvariants(t *testing.T) {
	invariants := map[string]func(n nursery) error{
		"a cast that changes nothing changes nothing": func(n nursery) error {
			before := n.widget()
			after := before.DeepCopy()
			err := errors.Join(
				castAndChange(after, func(*statusView) {}),
				castAndChange(after, func(*appsv1.Deployment) {}),
				castAndChange(after, func(*unstructured.Unstructured) {}),
				castAndChange(after, func(*widgetBuilder) {}),
			)
			if !reflect.DeepEqual(before, after) {
				err = errors.Join(err, fmt.Errorf("the resource changed:\n%s", cmp.Diff(before, after)))
			}
			return err
		},
		"what a cast that covers all says, the resource says": func(n nursery) error {
			resource, expected := n.widget(), &resources.Widget{}
			err := castAndChange(resource, func(u *unstructured.Unstructured) {
				n.grow(u.Object)
				data, _ := json.Marshal(u.Object)
				if err := json.Unmarshal(data, expected); err != nil {
					panic(err)
				}
			})
			expected.TypeMeta = resource.TypeMeta
			return errors.Join(err, sameForm(expected, resource))
		},
		"what a cast covers is as it says, all else as it was": func(n nursery) error {
			resource := n.widget()
			before := resource.DeepCopy()
			var said client.Object
			err := castAndChange(resource, func(v *statusView) {
				v.Labels, v.Finalizers, v.Generation = n.texts(), []string{n.text()}, n.number()
				v.Status.Fields = nil
				for name, value := range n.texts() {
					v.setField(name, value)
				}
				said = v.DeepCopyObject().(client.Object)
			})
			err = errors.Join(err, castAndChange(resource, func(v *statusView) { err = errors.Join(err, sameForm(said, v)) }))
			before.Labels, before.Finalizers, before.Generation = resource.Labels, resource.Finalizers, resource.Generation
			before.Status.Fields = resource.Status.Fields
			if !reflect.DeepEqual(before, resource) {
				err = errors.Join(err, fmt.Errorf("other members changed:\n%s", cmp.Diff(before, resource)))
			}
			return err
		},
		"items keep what the cast does not cover": func(n nursery) error {
			resource := &appsv1.Deployment{}
			for i := range n.IntN(6) {
				name := fmt.Sprint("container-", i)
				resource.Spec.Template.Spec.Containers = append(resource.Spec.Template.Spec.Containers,
					corev1.Container{Name: name, Image: "given", WorkingDir: "of " + name})
			}
			var said []containerView
			err := castAndChange(resource, func(v *podView) {
				v.Spec.Template.Spec.Containers = n.growView(v.Spec.Template.Spec.Containers)
				said = slices.Clone(v.Spec.Template.Spec.Containers)
			})
			var is []containerView
			for _, c := range resource.Spec.Template.Spec.Containers {
				is = append(is, containerView{Name: c.Name, Image: c.Image})
				if strings.HasPrefix(c.Name, "container-") && c.WorkingDir != "of "+c.Name {
					err = errors.Join(err, fmt.Errorf("%s has what was %s", c.Name, c.WorkingDir))
				}
			}
			if !slices.Equal(said, is) {
				err = errors.Join(err, fmt.Errorf("the containers are %v, not %v", is, said))
			}
			return err
		},
	}
	for name, invariant := range invariants {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(1000) {
				if err := invariant(nursery{rand.New(rand.NewPCG(seed, 1))}); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

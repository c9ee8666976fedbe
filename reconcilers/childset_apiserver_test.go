package reconcilers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// fieldsSet keeps a ConfigMap for each field of a widget's spec.
func fieldsSet(changes ...func(*configMapSet)) *configMapSet {
	node := &configMapSet{
		DesiredChildren: func(_ context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
			var desired []*corev1.ConfigMap
			for field, value := range w.Spec.Fields {
				desired = append(desired, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + field, Labels: map[string]string{setLabel: field}},
					Data:       map[string]string{"value": value},
				})
			}
			return desired, nil
		},
		MergeBeforeUpdate: mergeConfigMap,
		IdentifyChild:     func(child *corev1.ConfigMap) string { return child.Labels[setLabel] },
		ReflectChildrenStatusOnParent: func(_ context.Context, w *resources.Widget, result reconcilers.ChildSetResult[*corev1.ConfigMap]) {
			var there []string
			for _, child := range result.Children {
				if child.Child != nil {
					there = append(there, child.Id)
				}
			}
			w.Status.AddField("parts", strings.Join(there, " "))
		},
	}
	for _, change := range changes {
		change(node)
	}
	return node
}

// editWidget changes a widget, also while others change it.
func editWidget(t *testing.T, c client.Client, w *resources.Widget, edit func(*resources.Widget)) {
	t.Helper()
	eventually(t, "the widget cannot be changed", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		edit(w)
		return c.Update(ctx, w)
	})
}

// expectParts waits until there are just the ConfigMaps with these values, by identity, and the status says so.
func expectParts(t *testing.T, c client.Client, w *resources.Widget, expected map[string]string) {
	t.Helper()
	eventually(t, "the children are others", func(ctx context.Context) error {
		var list corev1.ConfigMapList
		if err := c.List(ctx, &list, client.InNamespace(w.Namespace), client.HasLabels{setLabel}); err != nil {
			return err
		}
		actual := map[string]string{}
		for _, child := range list.Items {
			actual[child.Labels[setLabel]] = child.Data["value"]
		}
		if !maps.Equal(actual, expected) {
			return fmt.Errorf("there are %v, expected %v", actual, expected)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if told := w.Status.Fields["parts"]; told != strings.Join(slices.Sorted(maps.Keys(expected)), " ") {
			return fmt.Errorf("the status tells of %q", told)
		}
		return nil
	})
}

func TestChildSetFollowsWhatIsDesired(t *testing.T) {
	t.Parallel()
	c := live(t)
	op, roots := startOperator(t, treeOf(fieldsSet()))
	w := op.createWidget(t, c)
	editWidget(t, c, w, func(w *resources.Widget) { w.Spec.Fields = map[string]string{"a": "1", "b": "1", "c": "1"} })
	expectParts(t, c, w, map[string]string{"a": "1", "b": "1", "c": "1"})
	reconcileSteadily(t, op, roots[0], w)

	editWidget(t, c, w, func(w *resources.Widget) { w.Spec.Fields = map[string]string{"b": "1", "c": "2", "d": "1"} })
	expectParts(t, c, w, map[string]string{"b": "1", "c": "2", "d": "1"})

	// What is taken away or changed by hand is put right.
	child := &corev1.ConfigMap{}
	child.Namespace, child.Name = w.Namespace, w.Name+"-b"
	if err := c.Delete(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	child.Name = w.Name + "-c"
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
		t.Fatal(err)
	}
	child.Data["value"] = "3"
	if err := c.Update(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	expectParts(t, c, w, map[string]string{"b": "1", "c": "2", "d": "1"})
	reconcileSteadily(t, op, roots[0], w)
}

// The resource stays until the last child is gone, and not only until all were asked to go.
func TestL3TheFinalizerOfAChildSetWaits(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*configMapSet){
		"short form": func(*configMapSet) {},
		"an object manager": func(node *configMapSet) {
			node.MergeBeforeUpdate, node.ChildObjectManager = nil, &configMaps{MergeBeforeUpdate: mergeConfigMap}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := live(t)
			op, _ := startOperator(t, treeOf(fieldsSet(guardedSet, change)))
			w := op.createWidget(t, c)
			editWidget(t, c, w, func(w *resources.Widget) { w.Spec.Fields = map[string]string{"a": "1", "b": "1"} })
			expectParts(t, c, w, map[string]string{"a": "1", "b": "1"})

			held := &corev1.ConfigMap{}
			held.Namespace, held.Name = w.Namespace, w.Name+"-a"
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil {
				t.Fatal(err)
			}
			controllerutil.AddFinalizer(held, theirs)
			if err := c.Update(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the children are not asked to go", func(ctx context.Context) error {
				err := c.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name + "-b"}, &corev1.ConfigMap{})
				if !apierrs.IsNotFound(err) {
					return fmt.Errorf("b: %w", err)
				}
				if err := c.Get(ctx, client.ObjectKeyFromObject(held), held); err != nil || held.DeletionTimestamp != nil {
					return err
				}
				return fmt.Errorf("a lives")
			})
			// A request after that must leave the finalizer on: b is gone, and a is not.
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || !controllerutil.ContainsFinalizer(w, ours) {
				t.Fatalf("the widget has the finalizers %v (%v), want it to wait with %s", w.Finalizers, err, ours)
			}
			controllerutil.RemoveFinalizer(held, theirs)
			if err := c.Update(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the widget stays", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); !apierrs.IsNotFound(err) {
					return fmt.Errorf("it is there: %w", err)
				}
				return nil
			})
		})
	}
}

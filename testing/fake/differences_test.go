package fake_test

import (
	"bytes"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/testing/fake"
)

// difference is one line of the table in the package comment.
type difference struct {
	what string
	// given are objects of both clients.
	given []client.Object
	// do reports whether the client does what the third column says. It is false for what the second column says.
	do func(t *testing.T, c client.WithWatch) bool
}

// TestDifferences makes each call of the table in the package comment with both clients.
func TestDifferences(t *testing.T) {
	t.Parallel()
	documentation, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range append(writeDifferences(), readDifferences()...) {
		t.Run(d.what, func(t *testing.T) {
			t.Parallel()
			if !bytes.Contains(documentation, []byte("//\t"+d.what+" ")) {
				t.Errorf("got no line %q in the table of the package comment, want one", d.what)
			}
			theirs := ctrlfake.NewClientBuilder().WithScheme(newScheme()).WithObjects(copies(d.given)...).Build()
			if d.do(t, theirs) {
				t.Error("the client of controller-runtime: got what the third column says, want the second")
			}
			ours := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(copies(d.given)...).Build()
			if !d.do(t, ours) {
				t.Error("the client of this package: got what the second column says, want the third")
			}
		})
	}
}

func writeDifferences() []difference {
	return []difference{{
		what: "create in a namespace that is missing",
		do: func(t *testing.T, c client.WithWatch) bool {
			return apierrors.IsNotFound(c.Create(t.Context(), configMap("a", "other")))
		},
	}, {
		what: "create of an invalid object",
		do: func(t *testing.T, c client.WithWatch) bool {
			return apierrors.IsInvalid(c.Create(t.Context(), configMap("A_B", "default")))
		},
	}, {
		what: "create with a status",
		do: func(t *testing.T, c client.WithWatch) bool {
			w := newWidget("a")
			w.Status.Ready = true
			must(t, c.Create(t.Context(), w))
			return !get(t, c, &widget{}, "a").Status.Ready
		},
	}, {
		what: "create of an object with few fields",
		do: func(t *testing.T, c client.WithWatch) bool {
			must(t, c.Create(t.Context(), service("a")))
			return get(t, c, &corev1.Service{}, "a").Spec.Ports[0].Protocol == corev1.ProtocolTCP
		},
	}, {
		what: "create: UID, creation time, generation",
		do: func(t *testing.T, c client.WithWatch) bool {
			w := newWidget("a")
			must(t, c.Create(t.Context(), w))
			return w.UID != "" && !w.CreationTimestamp.IsZero() && w.Generation == 1
		},
	}, {
		what: "update of a spec", given: []client.Object{newWidget("a")},
		do: func(t *testing.T, c client.WithWatch) bool {
			w := get(t, c, &widget{}, "a")
			before := w.Generation
			w.Spec.Size++
			must(t, c.Update(t.Context(), w))
			return w.Generation == before+1
		},
	}, {
		what: "update that changes nothing", given: []client.Object{newWidget("a")},
		do: func(t *testing.T, c client.WithWatch) bool {
			w := get(t, c, &widget{}, "a")
			before := w.ResourceVersion
			must(t, c.Update(t.Context(), w))
			return w.ResourceVersion == before
		},
	}, {
		what: "update of nothing but a status", given: []client.Object{deployment("a")},
		do: func(t *testing.T, c client.WithWatch) bool {
			d := get(t, c, &appsv1.Deployment{}, "a")
			d.Status.Replicas = 1
			return c.Update(t.Context(), d) != nil
		},
	}, {
		what: "update of a status: WithStatusSubresource", given: []client.Object{newWidget("a")},
		do: func(t *testing.T, c client.WithWatch) bool {
			w := get(t, c, &widget{}, "a")
			w.Status.Ready = true
			return c.Status().Update(t.Context(), w) == nil
		},
	}, {
		what: "create as a dry run",
		do: func(t *testing.T, c client.WithWatch) bool {
			return apierrors.IsInvalid(c.Create(t.Context(), configMap("A_B", "default"), client.DryRunAll))
		},
	}, {
		what: "delete of another UID", given: []client.Object{newWidget("a")},
		do: func(t *testing.T, c client.WithWatch) bool {
			other := types.UID("other")
			err := c.Delete(t.Context(), newWidget("a"), client.Preconditions{UID: &other})
			return apierrors.IsConflict(err)
		},
	}, {
		what: "delete in the foreground", given: []client.Object{newWidget("a")},
		do: func(t *testing.T, c client.WithWatch) bool {
			must(t, c.Delete(t.Context(), newWidget("a"), client.PropagationPolicy(metav1.DeletePropagationForeground)))
			if err := c.Get(t.Context(), keyOf("a"), &widget{}); err != nil {
				return false
			}
			fake.CollectGarbage(c)
			return apierrors.IsNotFound(c.Get(t.Context(), keyOf("a"), &widget{}))
		},
	}, {
		what: "create of a CustomResourceDefinition",
		do: func(t *testing.T, c client.WithWatch) bool {
			must(t, c.Create(t.Context(), gadgets()))
			gadget := newGadget("a")
			gadget.Object["spec"] = map[string]any{"size": int64(1), "unknown": true}
			must(t, c.Create(t.Context(), gadget))
			_, found, _ := unstructured.NestedBool(get(t, c, newGadget("a"), "a").Object, "spec", "unknown")
			return !found
		},
	}}
}

func readDifferences() []difference {
	return []difference{{
		what: "a list of namespaces",
		do: func(t *testing.T, c client.WithWatch) bool {
			list := &corev1.NamespaceList{}
			must(t, c.List(t.Context(), list))
			return len(list.Items) == 4
		},
	}, {
		what: "list with a limit", given: []client.Object{newWidget("a"), newWidget("b")},
		do: func(t *testing.T, c client.WithWatch) bool {
			list := &widgetList{}
			must(t, c.List(t.Context(), list, client.Limit(1)))
			return len(list.Items) == 1 && list.Continue != ""
		},
	}, {
		what: "list by a name as a field", given: []client.Object{newWidget("a"), newWidget("b")},
		do: func(t *testing.T, c client.WithWatch) bool {
			list := &widgetList{}
			err := c.List(t.Context(), list, client.MatchingFields{"metadata.name": "b"})
			return err == nil && len(list.Items) == 1
		},
	}, {
		what: "watch", given: []client.Object{newWidget("a")},
		do: func(t *testing.T, c client.WithWatch) bool {
			w, err := c.Watch(t.Context(), &widgetList{})
			must(t, err)
			defer w.Stop()
			must(t, c.Create(t.Context(), newWidget("b")))
			first := <-w.ResultChan()
			return first.Object.(client.Object).GetName() == "a"
		},
	}, {
		what: "get of an unknown kind",
		do: func(t *testing.T, c client.WithWatch) bool {
			err := c.Get(t.Context(), keyOf("a"), newGadget(""))
			return meta.IsNoMatchError(err) && !c.Scheme().Recognizes(gadgetKind)
		},
	}, {
		what: "build: the version of a given object",
		do: func(t *testing.T, c client.WithWatch) bool {
			w := newWidget("a")
			build(c, w)
			return w.ResourceVersion == ""
		},
	}, {
		what: "build with two objects of one UID",
		do: func(t *testing.T, c client.WithWatch) bool {
			a, b := newWidget("a"), newWidget("b")
			a.UID, b.UID = "1", "1"
			return !works(t, build(c, a, b))
		},
	}, {
		what: "build with an object tracker",
		do: func(t *testing.T, c client.WithWatch) bool {
			tracker := clientgotesting.NewObjectTracker(newScheme(), nil)
			if isOurs(c) {
				return !works(t, fake.NewClientBuilder().WithObjectTracker(tracker).Build())
			}
			return !works(t, ctrlfake.NewClientBuilder().WithObjectTracker(tracker).Build())
		},
	}, {
		what: "build with type converters",
		do: func(t *testing.T, c client.WithWatch) bool {
			converter := managedfields.NewDeducedTypeConverter()
			if isOurs(c) {
				return !works(t, fake.NewClientBuilder().WithTypeConverters(converter).Build())
			}
			return !works(t, ctrlfake.NewClientBuilder().WithTypeConverters(converter).Build())
		},
	}}
}

// build builds a client of the package of another one, with the objects.
func build(like client.WithWatch, given ...client.Object) client.WithWatch {
	if isOurs(like) {
		return fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(given...).Build()
	}
	return ctrlfake.NewClientBuilder().WithScheme(newScheme()).WithObjects(given...).Build()
}

// works reports whether a client answers.
func works(t *testing.T, c client.WithWatch) bool {
	return c.List(t.Context(), &corev1.ConfigMapList{}) == nil
}

// isOurs reports whether a client is one of package fake, which knows CollectGarbage.
func isOurs(c client.WithWatch) bool { return !panics(func() { fake.CollectGarbage(c) }) }

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

func copies(objs []client.Object) []client.Object {
	var all []client.Object
	for _, obj := range objs {
		all = append(all, obj.DeepCopyObject().(client.Object))
	}
	return all
}

package component_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// insist has another client react to each event of an object, until the test ends or stop is called. The test fails if
// that client cannot go on.
func insist(t *testing.T, object client.Object, react func(ctx context.Context, c client.Client) error) (stop func()) {
	t.Helper()
	plain, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		// A server may end a watch at any time. Another one begins with the object as it is.
		for err == nil && ctx.Err() == nil {
			err = reactToEvents(ctx, plain, object, react)
		}
		done <- err
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the other client: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// reactToEvents reacts to each event of an object until the watch or the context ends.
func reactToEvents(
	ctx context.Context, plain client.WithWatch, object client.Object,
	react func(ctx context.Context, c client.Client) error,
) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	events, err := plain.Watch(ctx, list, client.InNamespace(object.GetNamespace()))
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer events.Stop()
	c := client.WithFieldOwner(plain, "rival")
	for range events.ResultChan() {
		err := react(ctx, c)
		switch {
		case ctx.Err() != nil:
			return nil
		case apierrs.IsConflict(err), apierrs.IsNotFound(err):
			// What was written or deleted meanwhile, and what is created next, has an event of its own.
		case err != nil:
			return err
		}
	}
	return nil
}

// written returns how many writes there were but for events, which tell of them.
func written(requests *controlplane.Requests) int {
	n := 0
	for request, count := range requests.Counts() {
		switch request.Verb {
		case "create", "update", "patch", "delete":
			if !strings.HasSuffix(request.Path, "/events") {
				n += count
			}
		}
	}
	return n
}

// correctionsOf returns how many writes of the only object of a component there were.
func correctionsOf(requests *controlplane.Requests, object client.Object) int {
	n := 0
	for request, count := range requests.Counts() {
		created := request.Verb == "create" && !strings.HasSuffix(request.Path, "/events")
		if created || request.Verb == "patch" && strings.HasSuffix(request.Path, "/"+object.GetName()) {
			n += count
		}
	}
	return n
}

// firstDelay is how long what was done three times is not done again at first: an object that is contested is not
// corrected, the readiness of an object that flips is not shown, and a generator that is not deterministic is not called.
const firstDelay = 20 * time.Second

// Clients that insist on what they write make the component write a few times, and then seldom, on a real API server.
func TestFightsOnTheAPIServer(t *testing.T) {
	t.Parallel()
	controlplanetest.SkipIfShort(t)
	for name, test := range map[string]struct {
		object func(namespace string) client.Object
		// change is made if the object is not as the other client wants it.
		change    func(u *unstructured.Unstructured) bool
		deletes   bool
		contested string
	}{
		"a field": {
			object: func(namespace string) client.Object { return partOf(namespace, "part", "0") },
			change: func(u *unstructured.Unstructured) bool {
				was, _, _ := unstructured.NestedString(u.Object, "data", "name")
				setting("theirs", "data", "name")(u)
				return was != "theirs"
			},
			contested: `the field manager "rival" keeps changing .data.name (ignore-fields: /data/name, or reconcile-policy: once would allow that)`,
		},
		"a field of the spec": {
			object: func(namespace string) client.Object {
				return &appsv1.StatefulSet{
					TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server"},
					Spec: appsv1.StatefulSetSpec{
						Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "server"}},
						Template: corev1.PodTemplateSpec{
							ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "server"}},
							Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
						},
					},
				}
			},
			change: func(u *unstructured.Unstructured) bool {
				containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
				container := containers[0].(map[string]any)
				was := container["image"]
				container["image"] = "theirs"
				setting(containers, "spec", "template", "spec", "containers")(u)
				return was != "theirs"
			},
			contested: `keeps changing .spec.template.spec.containers[name="a"].image (ignore-fields: /spec/template/spec/containers/0/image,`,
		},
		"the label": {
			object: func(namespace string) client.Object { return partOf(namespace, "part", "0") },
			change: func(u *unstructured.Unstructured) bool {
				was := u.GetLabels()
				u.SetLabels(nil)
				return len(was) > 0
			},
			contested: "keeps removing its owner label",
		},
		"existence": {
			object: func(namespace string) client.Object { return partOf(namespace, "part", "0") }, deletes: true,
			contested: "another client keeps deleting it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, namespace := live(t), plane.Namespace(t)
			object := test.object(namespace)
			requests := startComponents(t, plane.Config(t), namespace, assemblyOptions{}).requests
			assembly := resources.NewAssembly(namespace, "all", object)
			ready := assemble(t, c, assembly)
			if object.GetName() == "part" {
				ready("it is not deployed")
			} else {
				controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
					return c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
				})
			}
			controlplanetest.Quiet(t, requests)
			start := time.Now()
			stop := insist(t, object, func(ctx context.Context, c client.Client) error {
				live := &unstructured.Unstructured{}
				live.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
					return err
				}
				switch {
				case test.deletes:
					return c.Delete(ctx, live)
				case test.change(live):
					return c.Update(ctx, live)
				}
				return nil
			})
			controlplanetest.Eventually(t, "it is not said", func(ctx context.Context) error {
				return conditionSays(ctx, c, assembly, component.ReasonContested, object.GetName(), test.contested)
			})
			if assembly.Status.State != apis.ComponentError {
				t.Errorf("the state is %s, want %s", assembly.Status.State, apis.ComponentError)
			}
			before, n := correctionsOf(requests, object), 0
			controlplanetest.Eventually(t, "it is not corrected any more", func(context.Context) error {
				writes := written(requests)
				if correctionsOf(requests, object) == before {
					n = writes
					return fmt.Errorf("there are %d corrections: %s", before, requests)
				}
				return nil
			})
			took := time.Since(start)
			t.Logf("%d writes before the last correction, after %s: %s", n, took, requests)
			if most := 10 * (1 + int(took/time.Minute)); n > most || took < firstDelay {
				t.Errorf("there are %d writes before the last correction, after %s, want at most %d, and %s: %s",
					n, took, most, firstDelay, requests)
			}
			if err := conditionSays(t.Context(), c, assembly, component.ReasonContested, test.contested); err != nil {
				t.Error(err)
			}
			stop()

			// What is desired anew is written at once, and begins anew.
			changed := assembly.DeepCopy()
			other := partOf(namespace, object.GetName(), "0")
			other.Data["more"] = "x"
			if object.GetName() == "part" {
				changed.SetObjects(other)
				if err := c.Patch(t.Context(), changed, client.MergeFrom(assembly)); err != nil {
					t.Fatal(err)
				}
				controlplanetest.Eventually(t, "it is not ready again", func(ctx context.Context) error {
					return hasState(ctx, c, changed, apis.ComponentReady)
				})
			}
		})
	}
}

// While an object is contested, changes of the other client cost no request.
func TestContestedObjectsCostNoRequest(t *testing.T) {
	t.Parallel()
	controlplanetest.SkipIfShort(t)
	c, namespace := live(t), plane.Namespace(t)
	part := partOf(namespace, "part", "0")
	op := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	assembly := resources.NewAssembly(namespace, "all", part)
	assemble(t, c, assembly)("it is not deployed")
	rival := client.WithFieldOwner(c, "rival")
	n := 0
	change := func(ctx context.Context) error {
		n++
		return edit(part, setting(fmt.Sprint(n), "data", "name"))(ctx, rival)
	}
	controlplanetest.Eventually(t, "it is not contested", func(ctx context.Context) error {
		if err := change(ctx); err != nil {
			return err
		}
		return conditionSays(ctx, c, assembly, component.ReasonContested, ".data.name")
	})
	controlplanetest.Quiet(t, op.requests)
	start := time.Now()
	for range 50 {
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return change(t.Context()) }); err != nil {
			t.Fatal(err)
		}
	}
	controlplanetest.Rest(t, op.requests)
	// The next correction is due 20 seconds after the third one, which may fall into this time, and between the reading
	// and the writing of a change. It is few requests, however many changes there are.
	total, took := op.requests.Total(), time.Since(start)
	if corrections := 1 + int(took/firstDelay); total > 4*corrections {
		t.Errorf("50 changes of a contested object cost %d requests in %s, want at most those of %d corrections: %s",
			total, took, corrections, op.requests)
	}
}

// The rules of an aggregated ClusterRole are the controller's: there is nothing to correct, whatever the manifest says.
func TestAggregatedRolesAreNoFight(t *testing.T) {
	controlplanetest.Real(t, "a controller has to aggregate ClusterRoles")
	t.Parallel()
	env, c := startOwn(t, controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()}, RoleAggregation: true,
	})
	role := func(name string, rules any) client.Object {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata":        map[string]any{"name": name},
			"aggregationRule": map[string]any{"clusterRoleSelectors": []any{map[string]any{"matchLabels": map[string]any{"part-of": "all"}}}},
		}}
		if rules != "" {
			u.Object["rules"] = rules
		}
		return u
	}
	get := map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}
	part := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": "part", "labels": map[string]any{"part-of": "all"}}, "rules": []any{get},
	}}
	aggregated := []client.Object{role("empty", []any{}), role("null", nil), role("without", ""), role("filled", []any{get, get})}
	assembly := resources.NewAssembly("default", "all", append([]client.Object{part}, aggregated...)...)
	requests := startComponents(t, env.Config(), "default", assemblyOptions{}).requests
	ready := assemble(t, c, assembly)
	ready("it is not deployed")
	rests := func(what string) {
		t.Helper()
		for _, object := range aggregated {
			controlplanetest.Eventually(t, "rules are missing "+what, func(ctx context.Context) error {
				live := &rbacv1.ClusterRole{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
					return err
				}
				if len(live.Rules) != 1 {
					return fmt.Errorf("%s has the rules %v", live.Name, live.Rules)
				}
				return nil
			})
		}
		ready("it is not ready " + what)
		controlplanetest.Quiet(t, requests)
		controlplanetest.Rest(t, requests)
		if n := requests.Total(); n > 0 {
			t.Errorf("there are %d requests %s, want none: %s", n, what, requests)
		}
	}
	rests("after the install")
	// The first apply would own what a create leaves out, such as null.
	for _, object := range append(aggregated, part) {
		labels := map[string]string{"version": "2"}
		if object == client.Object(part) {
			labels["part-of"] = "all"
		}
		object.SetLabels(labels)
	}
	changed := assembly.DeepCopy()
	changed.SetObjects(append([]client.Object{part}, aggregated...)...)
	if err := c.Patch(t.Context(), changed, client.MergeFrom(assembly)); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not upgraded", func(ctx context.Context) error {
		return hasState(ctx, c, changed, apis.ComponentReady)
	})
	rests("after the upgrade")
}

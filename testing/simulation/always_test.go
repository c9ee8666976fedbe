package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconciles returns an operator that does something for each ConfigMap in the namespace default with the label "app".
func reconciles(do func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error) Options {
	return Options{Operator: func(_ context.Context, mgr ctrl.Manager) error {
		c := mgr.GetClient()
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
			Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				app := &corev1.ConfigMap{}
				if err := c.Get(ctx, r.NamespacedName, app); err != nil || app.Labels["app"] == "" {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				return reconcile.Result{}, do(ctx, c, app)
			}))
	}}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func newApp(name string) *corev1.ConfigMap {
	obj := &corev1.ConfigMap{ObjectMeta: named(name)}
	obj.Labels = map[string]string{"app": name}
	return obj
}

func newSecret(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: named(name)} }

// must fails an attempt that fails.
func (o outcome) must(t *testing.T) {
	t.Helper()
	if o.failed {
		t.Errorf("the story fails: %s", o.report())
	}
}

// mustFail fails the test unless the attempt fails and says all that is wanted.
func (o outcome) mustFail(t *testing.T, wanted ...string) {
	t.Helper()
	if !o.failed {
		t.Error("the story does not fail")
	}
	for _, want := range wanted {
		if !strings.Contains(o.report(), want) {
			t.Errorf("the story does not say %q:\n%s", want, o.report())
		}
	}
}

func TestAlways(t *testing.T) {
	t.Parallel()
	options := reconciles(func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		if err := c.Create(ctx, newSecret(app.Name)); err != nil {
			return client.IgnoreAlreadyExists(err)
		}
		app.Data = map[string]string{"ready": "yes"}
		return c.Update(ctx, app)
	})
	options.Always = []Invariant{
		{Name: "two at most", Check: func(w Write, s State) error {
			secrets := &corev1.SecretList{}
			s.List(secrets, client.InNamespace("default"))
			if len(secrets.Items) > 2 {
				return fmt.Errorf("there are %d secrets", len(secrets.Items))
			}
			return nil
		}},
		{Name: "not reached", Check: func(w Write, s State) error {
			if s.Get(newSecret("three")) {
				return fmt.Errorf("the first invariant is broken, too")
			}
			return nil
		}},
	}
	after := false
	o := attempt(t, options, func(w *World) {
		w.Create(newApp("one"), newApp("two"))
		w.Rest()
		w.Create(newApp("three"))
		w.Pass(1000 * time.Hour)
		after = true
	})
	o.mustFail(t, `operator breaks "two at most" by create Secret default/three: there are 3 secrets`,
		"= the story fails: at 00:")
	if after || strings.Contains(o.said, "not reached") {
		t.Errorf("the story goes on:\n%s", o.said)
	}
	if last := o.log.Entries[len(o.log.Entries)-1]; last.At > 2*time.Hour {
		t.Errorf("the log goes on:\n%s", last)
	}
}

// TestAlwaysSeesWrites tells an invariant about each write.
func TestAlwaysSeesWrites(t *testing.T) {
	t.Parallel()
	var seen []string
	options := Options{Objects: []client.Object{newApp("given")}, Always: []Invariant{{
		Name: "no version two", Check: func(w Write, s State) error {
			before, after, other := &corev1.ConfigMap{}, &corev1.ConfigMap{}, &corev1.Pod{}
			existed, exists := w.Before(before), w.After(after)
			whatever := &unstructured.Unstructured{}
			if w.After(whatever) && whatever.GetName() != w.Name {
				return fmt.Errorf("the object is %v", whatever)
			}
			if w.After(other) || w.Kind.Kind != "ConfigMap" {
				return nil
			}
			seen = append(seen, fmt.Sprint(w.Actor, ": ", w, " ", existed, before.Data, " ", exists, after.Data))
			// This is a copy.
			after.Data = map[string]string{"v": "changed"}
			now := &unstructured.Unstructured{}
			now.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
			now.SetNamespace(w.Namespace)
			now.SetName(w.Name)
			found := s.Get(now)
			value, _, _ := unstructured.NestedString(now.Object, "data", "v")
			switch {
			case found != exists:
				return fmt.Errorf("the state has %v", found)
			case value == "changed":
				return fmt.Errorf("the state can be changed")
			case value == "2":
				return fmt.Errorf("it is two")
			case found && s.CreatedBy(now) != "user":
				return fmt.Errorf("%q created it", s.CreatedBy(now))
			}
			return nil
		},
	}}}
	o := attempt(t, options, func(w *World) {
		obj := newApp("one")
		obj.Finalizers = []string{"example.com/wait"}
		w.Create(obj)
		w.As("somebody").Update(obj, func() { obj.Data = map[string]string{"v": "1"} })
		w.Delete(obj)
		w.Update(obj, func() { obj.Finalizers = nil })
		given := newApp("given")
		w.Update(given, func() { given.Data = map[string]string{"v": "2"} })
	})
	o.mustFail(t, `user breaks "no version two" by update ConfigMap default/given: it is two`,
		`  data: absent → {"v":"2"}`)
	want := `
user: create ConfigMap default/one false map[] true map[]
somebody: update ConfigMap default/one true map[] true map[v:1]
user: mark for deletion ConfigMap default/one true map[v:1] true map[v:1]
user: delete ConfigMap default/one true map[v:1] false map[]
user: update ConfigMap default/given true map[] true map[v:2]`
	if got := "\n" + strings.Join(seen, "\n"); got != want {
		t.Errorf("the invariant sees%s\nnot%s", got, want)
	}
}

func TestInvariantThatPanics(t *testing.T) {
	t.Parallel()
	options := Options{Always: []Invariant{{Name: "stored version", Check: func(_ Write, s State) error {
		s.Get(&unstructured.Unstructured{})
		return nil
	}}}}
	attempt(t, options, func(w *World) { w.Create(newApp("one")) }).
		mustFail(t, `user breaks "stored version" by create ConfigMap default/one: panic: `)
}

func TestNothingForeign(t *testing.T) {
	t.Parallel()
	isApp := func(obj *unstructured.Unstructured) bool { return obj.GetLabels()["app"] != "" }
	foreign := newSecret("foreign")
	for name, test := range map[string]struct {
		do   func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error
		fail string
	}{
		"what it created": {do: func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
			obj := newSecret("own")
			if err := c.Create(ctx, obj); err != nil {
				return err
			}
			obj.Labels = map[string]string{"a": "b"}
			if err := c.Update(ctx, obj); err != nil {
				return err
			}
			return c.Delete(ctx, obj)
		}},
		"its kind": {do: func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
			app.Data = map[string]string{"a": "b"}
			return c.Update(ctx, app)
		}},
		"what an app owns": {do: func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
			return client.IgnoreNotFound(c.Delete(ctx, newSecret("owned")))
		}},
		"a foreign object": {do: func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
			return client.IgnoreNotFound(c.Delete(ctx, foreign.DeepCopy()))
		}, fail: `operator breaks "nothing foreign is touched" by delete Secret default/foreign: ` +
			`the operator does not own the object, which user created`},
		"a foreign object is taken over": {do: func(
			ctx context.Context, c client.Client, app *corev1.ConfigMap,
		) error {
			obj := foreign.DeepCopy()
			obj.Labels = map[string]string{"app": app.Name}
			return c.Update(ctx, obj)
		}, fail: "by update Secret default/foreign"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := reconciles(test.do)
			options.Objects = []client.Object{foreign}
			options.Always = []Invariant{NothingForeign(isApp)}
			o := attempt(t, options, func(w *World) {
				app, owned := newApp("one"), newSecret("owned")
				w.Stop()
				w.Create(app)
				owned.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "ConfigMap", Name: app.Name, UID: app.UID,
				}}
				w.Create(owned)
				w.Start()
				w.Pass(time.Minute)
			})
			if test.fail == "" {
				o.must(t)
				return
			}
			o.mustFail(t, test.fail)
		})
	}
}

func TestCreatesOnce(t *testing.T) {
	t.Parallel()
	again := func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		if err := c.Delete(ctx, newSecret("child")); client.IgnoreNotFound(err) != nil {
			return err
		}
		return c.Create(ctx, newSecret("child"))
	}
	for name, test := range map[string]struct {
		then func(w *World)
		fail string
	}{
		"it comes again by itself": {func(w *World) { w.Kill(); w.Pass(time.Minute) },
			`operator breaks "nothing is created twice within 1h0m0s" by create Secret default/child: ` +
				`the operator created the object `},
		"it comes again later": {func(w *World) { w.Pass(2 * time.Hour); w.Kill(); w.Pass(time.Minute) }, ""},
		"it comes again after a change": {func(w *World) {
			app := newApp("one")
			w.Update(app, func() { app.Data = map[string]string{"a": "b"} })
			w.Pass(time.Minute)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := reconciles(again)
			options.Always = []Invariant{CreatesOnce(time.Hour)}
			o := attempt(t, options, func(w *World) {
				w.Create(newApp("one"))
				w.Pass(time.Minute)
				test.then(w)
			})
			if test.fail == "" {
				o.must(t)
				return
			}
			o.mustFail(t, test.fail)
		})
	}
}

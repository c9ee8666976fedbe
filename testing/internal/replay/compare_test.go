package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/internal/replay"
)

// differences runs code that knows whether its first call failed once, and compares how that ends.
func differences(
	t *testing.T, objs []client.Object, do func(ctx context.Context, p *process, failed bool) error,
	ignore func(object, path string) bool,
) []string {
	t.Helper()
	program := programOf(given(t, append(objs, widget())...), func(ctx context.Context, p *process) error {
		done, err := exists(ctx, p, "done")
		if err != nil {
			p.memory["failed"] = "yes"
		}
		if done || err != nil {
			return err
		}
		if err := do(ctx, p, p.memory["failed"] != ""); err != nil {
			return err
		}
		return p.Create(ctx, configMap("done"))
	})
	found, err := replay.Run(t.Context(), program,
		[]fault.Fault{{Kind: fault.Fails, Path: "get ConfigMap ns/done"}}, replay.Options{Ignore: ignore})
	if err != nil {
		t.Fatal(err)
	}
	if found == nil {
		return nil
	}
	return found.Differences
}

type step func(ctx context.Context, p *process, failed bool) error

// with sets a field of the data of what is created.
func with(key, value string) *corev1.ConfigMap {
	one := configMap("one")
	one.Data = map[string]string{key: value}
	return one
}

func create(of func(failed bool) client.Object) step {
	return func(ctx context.Context, p *process, failed bool) error { return p.Create(ctx, of(failed)) }
}

// exposed is an object with a condition.
func exposed(since metav1.Time) client.Object {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Status: corev1.ServiceStatus{Conditions: []metav1.Condition{
			{Type: "Exposed", Status: metav1.ConditionTrue, Reason: "HasAddress", LastTransitionTime: since},
		}},
	}
}

// garbage is an object whose owner is gone.
func garbage(name string) client.Object {
	obj := configMap(name)
	obj.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "00000000-0000-0000-0000-000000000000"},
	}
	return obj
}

func TestEndsAreComparedByWhatMatters(t *testing.T) {
	t.Parallel()
	secret := func(name string, value ...string) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			StringData: map[string]string{"password": strings.Join(value, "")},
		}
	}
	tests := map[string]struct {
		given []client.Object
		do    step
		want  []string
	}{
		"a field": {
			do: create(func(failed bool) client.Object {
				if failed {
					return with("color", "red")
				}
				return with("color", "blue")
			}),
			want: []string{`ConfigMap ns/one: data.color is "red", not "blue"`},
		},
		"a field that is not there": {
			do: create(func(failed bool) client.Object {
				if failed {
					return with("a.b", "red")
				}
				return with("color", "blue")
			}),
			want: []string{
				`ConfigMap ns/one: data["a.b"] is "red", not absent`,
				`ConfigMap ns/one: data.color is absent, not "blue"`,
			},
		},
		"a secret": {
			do:   create(func(failed bool) client.Object { return secret("s", fmt.Sprint("hunter", failed)) }),
			want: []string{`Secret ns/s: data.password differs`},
		},
		"resource versions": {
			do: func(ctx context.Context, p *process, failed bool) error {
				one := with("color", "red")
				if err := p.Create(ctx, one); err != nil || !failed {
					return err
				}
				one.Labels = map[string]string{"a": "b"}
				if err := p.Update(ctx, one); err != nil {
					return err
				}
				one.Labels = nil
				return p.Update(ctx, one)
			},
		},
		"generations": {
			given: nil,
			do: func(ctx context.Context, p *process, failed bool) error {
				w, err := p.widget(ctx)
				if err != nil {
					return err
				}
				for _, color := range map[bool][]string{true: {"red", "green"}, false: {"green"}}[failed] {
					w.Spec.Fields["color"] = color
					if err := p.Update(ctx, w); err != nil {
						return err
					}
				}
				w.Status.ObservedGeneration = w.Generation
				w.Status.AddField("observedGeneration", fmt.Sprint("of something else", w.Generation))
				w.Status.Conditions = []metav1.Condition{{
					Type: "Ready", Status: "True", Reason: "R", ObservedGeneration: w.Generation,
					LastTransitionTime: metav1.Now(),
				}}
				return p.Status().Update(ctx, w)
			},
		},
		"an observed generation that is not current": {
			do: func(ctx context.Context, p *process, failed bool) error {
				w, err := p.widget(ctx)
				if err != nil {
					return err
				}
				observed := w.Generation
				w.Spec.Fields["color"] = "red"
				if err := p.Update(ctx, w); err != nil {
					return err
				}
				w.Status.ObservedGeneration = observed
				w.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "R"}}
				if failed {
					w.Status.Conditions[0].Status = "False"
				} else {
					w.Status.ObservedGeneration++
				}
				return p.Status().Update(ctx, w)
			},
			want: []string{
				`Widget ns/a: status.conditions[Ready].status is "False", not "True"`,
				`Widget ns/a: status.observedGeneration is "outdated", not "current"`,
			},
		},
		"items with other names": {
			do: func(ctx context.Context, p *process, failed bool) error {
				w, err := p.widget(ctx)
				if err != nil {
					return err
				}
				w.Status.Conditions = []metav1.Condition{
					{Type: "Ready", Status: "True", Reason: "R", LastTransitionTime: metav1.Now()},
				}
				if failed {
					w.Status.Conditions[0].Type = "Other"
				}
				return p.Status().Update(ctx, w)
			},
			want: []string{`Widget ns/a: status.conditions[0].type is "Other", not "Ready"`},
		},
		"what has no order": {
			do: func(ctx context.Context, p *process, failed bool) error {
				w, err := p.widget(ctx)
				if err != nil {
					return err
				}
				w.Finalizers = []string{"test/a", "test/b"}
				w.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"},
					{APIVersion: "v1", Kind: "ConfigMap", Name: "w", UID: "w"},
				}
				conditions := []metav1.Condition{
					{Type: "Ready", Status: "True", Reason: "R", LastTransitionTime: metav1.Now()},
					{Type: "Other", Status: "True", Reason: "R", LastTransitionTime: metav1.Now()},
				}
				if failed {
					slices.Reverse(w.Finalizers)
					slices.Reverse(w.OwnerReferences)
					slices.Reverse(conditions)
				}
				if err := p.Update(ctx, w); err != nil {
					return err
				}
				w.Status.Conditions = conditions
				return p.Status().Update(ctx, w)
			},
		},
		"generated names and UIDs": {
			do: func(ctx context.Context, p *process, failed bool) error {
				names := []string{"red", "blue"}
				if failed {
					slices.Reverse(names)
				}
				for _, name := range names {
					one := generated("child-")
					one.Labels = map[string]string{"color": name}
					if err := p.Create(ctx, one); err != nil {
						return err
					}
					of := with(one.Name, one.Name+" has "+string(one.UID))
					of.Name = "of-" + name
					if err := p.Create(ctx, of); err != nil {
						return err
					}
				}
				return nil
			},
		},
		"how often it is created": {
			do: func(ctx context.Context, p *process, failed bool) error {
				if err := p.Create(ctx, configMap("one")); err != nil || !failed {
					return err
				}
				if err := p.Delete(ctx, configMap("one")); err != nil {
					return err
				}
				return p.Create(ctx, configMap("one"))
			},
			want: []string{"created twice: ConfigMap ns/one", "deleted once, not never: ConfigMap ns/one"},
		},
		"how often it is created, if that is more than once": {
			do: func(ctx context.Context, p *process, failed bool) error {
				for range map[bool]int{false: 1, true: 2}[failed] {
					if err := p.Create(ctx, configMap("one")); err != nil {
						return err
					}
					if err := p.Delete(ctx, configMap("one")); err != nil {
						return err
					}
				}
				return p.Create(ctx, configMap("one"))
			},
			want: []string{"created 3 times, not twice: ConfigMap ns/one", "deleted twice: ConfigMap ns/one"},
		},
		"a long value": {
			do: create(func(failed bool) client.Object {
				return with("color", strings.Repeat(map[bool]string{false: "blue", true: "röd "}[failed], 50))
			}),
			want: []string{fmt.Sprintf(`ConfigMap ns/one: data.color is "%sröd…, not "%sblu…`,
				strings.Repeat("röd ", 19), strings.Repeat("blue", 19))},
		},
		"what comes and goes": {
			do: func(ctx context.Context, p *process, failed bool) error {
				if !failed {
					return nil
				}
				if err := p.Create(ctx, configMap("one")); err != nil {
					return err
				}
				return p.Delete(ctx, configMap("one"))
			},
			want: []string{
				"created once, not never: ConfigMap ns/one", "deleted once, not never: ConfigMap ns/one",
			},
		},
		"what is foreign": {
			given: []client.Object{configMap("one")},
			do: func(ctx context.Context, p *process, failed bool) error {
				if !failed {
					return nil
				}
				return p.Patch(ctx, configMap("one"), mergePatch(`{"data":{"color":"red"}}`))
			},
			want: []string{
				`ConfigMap ns/one: data is {"color":"red"}, not absent`, "touched although foreign: ConfigMap ns/one",
			},
		},
		"what is foreign and goes": {
			given: []client.Object{configMap("one")},
			do: func(ctx context.Context, p *process, failed bool) error {
				if !failed {
					return nil
				}
				return p.Delete(ctx, configMap("one"))
			},
			want: []string{"missing: ConfigMap ns/one"},
		},
		"a status that says what went wrong for a while": {
			do: func(ctx context.Context, p *process, failed bool) error {
				w, err := p.widget(ctx)
				if err != nil || !failed {
					return err
				}
				if err := p.note(ctx, w, "error", "no"); err != nil {
					return err
				}
				w.Status.Fields = nil
				return p.Status().Update(ctx, w)
			},
		},
		"the time of a condition that was given without": {
			given: []client.Object{exposed(metav1.Time{})},
			do: func(ctx context.Context, p *process, failed bool) error {
				if !failed {
					return nil
				}
				return p.Status().Update(ctx, exposed(metav1.NewTime(begin)))
			},
		},
		"what the control plane deletes first": {
			given: []client.Object{garbage("one")},
			do: func(ctx context.Context, p *process, _ bool) error {
				return client.IgnoreNotFound(p.Delete(ctx, configMap("one")))
			},
		},
		"what somebody else does": {
			given: []client.Object{configMap("one")},
			do: func(ctx context.Context, p *process, failed bool) error {
				if !failed {
					return nil
				}
				return p.user.Patch(ctx, configMap("one"), mergePatch(`{"metadata":{"labels":{"a":"b"}}}`))
			},
			want: []string{`ConfigMap ns/one: metadata.labels is {"a":"b"}, not absent`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := differences(t, tc.given, tc.do, nil); !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
			ignored := map[string]bool{}
			if got := differences(t, tc.given, tc.do, func(object, path string) bool {
				ignored[object+": "+path] = true
				return true
			}); got != nil || len(ignored) != len(tc.want) {
				t.Errorf("the differences are %q and the ignored ones %v, want none and %d", got, ignored, len(tc.want))
			}
		})
	}
}

func TestTimesAreNotCompared(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), nil)
	program.Start = func(_ context.Context, w *replay.World) (replay.Instance, error) {
		p := &process{WithWatch: w.Client("")}
		return func(ctx context.Context) (reconcile.Result, error) {
			a, err := p.widget(ctx)
			if err != nil && w.Now().Equal(begin) {
				return reconcile.Result{RequeueAfter: time.Hour}, nil // The fault delays everything.
			}
			if err != nil || a.Status.Fields["time"] != "" {
				return reconcile.Result{}, err
			}
			a.Finalizers = []string{"test/finalizer"}
			one := configMap("one")
			for _, do := range []func() error{
				func() error { return p.Create(ctx, one) },
				func() error { return p.Update(ctx, a) },
				func() error { return p.note(ctx, a, "time", w.Now().Format(time.RFC3339)) },
				func() error { return p.Delete(ctx, a) },
			} {
				if err := do(); err != nil {
					return reconcile.Result{}, err
				}
			}
			return reconcile.Result{}, nil
		}, nil
	}
	run(t, program, fault.Fault{Kind: fault.Fails, Path: "get Widget ns/a"})
}

func TestAGeneratedNameMayDifferAtRest(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		w, err := p.widget(ctx)
		if err != nil {
			// Somebody else gets the name that the code gets without a fault.
			other := generated("child-")
			return errors.Join(err, p.user.Create(ctx, other), p.user.Delete(ctx, other))
		}
		if name := w.Status.Fields["child"]; name != "" {
			_, err := exists(ctx, p.live, name)
			return err
		}
		child := generated("child-")
		if err := p.Create(ctx, child); err != nil {
			return err
		}
		return p.note(ctx, w, "child", child.Name)
	})
	run(t, program, fault.Fault{Kind: fault.Fails, Path: "get Widget ns/a"})
}

func TestWhatIsOutsideOfTheClustersIsCompared(t *testing.T) {
	t.Parallel()
	for _, several := range []bool{false, true} {
		service, other, nothing := &counter{}, &counter{}, replay.External{Reset: func() {}, End: func() any { return nil }}
		program := programOf(given(t, widget()), charge(func(service *counter, _ *resources.Widget) {
			service.calls["order"]++
		})(service), nothing, service.external())
		name := "external"
		if several {
			program.Externals = append(program.Externals, other.external())
			name = "external 1"
		}
		found := shortest(t, explore(t, program, replay.Options{}))
		if want := []string{name + ": order is 2, not 1"}; !slices.Equal(found.Differences, want) {
			t.Errorf("got %q, want %q", found.Differences, want)
		}
		ignore := func(object, path string) bool { return object == name && path == "order" }
		if report := explore(t, program, replay.Options{Ignore: ignore}); len(report.Findings) > 0 {
			t.Errorf("there are findings, want none:\n%s", told(report.Findings[0]))
		}
	}
}

func TestAnExternalThatChangesKeepsARunGoing(t *testing.T) {
	t.Parallel()
	service := &counter{}
	program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
		return p.world.Do(ctx, "PUT /steps", func() error {
			service.calls["steps"] = min(service.calls["steps"]+1, 3)
			return nil
		})
	}, service.external())
	report := explore(t, program, replay.Options{})
	if len(report.Findings) > 0 || service.calls["steps"] != 3 {
		t.Errorf("the findings are %v and the calls %v, want none and 3 of steps", report.Findings, service.calls)
	}
}

// Objects of kinds without a Go type are compared as they are, and the comparison does not change them.
func TestObjectsWithoutAGoTypeAreCompared(t *testing.T) {
	t.Parallel()
	gadget := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"namespace": "ns", "name": "one"},
		}}
	}
	definition := resources.CRD()
	definition.APIVersion, definition.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	definition.Name, definition.Spec.Group = "gadgets.example.com", "example.com"
	definition.Spec.Versions[0].Name = "v1"
	definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList",
	}
	program := programOf(given(t, widget(), definition, gadget()), func(ctx context.Context, p *process) error {
		live := gadget()
		if err := p.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return err
		}
		live.SetLabels(map[string]string{"color": "blue"})
		return p.Update(ctx, live)
	})
	// What the code sees after the step was compared before.
	program.Steps = []replay.Step{{Name: "wait", Do: func(context.Context, *replay.World) error { return nil }}}
	if report := explore(t, program, replay.Options{}); len(report.Findings) > 0 {
		t.Errorf("there are findings, want none:\n%s", told(report.Findings[0]))
	}
}

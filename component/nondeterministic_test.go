package component_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unsteady is a component whose generator may return something else in each call, in virtual time. Each write brings it
// back.
type unsteady struct {
	*testing.T
	*operated
	node  *component.ComponentReconciler[*resources.Assembly]
	calls int
	// generate returns the objects of a call.
	generate func(call int) []client.Object
	// written are the writes and their times.
	written []string
	times   []time.Time
	due     time.Time
}

func newUnsteady(t *testing.T, generate func(call int) []client.Object) *unsteady {
	u := &unsteady{T: t, generate: generate}
	node := assembling()
	u.node = node
	node.Generator = generator.GeneratorFunc(func(
		context.Context, string, string, generator.Unstructurable,
	) ([]client.Object, error) {
		u.calls++
		return u.generate(u.calls), nil
	})
	house, _, _ := newHouse()
	u.operated = newOperated(t, node, house, nil)
	u.due = u.now
	return u
}

// until reconciles until a time: soon after a write, and else when the component asks for it.
func (u *unsteady) until(end time.Time) {
	u.Helper()
	for u.due.Before(end) && len(u.written) < 1000 {
		result, err := u.reconcile(u, u.due.Sub(u.now))
		if err != nil {
			u.Fatal(err)
		}
		for _, write := range u.writes {
			u.written, u.times = append(u.written, u.now.Sub(rtesting.RolledOutAt).String()+" "+write), append(u.times, u.now)
		}
		u.due = u.now.Add(result.RequeueAfter)
		if len(u.writes) > 0 {
			u.due = u.now.Add(5 * time.Millisecond)
		}
	}
	u.now, u.due = end, end
}

func (u *unsteady) condition() metav1.Condition {
	u.Helper()
	if condition := u.house(u).Status.GetCondition(apis.ConditionReady); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

// stamped is a part with a value that depends on the call.
func stamped(call int) client.Object {
	part := partOf("default", "stamped", "0")
	part.Data["stamp"] = fmt.Sprintf("secret-%d", call)
	return part
}

func TestNondeterministicGenerator(t *testing.T) {
	for name, test := range map[string]struct {
		generate func(call int) []client.Object
		message  string
	}{
		"a value that depends on the time": {func(call int) []client.Object {
			return []client.Object{partOf("default", "steady", "0"), stamped(call)}
		}, "The generator returns other objects although its input is the same: ConfigMap default/stamped differs in .data.stamp; " +
			"it must not depend on time, chance or the order of a map, and References must name what else it reads"},
		"the order of a list": {func(call int) []client.Object {
			service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}}
			service.Namespace, service.Name = "default", "shop"
			service.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 1}, {Name: "b", Port: 2}}
			if call%2 == 0 {
				slices.Reverse(service.Spec.Ports)
			}
			return []client.Object{service}
		}, "Service default/shop differs in .spec.ports[0].name; it must not"},
		"the value of a Secret": {func(call int) []client.Object {
			secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
			secret.Namespace, secret.Name = "default", "password"
			secret.Data = map[string][]byte{"password": fmt.Appendf(nil, "secret-%d", call)}
			return []client.Object{secret}
		}, "Secret default/password differs in .data.password; it must not"},
		"a name": {func(call int) []client.Object {
			return []client.Object{partOf("default", fmt.Sprintf("part-%d", call), "0")}
		}, "is not generated each time"},
		"an annotation": {func(call int) []client.Object {
			part := partOf("default", "part", "0")
			part.Annotations["example.com/at"] = fmt.Sprintf("secret-%d", call)
			return []client.Object{part}
		}, `ConfigMap default/part differs in .metadata.annotations.example.com/at; it must not`},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnsteady(t, test.generate)
			begin := u.now
			u.until(begin.Add(30 * time.Minute))
			first := 0
			for _, at := range u.times {
				if at.Sub(begin) < time.Minute {
					first++
				}
			}
			t.Logf("%d writes in the first minute, %d in the next 29", first, len(u.written)-first)
			// The first five are the roll-out. A name has one object to record and create, and another one to delete.
			seldom := 29
			if name == "a name" {
				seldom = 58
			}
			if first > 5+10 || len(u.written)-first > seldom {
				t.Errorf("there are %d writes in the first minute, then %d, want at most 15, then %d:\n%s", first,
					len(u.written)-first, seldom, strings.Join(u.written[:min(len(u.written), 60)], "\n"))
			}
			c := u.condition()
			if c.Reason != component.ReasonNondeterministic || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, test.message) {
				t.Errorf("the condition is %s %s: %s, want %s and %q", c.Status, c.Reason, c.Message,
					component.ReasonNondeterministic, test.message)
			}
			told := 0
			for _, event := range u.events {
				if strings.HasPrefix(event, "Warning "+component.ReasonNondeterministic+": ") && strings.Contains(event, test.message) {
					told++
				}
				if strings.Contains(event, "secret-") {
					t.Errorf("the event has a value, want none: %s", event)
				}
			}
			if told != 1 || strings.Contains(c.Message, "secret-") {
				t.Errorf("%d events tell of it, want 1, and no value in the condition %q: %q", told, c.Message,
					[]string(u.events))
			}

			// It is ready again when the generator is steady for as long as the last delay, and rests from then on.
			call := u.calls
			u.generate = func(int) []client.Object { return test.generate(call) }
			u.until(u.now.Add(6 * time.Minute))
			if c := u.condition(); c.Status != metav1.ConditionTrue {
				t.Errorf("the condition is %s %s: %s, want it true", c.Status, c.Reason, c.Message)
			}
			writes := len(u.written)
			u.until(u.now.Add(time.Hour))
			if len(u.written) > writes {
				t.Errorf("the writes at rest are %q, want none", u.written[writes:])
			}
		})
	}
}

// While the output of a generator is held, the generator is not asked.
func TestNondeterministicGeneratorIsNotCalledWhileItsOutputIsHeld(t *testing.T) {
	u := newUnsteady(t, func(call int) []client.Object { return []client.Object{stamped(call)} })
	u.until(u.now.Add(10 * time.Second))
	calls := u.calls
	for range 5 {
		if _, err := u.reconcile(t, time.Second); err != nil {
			t.Fatal(err)
		}
		if len(u.writes) > 0 {
			t.Errorf("the writes are %q, want none", u.writes)
		}
	}
	if u.calls != calls {
		t.Errorf("there are %d more calls, want none", u.calls-calls)
	}
	// What was generated last is still enforced.
	part := &corev1.ConfigMap{}
	part.Name = "stamped"
	u.change(t, part, func() { part.Data = nil })
	if _, err := u.reconcile(t, 0); err != nil {
		t.Fatal(err)
	}
	if u.get(t, "stamped", part); part.Data["stamp"] == "" || u.calls != calls {
		t.Errorf("the data are %v after %d more calls, want a stamp after none", part.Data, u.calls-calls)
	}
}

// What changes the resource is rolled out at once, however unsteady the generator was before.
func TestNondeterministicGeneratorAndARealChange(t *testing.T) {
	for name, change := range map[string]func(*resources.Assembly){
		"the generation":  func(a *resources.Assembly) { a.Spec.Timeout = &metav1.Duration{Duration: time.Hour} },
		"a label":         func(a *resources.Assembly) { a.Labels = map[string]string{"a": "b"} },
		"an annotation":   func(a *resources.Assembly) { a.Annotations = map[string]string{"example.com/a": "b"} },
		"the parameters":  func(a *resources.Assembly) { a.SetObjects() },
		"a configuration": func(a *resources.Assembly) { a.Spec.UpdatePolicy = generator.UpdatePolicy("Replace") },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnsteady(t, func(call int) []client.Object { return []client.Object{stamped(call)} })
			u.until(u.now.Add(10 * time.Second))
			if c := u.condition(); c.Reason != component.ReasonNondeterministic {
				t.Fatalf("the condition is %s: %s, want %s", c.Reason, c.Message, component.ReasonNondeterministic)
			}
			u.generate = func(int) []client.Object { return []client.Object{stamped(0)} }
			house := u.house(t)
			u.change(t, house, func() { change(house) })
			u.untilIdle(t)
			part := &corev1.ConfigMap{}
			if u.get(t, "stamped", part); part.Data["stamp"] != "secret-0" {
				t.Errorf("the data are %v, want the stamp secret-0", part.Data)
			}
			if c := u.condition(); c.Status != metav1.ConditionTrue {
				t.Errorf("the condition is %s %s: %s, want it true", c.Status, c.Reason, c.Message)
			}
		})
	}
}

// Objects in another order are the same objects, and so are a few changes in a long time.
func TestSteadyGenerators(t *testing.T) {
	u := newUnsteady(t, func(call int) []client.Object {
		objects := []client.Object{partOf("default", "a", "0"), partOf("default", "b", "0"), partOf("default", "c", "1")}
		if call%2 == 0 {
			slices.Reverse(objects)
		}
		return objects
	})
	u.untilIdle(t)
	for range 20 {
		if _, err := u.reconcile(t, time.Second); err != nil || len(u.writes) > 0 {
			t.Fatalf("the error is %v and the writes are %q, want neither", err, u.writes)
		}
	}
	now := 0
	u = newUnsteady(t, func(int) []client.Object { return []client.Object{stamped(now)} })
	for now = range 20 {
		u.until(u.now.Add(30 * time.Minute))
	}
	for _, event := range u.events {
		if strings.Contains(event, component.ReasonNondeterministic) {
			t.Error(event)
		}
	}
	part := &corev1.ConfigMap{}
	if u.get(t, "stamped", part); part.Data["stamp"] != "secret-19" {
		t.Errorf("the data are %v, want the stamp secret-19", part.Data)
	}
}

// On a real API server each write is an event, and the component writes a few times, and then seldom.
func TestNondeterministicGeneratorOnTheAPIServer(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	config, requests := controlplane.CountRequests(plane.Config(t))
	mgr := newManager(t, config, ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}})
	var calls atomic.Int64
	root := component.NewComponentRoot(componentPrefix, generator.GeneratorFunc(func(
		context.Context, string, string, generator.Unstructurable,
	) ([]client.Object, error) {
		part := stamped(int(calls.Add(1)))
		part.SetNamespace(namespace)
		return []client.Object{part}, nil
	}), assemblyOptions{Config: reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour)})
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	startManager(t, mgr)
	house := resources.NewAssembly(namespace, "house")
	if err := c.Create(t.Context(), house); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	controlplanetest.Eventually(t, "nothing is said", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(house), house); err != nil {
			return err
		}
		condition := house.Status.GetCondition(apis.ConditionReady)
		if condition == nil || condition.Reason != component.ReasonNondeterministic {
			return fmt.Errorf("the condition is %v", condition)
		}
		return nil
	})
	before := calls.Load()
	controlplanetest.Eventually(t, "nothing is generated any more", func(context.Context) error {
		if n := calls.Load(); n == before {
			return fmt.Errorf("the generator was called %d times", n)
		}
		return nil
	})
	n, took := written(requests), time.Since(began)
	t.Logf("%d writes in %s", n, took)
	if most := 20 * (1 + int(took/time.Minute)); n > most || took < firstDelay {
		t.Errorf("there are %d writes in %s, want at most %d, and the last output after %s: %s",
			n, took, most, firstDelay, requests)
	}
}

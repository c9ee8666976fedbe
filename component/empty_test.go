package component_test

import (
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// emptied is a component whose input may be lost.
type emptied struct {
	*unsteady
	lost bool
}

func newEmptied(t *testing.T) *emptied {
	t.Helper()
	e := &emptied{}
	e.unsteady = newUnsteady(t, func(int) []client.Object {
		if e.lost {
			return nil
		}
		return []client.Object{partOf("default", "walls", "0"), partOf("default", "roof", "1")}
	})
	e.after(time.Minute)
	e.has(2)
	return e
}

func (e *emptied) after(pass time.Duration) {
	e.Helper()
	e.due = e.now
	e.until(e.now.Add(pass))
}

// stands expects a number of objects, and a reason. The condition is True with the reason Ready only.
func (e *emptied) stands(objects int, reason string) {
	e.Helper()
	e.has(objects)
	status := "False"
	if reason == component.ReasonReady {
		status = "True"
	}
	if c := e.condition(); string(c.Status) != status || c.Reason != reason {
		e.Fatalf("the condition is %s by %s (%s), want %s by %s", c.Status, c.Reason, c.Message, status, reason)
	}
}

// has expects the number of objects.
func (e *emptied) has(want int) {
	e.Helper()
	list := &corev1.ConfigMapList{}
	if err := e.client.List(e.Context(), list); err != nil {
		e.Fatal(err)
	}
	if len(list.Items) != want {
		e.Fatalf("there are %d objects, want %d; the condition is %v", len(list.Items), want, e.condition())
	}
}

// An input that is lost deletes nothing, and is no state that is fine.
func TestAnEmptySetDeletesNothing(t *testing.T) {
	e := newEmptied(t)
	before := len(e.written)
	e.lost = true
	e.after(2 * time.Hour)
	e.stands(2, component.ReasonEmptySet)
	const want = "The generator returned no objects, so nothing is deleted of 2 objects: ConfigMap default/walls, " +
		"ConfigMap default/roof. If all are to go, delete the resource, or allow it once with the annotation " +
		`assembly.espalier.test/allow-empty: "1", or always with AllowEmpty of the ComponentReconciler`
	if got := e.condition().Message; got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	if n := len(e.written) - before; n != 1 {
		t.Errorf("there are %d writes, want that of the condition: %v", n, e.written[before:])
	}
	plan, err := e.node.Plan(reconcilers.StashConfig(t.Context(), e.root.Config), e.house(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Changes) > 0 || plan.Done || !strings.Contains(plan.String(), "no object is desired") {
		t.Errorf("the plan is %v (done: %t)\n%s", plan.Changes, plan.Done, plan)
	}

	e.lost = false
	e.after(time.Hour)
	e.stands(2, component.ReasonReady)
}

// The annotation counts for a generation, and once.
func TestAnEmptySetMayBeAllowedForAGeneration(t *testing.T) {
	e := newEmptied(t)
	e.lost = true
	e.after(time.Hour)
	house := &resources.Assembly{}
	house.Name = "house"
	key := componentPrefix + "/" + generator.AnnotationAllowEmpty
	annotate := func(value string) {
		e.change(t, house, func() { house.Annotations = map[string]string{key: value} })
	}
	annotate("2")
	e.after(time.Hour)
	e.stands(2, component.ReasonEmptySet)
	annotate("1")
	e.after(time.Hour)
	e.stands(0, component.ReasonReady)

	e.lost = false
	e.after(time.Hour)
	e.stands(2, component.ReasonReady)
	e.lost = true
	e.after(time.Hour)
	e.stands(2, component.ReasonEmptySet)
}

// The author may say that an empty set is one like others.
func TestAnEmptySetMayBeAllowedByTheAuthor(t *testing.T) {
	e := newEmptied(t)
	e.node.AllowEmpty, e.lost = true, true
	e.after(time.Hour)
	e.stands(0, component.ReasonReady)
}

// What is withdrawn or deleted needs no word about what it generates.
func TestAnEmptySetIsNoneOfADeletedComponent(t *testing.T) {
	e := newEmptied(t)
	e.lost = true
	e.after(time.Hour)
	if err := e.client.Delete(t.Context(), e.house(t)); err != nil {
		t.Fatal(err)
	}
	e.untilIdle(t)
	e.has(0)
}

// A component that never had an object is ready without any.
func TestAnEmptySetMayBeTheFirst(t *testing.T) {
	u := newUnsteady(t, func(int) []client.Object { return nil })
	u.until(u.now.Add(time.Hour))
	if c := u.condition(); c.Reason != component.ReasonReady {
		t.Errorf("the condition is %v, want Ready", c)
	}
}

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// renamingQueue is a queue for a child whose name counts, and which is desired by the name that the function returns.
func renamingQueue(
	change func(*configMapNode), name func() string, reactors ...rtesting.ReactionFunc,
) (*virtualQueue, *trace) {
	calls := &trace{}
	node := reflectingChild(calls)
	desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		child.Name = name()
		return child, nil
	})(node)
	renames(reconcilers.ByKind)(node)
	change(node)
	q, _ := newVirtualQueue(node, []client.Object{steadyWidget}, reactors...)
	q.root.(*widgetRoot).Config.APIReader = q.client
	return q, calls
}

func updated(*configMapNode) {}

// Whichever call fails, the new object is there in the end and the old one is not, and the new one is never deleted.
func TestL11ARenamedChildConverges(t *testing.T) {
	for failure, err := range map[string]error{
		"an error": errBoom, "a conflict": apierrs.NewConflict(configMapResource, "x", errBoom),
	} {
		for failing := range 6 {
			t.Run(fmt.Sprintf("%s at call %d", failure, failing), func(t *testing.T) {
				calls, name := -1, "old"
				fail := func(action rtesting.Action) (bool, runtime.Object, error) {
					if action.GetResource().Resource != "ConfigMap" || name == "old" || action.GetVerb() == "list" {
						return false, nil, nil
					}
					calls++
					if remove, ok := action.(rtesting.DeleteAction); ok && remove.GetName() == name {
						t.Errorf("%s is deleted, which is desired", name)
					}
					return calls == failing, nil, err
				}
				q, _ := renamingQueue(updated, func() string { return name }, fail)
				q.run(t, time.Minute)
				name = "new"
				q.wake(0)
				q.run(t, time.Hour)
				if got := q.names(t); !slices.Equal(got, []string{"new"}) {
					t.Errorf("there are %v, want only new: %v", got, q.calls.calls)
				}
			})
		}
	}
}

// A name that differs in each request is not followed, but looked at again, until it stays the same.
func TestANameThatIsNotStable(t *testing.T) {
	for kind, change := range map[string]func(*configMapNode){"updated": updated, "holds data": holdsData} {
		t.Run(kind, func(t *testing.T) {
			n, stable := 0, false
			q, calls := renamingQueue(change, func() string {
				if !stable {
					n++
				}
				return fmt.Sprintf("random-%d", n)
			})
			for range 3 {
				q.run(t, time.Minute)
				q.wake(0)
			}
			q.run(t, latency)
			q.calls.calls, calls.calls, q.at = nil, nil, nil
			q.run(t, time.Minute)
			if len(q.calls.calls) > 0 || len(q.at) < 5 || len(q.at) > 7 {
				t.Errorf("within a minute there are %d requests, and %v is called, want 6 and nothing", len(q.at), q.calls.calls)
			}
			last := calls.calls[len(calls.calls)-1]
			if !strings.HasPrefix(last, "reflect random-") || !strings.HasSuffix(last, ", nothing is created or deleted, since the desired name "+
				"of the ConfigMap changes from request to request although the resource stays the same: it must not depend on "+
				"time, chance or the order of a map") {
				t.Errorf("%q comes last, want what is wrong with the name", last)
			}
			stable = true
			q.run(t, time.Minute)
			name := fmt.Sprintf("random-%d", n)
			if got := q.names(t); kind == "updated" && !slices.Contains(got, name) {
				t.Errorf("there are %v, want %s once it is stable", got, name)
			}
			if last := calls.calls[len(calls.calls)-1]; strings.Contains(last, "changes from request") {
				t.Errorf("%q comes last, want no error of a stable name", last)
			}
		})
	}
}

// A name that changes with the resource is followed.
func TestANameThatChangesWithTheResource(t *testing.T) {
	n := 0
	q, _ := renamingQueue(updated, func() string { return fmt.Sprintf("name-%d", n) })
	for range 5 {
		n++
		w := q.widget(t)
		w.Generation++
		if err := q.client.Update(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		q.wake(0)
		q.run(t, latency/2)
	}
	q.run(t, time.Minute)
	if got := q.names(t); !slices.Equal(got, []string{"name-5"}) {
		t.Errorf("there are %v, want only name-5", got)
	}
}

// A child that does not run does not become ready, and the old one must not go on running.
func TestChildRenamedSupervised(t *testing.T) {
	node := func(change func(*configMapNode)) func(*trace) widgetNode {
		return func(*trace) widgetNode {
			node := &configMapNode{
				Name: "Child",
				DesiredChild: func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
					return configMap.With(ownerless, called("new")).Object(), nil
				},
				ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
				ChildObjectManager:         &configMaps{MergeBeforeUpdate: mergeConfigMap},
			}
			renames(reconcilers.ByKind)(node)
			change(node)
			node.ChildIsReady = func(_ context.Context, child *corev1.ConfigMap) bool { return child.Data["color"] == "green" }
			return supervised{node}
		}
	}
	maintain, suspend := asked(), asked("supervision", "Suspend")
	withdraw, remove := asked("supervision", "Withdraw"), asked("supervision", "Suspend", "suspend", "remove")
	gray, givenNew := coloured("gray"), givenConfigMap.With(renamed("new"))
	const child = "Child: ConfigMap default/"
	nodeTests{
		"maintained": {node: node(updated), widgetCase: widgetCase{
			Resource: maintain(), ExpectResource: maintain(child + "new: blue"),
			GivenObjects:  []client.Object{givenConfigMap},
			ExpectCreates: []client.Object{configMap.With(called("new"))},
			ExpectEvents:  []rtesting.Event{createdEvent("new")},
		}},
		"suspended": {node: node(updated), widgetCase: widgetCase{
			Resource: suspend(), ExpectResource: suspend(child + "new: gray"),
			GivenObjects:  []client.Object{givenConfigMap},
			ExpectCreates: []client.Object{configMap.With(called("new"), gray)},
			ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
			ExpectEvents:  []rtesting.Event{createdEvent("new"), deletedEvent("gadget")},
		}},
		"suspended, and both there": {node: node(updated), widgetCase: widgetCase{
			Resource: suspend(), ExpectResource: suspend(child + "new: gray"),
			GivenObjects:  []client.Object{givenConfigMap, givenNew.With(gray)},
			ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
			ExpectEvents:  []rtesting.Event{deletedEvent("gadget")},
		}},
		"suspended by a delete": {node: node(updated), widgetCase: widgetCase{
			Resource: remove(), ExpectResource: remove(child+"gadget: terminating", child+"new: terminating"),
			GivenObjects:  []client.Object{givenConfigMap, givenNew},
			ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap), deleteOf(givenNew)},
			ExpectEvents:  []rtesting.Event{deletedEvent("gadget"), deletedEvent("new")},
		}},
		"withdrawn": {node: node(holdsData), widgetCase: widgetCase{
			Resource: withdraw(), ExpectResource: withdraw(child+"gadget: terminating", child+"new: terminating"),
			GivenObjects:  []client.Object{givenConfigMap, givenNew},
			ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap), deleteOf(givenNew)},
			ExpectEvents:  []rtesting.Event{deletedEvent("gadget"), deletedEvent("new")},
		}},
		"refused": {node: node(holdsData), widgetCase: widgetCase{
			Resource: maintain(), ExpectResource: maintain(child + "gadget: blue: " + refusedName("new")),
			GivenObjects: []client.Object{givenConfigMap},
		}},
		"refused, and suspended": {node: node(holdsData), widgetCase: widgetCase{
			Resource: suspend(), ExpectResource: suspend(child + "gadget: gray: " + refusedName("new")),
			GivenObjects:  []client.Object{givenConfigMap},
			ExpectUpdates: []client.Object{givenConfigMap.With(gray)},
			ExpectEvents:  []rtesting.Event{updatedEvent("gadget")},
		}},
	}.run(t)
}

// The reason of a refused name is seen also if something else is wrong.
func TestNameError(t *testing.T) {
	err := error(&reconcilers.NameError{Reason: "NameChanged", Desired: "Secret a/x", Child: "Secret a/y", Err: immutable("data")})
	if reason := apierrs.ReasonForError(err); reason != "NameChanged" || apierrs.IsConflict(err) || apierrs.IsInvalid(err) {
		t.Errorf("its reason is %s, want NameChanged and nothing else", reason)
	}
	if !errors.Is(err, err.(*reconcilers.NameError).Err) {
		t.Errorf("%v does not wrap what else is wrong", err)
	}
}

func TestRenamingIsValidated(t *testing.T) {
	node := func(how reconcilers.Renaming) *configMapNode {
		node := reflectingChild(&trace{})
		node.Renaming = how
		return node
	}
	validationTests{
		"needs no readiness": {node: node(reconcilers.IgnoreName)},
		"needs readiness":    {node: node(reconcilers.ByKind), shallow: `ChildReconciler "ConfigMapChildReconciler" must implement ChildIsReady since Renaming is ByKind`},
		"unknown":            {node: node("Sometimes"), shallow: `ChildReconciler "ConfigMapChildReconciler" must have a known Renaming, not "Sometimes"`},
	}.run(t)
}

// names are those of all ConfigMaps.
func (q *virtualQueue) names(t *testing.T) (names []string) {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := q.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

package reconcilers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
)

// summed has the conditions that the trees of these tests mark.
var summed = apis.NewLivingConditionSet("A", "B", "C")

// conditionsView is what a cast of a Widget has of it.
type conditionsView struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            apis.Status `json:"status,omitempty"`
}

func (v *conditionsView) DeepCopyObject() kruntime.Object {
	copied := *v
	v.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	v.Status.DeepCopyInto(&copied.Status)
	return &copied
}

// conditionsDo changes a condition, of whichever object stands for the resource.
type conditionsDo func(manager apis.ConditionManager)

// marks marks a condition.
func marks(conditionType string, status metav1.ConditionStatus) conditionsDo {
	return func(manager apis.ConditionManager) {
		switch status {
		case metav1.ConditionTrue:
			manager.MarkTrue(conditionType, "Fine", "")
		case metav1.ConditionFalse:
			manager.MarkFalse(conditionType, conditionType+"Broken", "%s is broken", conditionType)
		default:
			manager.MarkUnknown(conditionType, conditionType+"Asking", "")
		}
	}
}

func plainly(_ string, do conditionsDo) widgetNode {
	return syncing(func(ctx context.Context, w *resources.Widget) { do(summed.ManageWithContext(ctx, &w.Status)) })
}

func inACast(_ string, do conditionsDo) widgetNode {
	return &reconcilers.CastResource[*resources.Widget, *conditionsView]{
		Reconciler: &reconcilers.SyncReconciler[*conditionsView]{
			Sync: func(ctx context.Context, v *conditionsView) error {
				do(summed.ManageWithContext(ctx, &v.Status))
				return nil
			},
		},
	}
}

func inAnItem(name string, do conditionsDo) widgetNode {
	return &reconcilers.ForEach[*resources.Widget, string]{
		Key: func(item string) string { return item }, Reconciler: plainly(name, do), Name: name,
		Items: func(context.Context, *resources.Widget) ([]string, error) { return []string{"x"}, nil },
	}
}

// listMaker makes a Sequence or a Parallel.
type listMaker func(...widgetNode) widgetNode

var listings = map[string]listMaker{
	"Sequence": func(nodes ...widgetNode) widgetNode { return widgetSequence(nodes) },
	"Parallel": func(nodes ...widgetNode) widgetNode { return parallel(nodes...) },
}

// conditionsOf are conditions without their times, which the clock decides.
func conditionsOf(w *resources.Widget) (all []string) {
	for _, c := range w.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s %s %q", c.Type, c.Status, c.Reason, c.Message))
	}
	return all
}

// requests runs a tree below a root as often as said, and returns the conditions after each request. The last two must
// leave the resource alone.
func requests(t *testing.T, name string, w *resources.Widget, tree widgetNode, begin func(int), n int) [][]string {
	t.Helper()
	config := inMemory(w)
	root := &widgetRoot{Config: config, Reconciler: tree}
	var all [][]string
	version := ""
	for i := range n {
		begin(i)
		if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
			t.Fatalf("%s: the error of request %d is %v, want none", name, i, err)
		}
		var left resources.Widget
		if err := config.Get(t.Context(), widgetKey, &left); err != nil {
			t.Fatal(err)
		}
		if i >= n-2 && left.ResourceVersion != version {
			t.Fatalf("%s: request %d has written the resource, want it left alone: %v and then %v",
				name, i, all[i-1], conditionsOf(&left))
		}
		version = left.ResourceVersion
		all = append(all, conditionsOf(&left))
	}
	return all
}

// widgetWith returns a widget whose conditions all have that status.
func widgetWith(status metav1.ConditionStatus) *resources.Widget {
	w := widget.Object()
	manager := summed.ManageWithContext(context.Background(), &w.Status)
	manager.InitializeConditions()
	for _, t := range []string{"A", "B", "C"} {
		marks(t, status)(manager)
	}
	return w
}

// shapesOf are trees of three nodes.
var shapesOf = map[string]func(list listMaker, a, b, c widgetNode) widgetNode{
	"flat":         func(list listMaker, a, b, c widgetNode) widgetNode { return list(a, b, c) },
	"first nested": func(list listMaker, a, b, c widgetNode) widgetNode { return list(list(a, b), c) },
	"last nested":  func(list listMaker, a, b, c widgetNode) widgetNode { return list(a, list(b, c)) },
	"each nested": func(list listMaker, a, b, c widgetNode) widgetNode {
		return list(list(a, idle{}), list(b, idle{}), c)
	},
	"nested thrice": func(list listMaker, a, b, c widgetNode) widgetNode { return list(list(list(a, b), idle{}), c) },
	"in a sequence": func(list listMaker, a, b, c widgetNode) widgetNode {
		return list(widgetSequence{list(a, b)}, c, idle{})
	},
}

// Branches that mark conditions below other nodes make of the summary what they do one after the other, in each of
// several requests.
func TestParallelSumsUpNestedConditions(t *testing.T) {
	states := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	ways := map[string]func(string, conditionsDo) widgetNode{
		"plainly": plainly, "in a cast": inACast, "in an item": inAnItem,
	}
	for shape, build := range shapesOf {
		for way, node := range ways {
			t.Run(shape+", "+way, func(t *testing.T) {
				for seed := range uint64(10) {
					r := rand.New(rand.NewPCG(seed, 0))
					start := states[r.IntN(3)]
					const n = 7
					var picks [n][3]metav1.ConditionStatus
					for i := range picks {
						for j := range picks[i] {
							picks[i][j] = states[r.IntN(3)]
						}
					}
					picks[n-1], picks[n-2], picks[n-3] = picks[n-4], picks[n-4], picks[n-4]
					now := 0
					leaf := func(j int, conditionType string) widgetNode {
						return node(conditionType, func(m apis.ConditionManager) { marks(conditionType, picks[now][j])(m) })
					}
					outcomes := map[string][][]string{}
					for kind, list := range listings {
						tree := build(list, leaf(0, "A"), leaf(1, "B"), leaf(2, "C"))
						name := fmt.Sprint(kind, ", seed ", seed)
						outcomes[kind] = requests(t, name, widgetWith(start), tree, func(i int) { now = i }, n)
					}
					if diff := cmp.Diff(outcomes["Sequence"], outcomes["Parallel"]); diff != "" {
						t.Fatalf("seed %d: the conditions of %v differ from those of a sequence (-sequence, +parallel):\n%s",
							seed, picks, diff)
					}
				}
			})
		}
	}
}

// The times of conditions that were set in a request, and those that a cast has decoded, are in different zones.
func TestParallelWithConditionsOfTheSameRequest(t *testing.T) {
	begins := plainly("", func(m apis.ConditionManager) { m.InitializeConditions() })
	for name, node := range map[string]func(string, conditionsDo) widgetNode{"plainly": plainly, "in a cast": inACast} {
		tree := widgetSequence{begins, parallel(
			inACast("", marks("A", "True")), node("", marks("B", "True")), node("", marks("C", "True")),
		)}
		outcomes := requests(t, name, widget.Object(), tree, func(int) {}, 3)
		want := []string{
			`A=True Fine ""`, `B=True Fine ""`, `C=True Fine ""`, `ChildReady=Unknown Initializing ""`, `Ready=True Ready ""`,
		}
		if diff := cmp.Diff(want, outcomes[0]); diff != "" {
			t.Errorf("%s: the conditions differ after the first request (-want, +got):\n%s", name, diff)
		}
	}
}

// What an author sets by another function than a mark is in the summary as well.
func TestParallelSumsUpConditionsThatAreSet(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: "Mine", Message: "set"}
	}
	var reporter reconcilers.Reporter
	first := map[string]widgetNode{
		"a dependent by the manager": plainly("", func(m apis.ConditionManager) {
			m.SetCondition(condition("A", "False"))
		}),
		"a dependent": syncing(func(ctx context.Context, w *resources.Widget) {
			reconcilers.SetCondition(ctx, w, condition("A", "False"))
		}),
		"a dependent by a reporter": syncing(func(ctx context.Context, w *resources.Widget) {
			reporter.Report(ctx, w, condition("A", "False"))
		}),
		"the summary": syncing(func(ctx context.Context, w *resources.Widget) {
			reconcilers.SetCondition(ctx, w, condition("Ready", "False"))
		}),
		"a dependent that goes": syncing(func(_ context.Context, w *resources.Widget) {
			reconcilers.RemoveCondition(w, "A")
		}),
		"dependents that begin": plainly("", func(m apis.ConditionManager) { m.InitializeConditions() }),
	}
	for set, node := range first {
		for _, mark := range []metav1.ConditionStatus{"True", "False", "Unknown"} {
			for _, start := range []metav1.ConditionStatus{"True", "False", "Unknown", ""} {
				if set == "dependents that begin" && start == "" {
					// Both give the condition C that was not there another value.
					continue
				}
				outcomes := map[string][]string{}
				for kind, list := range listings {
					w := widget.Object()
					if start != "" {
						w = widgetWith(start)
					}
					if _, err := list(node, plainly("", marks("C", mark)), idle{}).Reconcile(
						testContext(t, expectWidget().Config()), w,
					); err != nil {
						t.Fatalf("%s, then %s: the error of the %s is %v, want none", set, mark, kind, err)
					}
					outcomes[kind] = conditionsOf(w)
				}
				if diff := cmp.Diff(outcomes["Sequence"], outcomes["Parallel"]); diff != "" {
					t.Errorf("%q, %s, then C %s: the conditions differ from those of a sequence (-sequence, +parallel):\n%s",
						start, set, mark, diff)
				}
			}
		}
	}
}

// A summary that a branch has written past all functions, beside marks of another one, is an error and not lost.
func TestParallelReportsAClashOfSummaries(t *testing.T) {
	writes := &widgetSync{Name: "writes", Sync: func(_ context.Context, w *resources.Widget) error {
		for i := range w.Status.Conditions {
			if c := &w.Status.Conditions[i]; c.Type == "Ready" {
				c.Status, c.Reason = "False", "Written"
			}
		}
		return nil
	}}
	marked := plainly("", marks("C", "Unknown"))
	for name, test := range map[string]struct {
		node        widgetNode
		ready, want string
	}{
		"first": {parallel(writes, marked), "Ready=False Written \"\"", "Root/0/writes and Root/1/SyncReconciler both"},
		"last":  {parallel(marked, writes), "Ready=Unknown CAsking \"\"", "Root/0/SyncReconciler and Root/1/writes both"},
		"nested": {
			parallel(idle{}, parallel(idle{}, writes), marked),
			"Ready=False Written \"\"", "Root/1 and Root/2/SyncReconciler both",
		},
		"alone": {parallel(idle{}, parallel(idle{}, writes), idle{}), "Ready=False Written \"\"", ""},
	} {
		w := widgetWith("True")
		_, err := test.node.Reconcile(reconcilers.Enter(testContext(t, expectWidget().Config()), "Root"), w)
		want := ""
		if test.want != "" {
			want = "the nodes " + test.want + " change .status.conditions[Ready] of the resource: " +
				"nodes that do so must not be in one Parallel"
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if all := conditionsOf(w); got != want || all[len(all)-1] != test.ready {
			t.Errorf("%s: the error is\n%q and the conditions are %q, want\n%q and %q", name, got, all, want, test.ready)
		}
	}
}

// Without a root, each branch may have its own time, which is no reason for a clash.
func TestParallelSumsUpConditionsOfDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := func(seconds int, do conditionsDo) widgetNode {
			return syncing(func(ctx context.Context, w *resources.Widget) {
				time.Sleep(time.Duration(seconds) * time.Second)
				do(summed.ManageWithContext(ctx, &w.Status))
			})
		}
		w := widgetWith("True")
		time.Sleep(time.Minute)
		began := time.Now()
		node := parallel(later(1, marks("A", "False")), later(5, marks("B", "False")), later(3, marks("C", "False")))
		if _, err := node.Reconcile(t.Context(), w); err != nil {
			t.Errorf("the error is %v, want none", err)
		}
		ready := w.Status.GetCondition("Ready")
		if changed := ready.LastTransitionTime.Sub(began); ready.Reason != "CBroken" || changed != time.Second {
			t.Errorf("Ready is %v and has changed after %s, want CBroken, after 1s", ready, changed)
		}
	})
}

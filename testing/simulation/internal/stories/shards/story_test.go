package shards_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// namespaces are those of Widgets.
var namespaces = []string{"default", "team"}

// replicas are the processes of the operator.
var replicas = []string{simulation.Operator, simulation.Operator + "-2", simulation.Operator + "-3"}

func cluster() simulation.Options {
	return simulation.Options{
		Prepare: prepare(flawless),
		// Leases are renewed less often than by default, which takes less time here.
		Manager:     ctrl.Options{LeaderElectionNamespace: "default", RetryPeriod: new(5 * time.Second)},
		Replicas:    len(replicas),
		Scheme:      resources.NewScheme(),
		Definitions: []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), sharder.Definition()},
		Objects:     []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}},
		Always:      laws(),
	}
}

// story is one that is drawn.
type story struct {
	*simulation.World
	*rand.Rand
	sharder *engine
	widgets []*resources.Widget
	// made is how many Widgets were made, and rings how many rings besides the first one.
	made, rings int
}

// begin begins a story, when all replicas are ready.
func begin(w *simulation.World, seed uint64) *story {
	w.Helper()
	s := &story{World: w, Rand: rand.New(rand.NewPCG(seed, 1)), sharder: startEngine(w, seed)}
	s.Until("all shards are ready", func() bool {
		leases := &coordinationv1.LeaseList{}
		s.List(leases, client.MatchingLabels{sharder.StateLabel: string(sharder.Ready)})
		return len(leases.Items) == len(replicas)
	})
	return s
}

// make makes a Widget.
func (s *story) make() {
	s.Helper()
	s.made++
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespaces[s.made%2], Name: fmt.Sprintf("w%d", s.made),
	}}
	widget.Spec.Fields = s.fields()
	s.Create(widget)
	s.widgets = append(s.widgets, widget)
}

// fields returns the fields of a Widget.
func (s *story) fields() map[string]string {
	return map[string]string{
		partsField: fmt.Sprint(s.IntN(4)), notesField: fmt.Sprint(s.IntN(2)), accountsField: fmt.Sprint(s.IntN(3)),
		colorField: fmt.Sprint(s.IntN(1000)),
	}
}

// change changes a Widget: it has more children or less, and others than before.
func (s *story) change() {
	s.Helper()
	widget, fields := s.widgets[s.IntN(len(s.widgets))], s.fields()
	s.Update(widget, func() { widget.Spec.Fields = fields })
}

// remove deletes a Widget.
func (s *story) remove() {
	s.Helper()
	i := s.IntN(len(s.widgets))
	s.Delete(s.widgets[i])
	s.widgets = slices.Delete(s.widgets, i, i+1)
}

// passes lets a time pass, which is mostly short.
func (s *story) passes(longest time.Duration) {
	s.Pass(time.Duration(s.Int64N(int64(longest)>>s.IntN(8))) + 1)
}

// replica returns one of the replicas.
func (s *story) replica() string { return replicas[s.IntN(len(replicas))] }

// user does something that a user does.
func (s *story) user() {
	s.Helper()
	switch n := s.IntN(4); {
	case n == 0 || len(s.widgets) < 3:
		s.make()
	case n == 1:
		s.remove()
	default:
		s.change()
	}
}

// told tells a story of a seed.
func told(w *simulation.World, seed uint64) {
	w.Helper()
	s := begin(w, seed)
	for range 4 {
		s.make()
	}
	s.passes(time.Minute)
	for _, event := range drawn(seed) {
		s.Logf("%s", event.name)
		event.happens(s)
		s.passes(2 * time.Minute)
		s.user()
		s.passes(time.Minute)
	}
	s.end()
}

// end waits for rest, and checks what there is then. It does so again when all Widgets are deleted.
func (s *story) end() {
	s.Helper()
	s.Rest()
	s.areReconciled()
	s.Delete(objects(s.widgets)...)
	s.widgets = nil
	for begin := time.Now(); s.unreconciled() != "" && time.Since(begin) < time.Hour; {
		s.Pass(5 * time.Second)
	}
	s.Pass(time.Minute)
	s.areReconciled()
}

// objects returns Widgets as objects.
func objects(widgets []*resources.Widget) []client.Object {
	var all []client.Object
	for _, widget := range widgets {
		all = append(all, widget)
	}
	return all
}

// areReconciled fails the story unless each Widget and its children are as they should be, and nothing else is there.
func (s *story) areReconciled() {
	s.Helper()
	if wrong := s.unreconciled(); wrong != "" {
		s.Errorf("%q does not hold: %s", reconciledLaw, wrong)
	}
}

// unreconciled says what is wrong: each Widget has to be reconciled and of a shard, its children have to be there and
// of the same shard, and it has to be registered. Nothing may be left of one that is gone.
func (s *story) unreconciled() string {
	s.Helper()
	widgets := &resources.WidgetList{}
	s.List(widgets)
	owners := map[string]*resources.Widget{}
	var got, want []string
	for i := range widgets.Items {
		widget := &widgets.Items[i]
		owners[string(widget.UID)] = widget
		got = append(got, s.seen(widget))
	}
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{},
	} {
		s.List(list, client.HasLabels{widgetLabel})
		for _, obj := range items(list) {
			got = append(got, s.seenChild(obj, owners[obj.GetLabels()[widgetLabel]]))
		}
	}
	for uid, name := range registries.Of(s.World).all() {
		if owners[uid] == nil {
			name += ", which is gone,"
		}
		got = append(got, name+" is registered")
	}
	for _, widget := range s.widgets {
		s.Get(widget)
		want = append(want, fmt.Sprintf("%s of generation %d, of a shard", widget.Name, widget.Generation))
		for _, role := range roles(widget) {
			color := widget.Spec.Fields[colorField]
			if isAccount(role) {
				color = ""
			}
			want = append(want, widget.Name+" "+role+" "+color)
		}
		want = append(want, widget.Name+" is registered")
	}
	slices.Sort(got)
	slices.Sort(want)
	return cmp.Diff(want, got)
}

// seenChild says what a child is like. The owner is nil if it is gone.
func (s *story) seenChild(obj client.Object, owner *resources.Widget) string {
	labels := obj.GetLabels()
	if owner == nil {
		return fmt.Sprintf("%s, of a Widget that is gone", obj.GetName())
	}
	text := owner.Name + " " + labels[roleLabel] + " " + color(obj)
	if isAccount(labels[roleLabel]) {
		return text
	}
	if shard, of := labels[sharder.ShardLabel(s.ring())], owner.Labels[sharder.ShardLabel(s.ring())]; shard != of {
		return fmt.Sprintf("%s, of the shard %q, and its Widget of %q", text, shard, of)
	}
	return text
}

// seen says which generation of a Widget was reconciled, and whether a shard has it.
func (s *story) seen(widget *resources.Widget) string {
	text := fmt.Sprintf("%s of generation %d", widget.Name, widget.Status.ObservedGeneration)
	labels := widget.Labels
	if _, asked := labels[sharder.DrainLabel(s.ring())]; asked || labels[sharder.ShardLabel(s.ring())] == "" {
		return fmt.Sprintf("%s, with the labels %v", text, labels)
	}
	return text + ", of a shard"
}

// color returns what an object has from its Widget.
func color(obj client.Object) string {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		return obj.Data["color"]
	case *corev1.Secret:
		return string(obj.Data["color"])
	}
	return ""
}

// calm is when faults end. Most stories are told by then, but for their end.
const calm = 8 * time.Minute

// TestShards tells stories that are drawn from seeds, under faults that are drawn from them, too. Without faults, the
// stories of TestMoves are told.
func TestShards(t *testing.T) {
	number := flag.Lookup("simulation.seeds").Value.(flag.Getter).Get().(int)
	first := flag.Lookup("simulation.seed").Value.(flag.Getter).Get().(uint64)
	var all tally
	t.Cleanup(func() { all.report(t, number) })
	for seed := first; seed < first+uint64(number); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			options := cluster()
			options.Plan = plan.FromSeed(seed, plan.Options{Actors: replicas, Latency: underWay, Calm: calm})
			options.Always = append(options.Always, simulation.Invariant{Name: "it is counted", Check: counted})
			simulation.Run(t, options, func(w *simulation.World) {
				told(w, seed)
				all.add(w)
			})
		})
	}
}

// items returns the objects of a list.
func items(list client.ObjectList) []client.Object {
	var all []client.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		all = append(all, item.(client.Object))
		return nil
	})
	return all
}

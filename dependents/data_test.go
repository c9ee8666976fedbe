package dependents_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/dependents"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// colored returns dependents that are given out of order: config has the color of settings, and lone waits for nothing.
// The guard of lone is closed if the resource says so.
func colored() nodes {
	color := dependents.NewCell[string]("color")
	colors := dependents.Yield(readSettings(), color, func(live *corev1.ConfigMap) (string, error) {
		if live.Data["color"] == "" {
			return "", errBoom
		}
		return live.Data["color"], nil
	})
	config := dependents.Of("config", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		value, _ := dependents.Value(ctx, color)
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-config"},
			Data:       map[string]string{"color": value},
		}, nil
	}).Needs(color)
	lone := dependents.Of("lone", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-lone"}}, nil
	}).Guard(func(_ context.Context, w *resources.Widget) (string, error) {
		if asks(w, "closed") {
			return "the shop is closed", nil
		}
		return "", nil
	})
	last := dependents.Of("last", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-last"}}, nil
	}).After("lone")
	return nodes{last, config, lone, colors}
}

// named is config as the object of another dependent, without data.
func named(name string) rtesting.Fixture[*corev1.ConfigMap] {
	return config.With(func(c *corev1.ConfigMap) {
		c.Name, c.Data, c.Labels = "gadget-"+name, nil, map[string]string{reconcilers.NodeLabel: name}
	})
}

func TestWhatIsNotDownstreamProceeds(t *testing.T) {
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(settings, widget, scheme)}
	events := func(names ...string) (all []rtesting.Event) {
		for _, name := range names {
			all = append(all, event("Created", `Created ConfigMap "gadget-`+name+`"`)...)
		}
		return all
	}
	run(t, tests{
		"all can run": {
			Resource:       widget.Object(),
			GivenObjects:   []object{settings},
			ExpectTracks:   tracks,
			ExpectCreates:  []object{named("lone"), named("last"), config},
			ExpectEvents:   events("lone", "last", "config"),
			ExpectResource: widget.With(isReady).Object(),
		},
		"nothing to do": {
			Resource: widget.Object(),
			GivenObjects: []object{settings, named("lone").With(exists), named("last").With(exists),
				config.With(exists)},
			ExpectTracks:   tracks,
			ExpectResource: widget.With(isReady).Object(),
		},
		"data is missing": {
			Resource:      widget.Object(),
			ExpectTracks:  tracks,
			ExpectCreates: []object{named("lone"), named("last")},
			ExpectEvents:  events("lone", "last"),
			ExpectResource: widget.With(
				is(metav1.ConditionFalse, "Blocked", "settings: waiting for ConfigMap default/settings")).Object(),
		},
		"data cannot be taken": {
			Resource:      widget.Object(),
			GivenObjects:  []object{settings.With(func(c *corev1.ConfigMap) { c.Data = nil })},
			ExpectTracks:  tracks,
			ExpectCreates: []object{named("lone"), named("last")},
			ExpectEvents:  events("lone", "last"),
			ExpectedErr:   errBoom,
			ExpectResource: widget.With(
				is(metav1.ConditionFalse, "Error", "settings: boom")).Object(),
			Replays: rtesting.NoReplays("it always fails"),
		},
		"a guard is closed": {
			Resource:      widget.With(with("closed")).Object(),
			GivenObjects:  []object{settings},
			ExpectTracks:  tracks,
			ExpectCreates: []object{config},
			ExpectEvents:  events("config"),
			ExpectResource: widget.With(with("closed"),
				is(metav1.ConditionFalse, "Blocked", "lone: the shop is closed")).Object(),
		},
	}, colored)
}

func TestGraph(t *testing.T) {
	const want = `
lone      ConfigMap Guard
last      ConfigMap, after "lone"
settings  ConfigMap ReadOnly, yields "color"
config    ConfigMap, needs "color"
`
	set := &dependents.Set[*resources.Widget]{Name: "Set", Dependents: colored()}
	if got := "\n" + set.Graph(); got != want {
		t.Errorf("the graph is %s", got)
	}
	const tree = `
Set "Set"
├─ Dependent "lone" ConfigMap Guard
├─ Dependent "last" ConfigMap, after "lone"
├─ Dependent "settings" ConfigMap ReadOnly, yields "color"
└─ Dependent "config" ConfigMap, needs "color"
`
	if got := "\n" + set.Describe().String(); got != tree {
		t.Errorf("the tree is %s", got)
	}
}

// supervisor says what is to be done, and notes what it is told.
type supervisor struct {
	says reconcilers.Supervision
	mu   sync.Mutex
	told []string
}

func (s *supervisor) Supervision() reconcilers.Supervision { return s.says }

func (s *supervisor) Suspend(client.Object) (bool, error) { return false, nil }

func (s *supervisor) SuspensionOf(client.Object) apis.Health {
	return apis.Health{State: apis.StateSuspended}
}

func (s *supervisor) Observe(o reconcilers.ObservedObject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, path, _ := strings.Cut(o.Node, "Set/")
	text := path + " " + o.Kind.Kind + " " + o.Name
	switch {
	case o.Health != nil:
		text += fmt.Sprintf(" %s: %s", o.Health.State, o.Health.Message)
	case o.Err != nil:
		text += " error: " + o.Err.Error()
	case o.Object != nil:
		text += " is there"
	}
	for flag, set := range map[string]bool{" auxiliary": o.Auxiliary, " unchecked": o.Unchecked} {
		if set {
			text += flag
		}
	}
	s.told = append(s.told, text)
}

// supervised runs a node below a supervisor.
func supervised(s *supervisor, n node) node {
	return &reconcilers.SyncReconciler[*resources.Widget]{
		SyncWithResult: func(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
			s.told = nil
			return n.Reconcile(reconcilers.WithSupervisor(ctx, s), w)
		},
	}
}

func TestSupervision(t *testing.T) {
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(settings, widget, scheme)}
	given := []object{named("lone").With(exists), named("last").With(exists), config.With(exists)}
	for name, row := range map[string]struct {
		says reconcilers.Supervision
		row  rtesting.SubReconcilerTestCase[*resources.Widget]
		told string
	}{
		"maintain": {
			row: rtesting.SubReconcilerTestCase[*resources.Widget]{
				Resource:     widget.With(with("closed")).Object(),
				GivenObjects: given,
				ExpectTracks: tracks,
				ExpectResource: widget.With(with("closed"),
					is(metav1.ConditionFalse, "Blocked", "lone: the shop is closed")).Object(),
			},
			told: `lone ConfigMap  Blocked: the shop is closed
last ConfigMap  Blocked: waiting for "lone"
settings ConfigMap settings Blocked: waiting for ConfigMap default/settings
config ConfigMap  Blocked: waiting for data "color"`,
		},
		// What exists is suspended, whatever it waits for.
		"suspend": {
			says: reconcilers.Suspend,
			row: rtesting.SubReconcilerTestCase[*resources.Widget]{
				Resource:     widget.With(with("closed")).Object(),
				GivenObjects: given[:2],
				ExpectTracks: tracks,
				ExpectResource: widget.With(with("closed"),
					is(metav1.ConditionFalse, "Blocked", "settings: waiting for ConfigMap default/settings")).Object(),
			},
			told: `lone ConfigMap gadget-lone is there
last ConfigMap gadget-last is there`,
		},
		"withdraw": {
			says: reconcilers.Withdraw,
			row: rtesting.SubReconcilerTestCase[*resources.Widget]{
				Resource:     widget.With(with("closed")).Object(),
				GivenObjects: given,
				ExpectDeletes: []rtesting.DeleteRef{
					rtesting.NewDeleteRefFromObject(config, scheme),
					rtesting.NewDeleteRefFromObject(named("last"), scheme),
					rtesting.NewDeleteRefFromObject(named("lone"), scheme),
				},
				ExpectEvents: append(append(event("Deleted", `Deleted ConfigMap "gadget-config"`),
					event("Deleted", `Deleted ConfigMap "gadget-last"`)...),
					event("Deleted", `Deleted ConfigMap "gadget-lone"`)...),
				ExpectResource: widget.With(with("closed"), isReady).Object(),
			},
		},
	} {
		s := &supervisor{says: row.says}
		row.row.Name = name
		var last string
		row.row.CleanUp = func(*testing.T, context.Context, *rtesting.SubReconcilerTestCase[*resources.Widget]) error {
			if last == "" {
				last = strings.Join(s.told, "\n")
			}
			return nil
		}
		tests{name: row.row}.RunNode(t, scheme, func() node { return supervised(s, setOf(colored()...)) })
		if row.says != reconcilers.Withdraw && last != row.told {
			t.Errorf("%s: the supervisor was told\n%s", name, last)
		}
	}
}

// What is only read, and what does not exist, is not waited for by a supervisor that suspends. What exists is, although
// nobody knows how it is to be.
func TestWhatASuspensionWaitsFor(t *testing.T) {
	notReady := func() *configMapDependent {
		return dependents.Of("config", func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
			return nil, espalier.NotReady("Closed", "the shop is closed")
		})
	}
	s := &supervisor{says: reconcilers.Suspend}
	for name, tc := range map[string]struct {
		dependent func() *configMapDependent
		given     []object
		tracks    []rtesting.TrackRequest
		told      string
		expect    func(*resources.Widget)
	}{
		"only read": {
			dependent: readSettings, given: []object{settings}, expect: isReady,
			tracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(settings, widget, scheme)},
		},
		"does not exist": {
			dependent: notReady, expect: is(metav1.ConditionFalse, "Blocked", "config: the shop is closed"),
		},
		"exists": {
			dependent: notReady, given: []object{config.With(exists)},
			expect: is(metav1.ConditionFalse, "Blocked", "config: the shop is closed"),
			told:   "config ConfigMap  Blocked: the shop is closed",
		},
	} {
		var first *string
		tests{name: {
			Resource: widget.Object(), GivenObjects: tc.given, ExpectTracks: tc.tracks,
			ExpectResource: widget.With(tc.expect).Object(),
			CleanUp: func(*testing.T, context.Context, *rtesting.SubReconcilerTestCase[*resources.Widget]) error {
				if first == nil {
					first = new(strings.Join(s.told, "\n"))
				}
				return nil
			},
		}}.RunNode(t, scheme, func() node { return supervised(s, setOf(tc.dependent())) })
		if first == nil || *first != tc.told {
			t.Errorf("%s: the supervisor was told %v", name, s.told)
		}
	}
}

// The supervisor is told what does not count.
func TestAuxiliaryErrorsAreReported(t *testing.T) {
	s := &supervisor{}
	tests{"it fails": {
		Resource:       widget.With(with("error")).Object(),
		ExpectResource: widget.With(with("error"), isReady).Object(),
		ExpectedResult: reconcilers.Result{RequeueAfter: 10e9},
	}}.RunNode(t, scheme, func() node { return supervised(s, setOf(configOf("blue").Auxiliary())) })
	if got := strings.Join(s.told, "\n"); got != "config ConfigMap  error: boom auxiliary" {
		t.Errorf("the supervisor was told %s", got)
	}
}

// One tree serves many resources at once, and none sees the data of another.
func TestDataIsPerRequest(t *testing.T) {
	name := dependents.NewCell[types.UID]("name")
	var mu sync.Mutex
	wrong := 0
	source := dependents.Yield(dependents.Of("source",
		func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}, nil
		}).ReadOnly(), name, func(live *corev1.ConfigMap) (types.UID, error) { return types.UID(live.Name), nil })
	reader := dependents.Of("reader", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		if value, ok := dependents.Value(ctx, name); !ok || string(value) != w.Name {
			mu.Lock()
			wrong++
			mu.Unlock()
		}
		return nil, nil
	}).Needs(name)
	set := setOf(reader, source)
	if _, ok := dependents.Value(t.Context(), name); ok {
		t.Error("there is a value outside of a request")
	}

	expect := &rtesting.ExpectConfig{Scheme: scheme}
	var resourcesToReconcile []*resources.Widget
	for i := range 8 {
		w := widget.With(func(w *resources.Widget) { w.Name = fmt.Sprint("gadget-", i) }).Object()
		resourcesToReconcile = append(resourcesToReconcile, w)
		expect.GivenObjects = append(expect.GivenObjects, w.DeepCopy(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, CreationTimestamp: created},
		})
	}
	root := &reconcilers.ResourceReconciler[*resources.Widget]{
		Config: expect.Config(), Reconciler: set, SkipStatusUpdate: true,
	}
	var all sync.WaitGroup
	for _, w := range resourcesToReconcile {
		all.Go(func() {
			for range 20 {
				request := reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(w)}
				if _, err := root.Reconcile(context.Background(), request); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if wrong != 0 {
		t.Errorf("%d requests saw the data of others", wrong)
	}
}

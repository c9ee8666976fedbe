package espalier_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	color = stash.New[string]("test.espalier.dev/color")

	palette = rtesting.NewFixture(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "palette", CreationTimestamp: created},
		Data:       map[string]string{"color": "blue"},
	})
	tracksPalette = []rtesting.TrackRequest{rtesting.NewTrackRequest(palette, widget, scheme)}
)

// waits adds the condition of a node that waits.
func waits(conditionType, message string) func(*resources.Widget) {
	return is(conditionType, metav1.ConditionUnknown, "Waiting", message)
}

func ready(conditionType string) func(*resources.Widget) {
	return is(conditionType, metav1.ConditionTrue, "Ready", "")
}

func events(reason string, names ...string) (all []rtesting.Event) {
	for _, name := range names {
		all = append(all, event(corev1.EventTypeNormal, reason, fmt.Sprintf("%s ConfigMap %q", reason, name))...)
	}
	return all
}

// colorOf yields the color of a config map.
func colorOf(live *corev1.ConfigMap) (string, error) {
	switch live.Data["color"] {
	case "":
		return "", errBoom
	case "none":
		return "", outOfStock
	}
	return live.Data["color"], nil
}

// painted is the config map that has the color of the palette.
var painted = kept("painted").With(func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "blue"} })

func paints() *child {
	return espalier.Owns("painted", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "painted"},
			Data:       map[string]string{"color": color.RetrieveOrDie(ctx)},
		}, nil
	}).Labeled().Reports("painted").Needs(color)
}

// colored returns a tree in which painted has the color of the palette, and lone waits for nothing but its guard.
func colored() node {
	reads := espalier.Owns("palette", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "palette"}}, nil
	}).ReadOnly().Reports("palette")
	return espalier.Steps[*resources.Widget](
		espalier.Yield(reads, color, colorOf),
		keeps("lone").Independent().Guard(guard),
		keeps("last").After("lone"),
		paints(),
	)
}

func TestWhatWaitsForNothingProceeds(t *testing.T) {
	madeAlone := []object{kept("lone"), kept("last")}
	all := []object{palette, kept("lone").With(exists), kept("last").With(exists), painted.With(exists)}
	missing := is("palette", metav1.ConditionFalse, "NotFound", "waiting for ConfigMap default/palette")
	unpainted := waits("painted", `waiting for data "test.espalier.dev/color"`)
	run(t, tests{
		"all can run": {
			Resource: widget.Object(), GivenObjects: []object{palette}, ExpectTracks: tracksPalette,
			ExpectCreates:  append(madeAlone[:2:2], painted),
			ExpectEvents:   events("Created", "lone", "last", "painted"),
			ExpectResource: widget.With(ready("last"), ready("lone"), ready("painted"), ready("palette")).Object(),
		},
		"nothing to do": {
			Resource: widget.Object(), GivenObjects: all, ExpectTracks: tracksPalette,
			ExpectResource: widget.With(ready("last"), ready("lone"), ready("painted"), ready("palette")).Object(),
		},
		"a value is missing": {
			Resource: widget.Object(), ExpectTracks: tracksPalette,
			ExpectCreates: madeAlone, ExpectEvents: events("Created", "lone", "last"),
			ExpectResource: widget.With(ready("last"), ready("lone"), unpainted, missing).Object(),
		},
		"there is no value yet": {
			Resource: widget.Object(), ExpectTracks: tracksPalette,
			GivenObjects:  []object{palette.With(func(c *corev1.ConfigMap) { c.Data["color"] = "none" })},
			ExpectCreates: madeAlone, ExpectEvents: events("Created", "lone", "last"),
			ExpectResource: widget.With(ready("last"), ready("lone"), unpainted, ready("palette")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"a value cannot be taken": {
			Resource: widget.Object(), ExpectTracks: tracksPalette,
			GivenObjects:  []object{palette.With(func(c *corev1.ConfigMap) { c.Data = nil })},
			ExpectCreates: madeAlone, ExpectEvents: events("Created", "lone", "last"), ExpectedErr: errBoom,
			ExpectResource: widget.With(ready("last"), ready("lone"), unpainted).Object(),
		},
		"a guard is closed": {
			Resource: widget.With(with("closed")).Object(), GivenObjects: []object{palette}, ExpectTracks: tracksPalette,
			ExpectCreates: []object{painted}, ExpectEvents: events("Created", "painted"),
			ExpectResource: widget.With(with("closed"), waits("last", `waiting for "lone"`),
				is("lone", metav1.ConditionFalse, "Blocked", "the shop is closed"),
				ready("painted"), ready("palette")).Object(),
		},
		"a node that waits for nothing fails": {
			Resource: widget.With(with("lone fails")).Object(), GivenObjects: []object{palette},
			ExpectTracks: tracksPalette, ExpectedErr: errBoom,
			ExpectCreates: []object{painted}, ExpectEvents: events("Created", "painted"),
			ExpectResource: widget.With(with("lone fails"), waits("last", `waiting for "lone"`),
				ready("painted"), ready("palette")).Object(),
		},
		"the resource is terminating": {
			Resource: terminating.Object(), GivenObjects: all,
			ExpectDeletes: []rtesting.DeleteRef{
				rtesting.NewDeleteRefFromObject(painted, scheme), rtesting.NewDeleteRefFromObject(kept("last"), scheme),
			},
			ExpectEvents: events("Deleted", "painted", "last"),
		},
		"what goes first is gone": {
			Resource: terminating.Object(), GivenObjects: []object{kept("lone").With(exists)},
			ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(kept("lone"), scheme)},
			ExpectEvents:  events("Deleted", "lone"),
		},
		"what goes first is still there": {
			Resource: terminating.Object(),
			GivenObjects: []object{kept("lone").With(exists), kept("last").With(exists, func(c *corev1.ConfigMap) {
				c.DeletionTimestamp, c.Finalizers = &created, []string{"test.espalier.dev/other"}
			})},
		},
	}, colored)
}

func TestSupervisionOfNodesThatWait(t *testing.T) {
	closed, suspended, withdrawn := with("closed"), with("closed", "suspend"), with("closed", "withdraw")
	given := []object{kept("lone").With(exists), kept("last").With(exists), painted.With(exists)}
	missing := is("palette", metav1.ConditionFalse, "NotFound", "waiting for ConfigMap default/palette")
	const unpainted = `waiting for data "test.espalier.dev/color"`
	run(t, tests{
		"maintain": {
			Resource: widget.With(closed).Object(), GivenObjects: given, ExpectTracks: tracksPalette,
			ExpectResource: widget.With(closed, waits("last", `waiting for "lone"`),
				is("lone", metav1.ConditionFalse, "Blocked", "the shop is closed"), waits("painted", unpainted), missing,
				observed(`0/palette: ConfigMap "palette", absent, Blocked NotFound: waiting for ConfigMap default/palette`,
					`1/lone: ConfigMap "lone", Blocked: the shop is closed`,
					`2/last: ConfigMap "last", Blocked: waiting for "lone"`,
					`3/painted: ConfigMap "painted", Blocked: `+unpainted)).Object(),
		},
		// What exists is suspended, whatever it waits for. What does not, and what is only read, is not waited for.
		"suspend": {
			Resource: widget.With(suspended).Object(), GivenObjects: given[:2], ExpectTracks: tracksPalette,
			ExpectResource: widget.With(suspended, ready("last"), ready("lone"), waits("painted", unpainted), missing,
				observed(`1/lone: ConfigMap "lone"`, `2/last: ConfigMap "last"`)).Object(),
		},
		// Nobody knows how what exists is to be suspended.
		"suspend what is not ready": {
			Resource: widget.With(with("lone is not ready", "suspend")).Object(), GivenObjects: given[:1],
			ExpectTracks: tracksPalette,
			ExpectResource: widget.With(with("lone is not ready", "suspend"), waits("last", `waiting for "lone"`),
				is("lone", metav1.ConditionFalse, "NoColor", "there is no color"), waits("painted", unpainted), missing,
				observed(`1/lone: ConfigMap "lone", Blocked NoColor: there is no color`)).Object(),
		},
		"withdraw": {
			Resource: widget.With(withdrawn).Object(), GivenObjects: given,
			ExpectDeletes: []rtesting.DeleteRef{
				rtesting.NewDeleteRefFromObject(painted, scheme), rtesting.NewDeleteRefFromObject(kept("last"), scheme),
			},
			ExpectEvents: events("Deleted", "painted", "last"),
			ExpectResource: widget.With(withdrawn, is("last", "True", "NotDesired", ""),
				is("painted", "True", "NotDesired", ""),
				observed(`3/painted: ConfigMap "painted", terminating`, `2/last: ConfigMap "last", terminating`)).Object(),
		},
	}, func() node { return supervised{colored()} })
}

// A node whose error is not returned is not done all the same.
func TestAfterAnAuxiliaryNode(t *testing.T) {
	failed := widget.With(with("lone fails"))
	run(t, tests{"it fails": {
		Resource: failed.Object(), ExpectedResult: reconcilers.Result{RequeueAfter: soon},
		ExpectCreates: []object{kept("next")}, ExpectEvents: events("Created", "next"),
		ExpectResource: failed.With(waits("last", `waiting for "lone"`), ready("next")).Object(),
	}}, func() node {
		return espalier.Steps[*resources.Widget](
			keeps("lone").Auxiliary(), keeps("last").After("lone"), keeps("next"))
	})
}

// The value of a node that reads an object is there for those that need it.
func TestNeedsWhatReadsStores(t *testing.T) {
	run(t, tests{
		"it is there": {
			Resource: widget.Object(), GivenObjects: []object{palette}, ExpectTracks: tracksPalette,
			ExpectCreates: []object{kept("lone")}, ExpectEvents: events("Created", "lone"),
			ExpectResource: widget.With(ready("lone")).Object(),
		},
		"it is missing": {
			Resource: widget.Object(), ExpectTracks: tracksPalette,
			ExpectResource: widget.With(waits("lone", `waiting for data "test.espalier.dev/settings"`)).Object(),
		},
	}, func() node {
		return espalier.Steps[*resources.Widget](
			espalier.Reads("palette", settings, func(context.Context, *resources.Widget) types.NamespacedName {
				return types.NamespacedName{Namespace: "default", Name: "palette"}
			}).Optional(), keeps("lone").Needs(settings))
	})
}

// The set-up refuses a tree in which a node can never run, or in which two nodes would take the objects of each other.
func TestTreesThatCannotRun(t *testing.T) {
	const root = `ResourceReconciler "WidgetResourceReconciler" `
	for want, nodes := range map[string][]node{
		"must not have $/0/last after $/1/lone, which runs later in the list at $: put $/1/lone before $/0/last": {
			keeps("last").After("lone"), keeps("lone")},
		`must not have $/0/painted need "test.espalier.dev/color" of $/1/lone, which runs later in the list at $: ` +
			`put $/1/lone before $/0/painted`: {paints(), espalier.Yield(keeps("lone"), color, colorOf)},
		`must have $/0/last after a node of its own list, not after "lone": to wait for a node of a list around it, ` +
			`put it into a When that does`: {keeps("last").After("lone")},
		`must have different names for $/0/last and $/1/last, which both label children of kind ConfigMap with "last"`: {
			keeps("last"), keeps("last")},
		"must tell the children of $/0/ConfigMap and $/1/last apart, which are both of kind ConfigMap: " +
			"set LabelChildren (Labeled in the short form) or OurChild on both": {owns(), keeps("last")},
		`must have different finalizers at $/0/one/0/ConfigMap and $/1/two/0/ConfigMap, ` +
			`not "espalier.dev/configmap.ConfigMap" for both: each would remove that of the other`: {
			loopOf("one", owns().AnyNamespace()), loopOf("two", owns().AnyNamespace())},
	} {
		want := root + strings.ReplaceAll(want, "$", "WidgetResourceReconciler")
		rtesting.SetupTests{want: {
			ShouldErr: true,
			Verify: func(t *testing.T, err error) {
				if err == nil || err.Error() != want {
					t.Errorf("the error is %v, expected %s", err, want)
				}
			},
		}}.Run(t, scheme, setUp(nodes...))
	}
}

func setUp(nodes ...node) rtesting.SetupFactory {
	return func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		return rtesting.SubReconcilerSetup[*resources.Widget](c, espalier.Steps(nodes...))
	}
}

func TestTheTypesOfObjectsAreWatched(t *testing.T) {
	rtesting.SetupTests{"what is watched": {
		ExpectWatches: []object{&resources.Widget{}, &corev1.ConfigMap{}},
		Events: []rtesting.SetupEvent{{
			Created: painted.With(exists), ExpectRequests: []reconcilers.Request{{
				NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}}},
		}},
	}}.Run(t, scheme, setUp(colored()))
}

func TestTheTreeSaysWhatANodeWaitsFor(t *testing.T) {
	const tree = `
List
├─ Owns "palette" ConfigMap ReadOnly, yields "test.espalier.dev/color"
├─ Owns "lone" ConfigMap Guard Independent
├─ Owns "last" ConfigMap, after "lone"
└─ Owns "painted" ConfigMap, needs "test.espalier.dev/color"
`
	if got := "\n" + reconcilers.Describe(colored()).String(); got != tree {
		t.Errorf("the tree is %s\nexpected %s", got, tree)
	}
}

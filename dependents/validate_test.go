package dependents_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/dependents"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type configMapDependent = dependents.Dependent[*resources.Widget, *corev1.ConfigMap]

// dependent returns a dependent that is valid.
func dependent(name string) *configMapDependent {
	return dependents.Of(name, func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) { return nil, nil })
}

func gateOn(context.Context, *resources.Widget) gate.Gate          { return nil }
func never(context.Context, *resources.Widget) (bool, error)       { return false, nil }
func unguarded(context.Context, *resources.Widget) (string, error) { return "", nil }
func yieldName(live *corev1.ConfigMap) (string, error)             { return live.Name, nil }
func needing(d *configMapDependent) *configMapDependent            { return d.Needs(dependents.NewCell[int]("x")) }
func yielding(d *configMapDependent) *configMapDependent {
	return dependents.Yield(d, dependents.NewCell[string]("y"), yieldName)
}

// switches use one switch each, with a dependent that has none that contradicts it.
var switches = map[string]func(*configMapDependent) *configMapDependent{
	"Gate":           func(d *configMapDependent) *configMapDependent { return d.Gate(gateOn) },
	"ReadOnly":       (*configMapDependent).ReadOnly,
	"BlockOnAbsence": (*configMapDependent).BlockOnAbsence,
	"IgnoreAbsent":   (*configMapDependent).IgnoreAbsent,
	"Absent":         (*configMapDependent).Absent,
	"OrphanWhen":     func(d *configMapDependent) *configMapDependent { return d.OrphanWhen(never) },
	"Unowned":        (*configMapDependent).Unowned,
	"CreateOnly":     (*configMapDependent).CreateOnly,
	"Auxiliary":      (*configMapDependent).Auxiliary,
	"Unchecked":      (*configMapDependent).Unchecked,
	"Guard":          func(d *configMapDependent) *configMapDependent { return d.Guard(unguarded) },
	"Needs":          needing,
	"After":          func(d *configMapDependent) *configMapDependent { return d.After("other") },
	"Yield":          yielding,
}

// Each pair of switches is either refused with the names of both, or accepted, as the table of the package says.
func TestContradictions(t *testing.T) {
	refused := map[[2]string]bool{}
	for _, row := range [][]string{
		{"Gate", "ReadOnly", "Absent", "OrphanWhen", "BlockOnAbsence", "IgnoreAbsent"},
		{"ReadOnly", "Absent", "OrphanWhen", "Unowned", "CreateOnly"},
		{"BlockOnAbsence", "IgnoreAbsent"},
		{"Absent", "OrphanWhen", "CreateOnly", "Guard", "Needs", "After", "Yield"},
		{"OrphanWhen", "Unowned"},
	} {
		for _, other := range row[1:] {
			refused[[2]string{row[0], other}], refused[[2]string{other, row[0]}] = true, true
		}
	}
	for one, use := range switches {
		for other, useToo := range switches {
			if one == other {
				continue
			}
			lone := func(name string) bool { return name == "BlockOnAbsence" || name == "IgnoreAbsent" }
			if lone(one) && other != "ReadOnly" && !lone(other) || lone(other) && one != "ReadOnly" && !lone(one) {
				continue // they need ReadOnly, see below
			}
			producer := dependents.Yield(dependent("other"), dependents.NewCell[string]("z"), yieldName)
			d := useToo(use(dependent("config")))
			set := &dependents.Set[*resources.Widget]{
				Name: "Set", Dependents: []dependents.Node[*resources.Widget]{d, producer},
			}
			err := set.Validate(t.Context())
			contradict := `Set "Set": dependent "config" must not be both ` + one + ` and ` + other
			contradictToo := `Set "Set": dependent "config" must not be both ` + other + ` and ` + one
			isContradiction := err != nil && (err.Error() == contradict || err.Error() == contradictToo)
			if want := refused[[2]string{one, other}]; want != isContradiction {
				t.Errorf("%s and %s: refused is %v, expected %v: %v", one, other, isContradiction, want, err)
			}
		}
	}
}

func TestSetsThatCannotRun(t *testing.T) {
	type node = dependents.Node[*resources.Widget]
	nodes := func(d ...node) []node { return d }
	a, b := dependents.NewCell[string]("a"), dependents.NewCell[string]("b")
	yield := func(d *configMapDependent, cell *dependents.Cell[string]) *configMapDependent {
		return dependents.Yield(d, cell, yieldName)
	}
	var noDependent *configMapDependent
	var noCell *dependents.Cell[string]

	for want, given := range map[string][]node{
		`Set "Set" must have a valid Dependents[0]: must not be nil`: nodes(nil),
		`Set "Set" must have a valid Dependents[1]: must not be nil`: nodes(
			dependent("a"), noDependent),
		`Set "Set": must have dependents of different names, not "a" twice`: nodes(
			dependent("a"), dependent("a")),
		`Set "Set": dependent "a" needs "a", which no dependent of the set yields`: nodes(dependent("a").Needs(a)),
		`Set "Set": dependent "a" must be after a dependent of the set, not after "b"`: nodes(
			dependent("a").After("b")),
		`Set "Set": must have no cycle: "a" waits for "a"`: nodes(
			dependent("a").After("a")),
		`Set "Set": dependent "a" must have no nil cell`: nodes(
			dependent("a").Needs(nil)),
		`Set "Set": dependent "b" must have no nil cell`: nodes(
			yield(dependent("b"), noCell)),
		`Set "Set": dependent "a" must be ReadOnly to be IgnoreAbsent`: nodes(
			dependent("a").IgnoreAbsent()),
		`Set "Set": dependent "a" must be ReadOnly to be BlockOnAbsence`: nodes(
			dependent("a").BlockOnAbsence()),
		`Set "Set": dependent "a" must not use Gate twice`: nodes(
			dependent("a").Gate(gateOn).Gate(gateOn)),
		`Set "Set": dependent "a" must have a function for Gate`: nodes(dependent("a").Gate(nil)),
		`Set "Set": dependent "a" must have a function for Guard`: nodes(
			dependent("a").Guard(nil)),
		`Set "Set": dependent "a" must have a function for OrphanWhen`: nodes(
			dependent("a").OrphanWhen(nil)),
		`Set "Set": dependent "a" must have a function for Yield`: nodes(
			dependents.Yield(dependent("a"), a, nil)),
		`Set "Set": dependent "a" must have a function that returns what is desired`: nodes(
			dependents.Of[*resources.Widget, *corev1.ConfigMap]("a", nil)),
		`Set "Set": dependent "" must have a name`: nodes(dependent("")),
		`Set "Set": must have cells of different names, not "a" twice`: nodes(
			yield(dependent("x"), a), yield(dependent("y"), dependents.NewCell[string]("a"))),
		`Set "Set": must have no cycle: "x" waits for "y" waits for "z" waits for "x"`: nodes(
			yield(dependent("x"), a).Needs(b), yield(dependent("y").After("z"), b), dependent("z").Needs(a)),
		`Set "Set": dependent "a" must have a Type since none can be made of cacheapi.Object`: nodes(
			dependents.Of("a", func(context.Context, *resources.Widget) (object, error) { return nil, nil })),
		`Set "Set": dependent "a" must be a valid child: ChildReconciler "a" must define ChildType with apiVersion ` +
			`and kind since it is unstructured`: nodes(dependents.Of("a",
			func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) { return nil, nil }).Type(nil).
			Type(&unstructured.Unstructured{})),
	} {
		set := &dependents.Set[*resources.Widget]{Name: "Set", Dependents: given}
		if err := set.Validate(t.Context()); err == nil || err.Error() != want {
			t.Errorf("the error is %v, expected %s", err, want)
		}
		if len(given) == 1 && !strings.Contains(want, "valid child") {
			if _, err := set.Reconcile(t.Context(), widget.Object()); err == nil {
				t.Errorf("it runs although %s", want)
			}
		}
	}
	if err := (&dependents.Set[*resources.Widget]{}).Validate(t.Context()); err == nil {
		t.Error("a set without a name is valid")
	}
}

package espalier_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/stash"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// switches use one switch each.
var switches = map[string]func(*child) *child{
	"Gate":         func(c *child) *child { return c.Gate(gateOf) },
	"ReadOnly":     (*child).ReadOnly,
	"Optional":     (*child).Optional,
	"Absent":       (*child).Absent,
	"Unowned":      (*child).Unowned,
	"AnyNamespace": (*child).AnyNamespace,
	"CreateOnly":   (*child).CreateOnly,
	"TakeOverFrom": func(c *child) *child { return c.TakeOverFrom("manager") },
	"Recreates":    (*child).Recreates,
	"Labeled":      (*child).Labeled,
	"Auxiliary":    (*child).Auxiliary,
	"Unchecked":    (*child).Unchecked,
	"Health":       func(c *child) *child { return c.Health(paint) },
	"Suspension":   func(c *child) *child { return c.Suspension(health.Suspension{}) },
	"Guard":        func(c *child) *child { return c.Guard(guard) },
	"Needs":        func(c *child) *child { return c.Needs(color) },
	"After":        func(c *child) *child { return c.After("other") },
	"Independent":  (*child).Independent,
	"Yield":        func(c *child) *child { return espalier.Yield(c, color, colorOf) },
	"Observes":     func(c *child) *child { return c.Observes(copied) },
	"RetryAfter":   func(c *child) *child { return c.RetryAfter(time.Hour) },
	"Unwatched":    (*child).Unwatched,
}

// Each pair of switches is either refused with the names of both, or accepted, in each order. A switch is refused twice
// if a second use would take back the first.
func TestContradictions(t *testing.T) {
	const refusal = `Owns "ConfigMap" must not be both `
	refused := map[string]bool{}
	for _, row := range []string{
		"ReadOnly Absent Unowned AnyNamespace CreateOnly Recreates Labeled Suspension",
		"Absent Gate CreateOnly Recreates Guard Needs After Independent Yield",
		"CreateOnly Recreates", "Independent Needs After", "Unchecked Health",
		"Unowned AnyNamespace",
		"TakeOverFrom ReadOnly Absent Unowned AnyNamespace CreateOnly",
		"Unwatched Unowned AnyNamespace Recreates",
	} {
		for _, other := range strings.Fields(row)[1:] {
			one, _, _ := strings.Cut(row, " ")
			refused[one+" and "+other], refused[other+" and "+one] = true, true
		}
	}
	repeatable := []string{"Needs", "After", "Yield"}
	for one, use := range switches {
		for other, useToo := range switches {
			err := validate(useToo(use(owns())))
			text := ""
			if err != nil {
				text = err.Error()
			}
			pair, turned := one+" and "+other, other+" and "+one
			isRefused := text == refusal+pair || text == refusal+turned
			want := refused[pair]
			if one == other {
				isRefused = text == `Owns "ConfigMap" must not use `+one+` twice`
				want = !slices.Contains(repeatable, one)
			}
			if isRefused != want {
				t.Errorf("%s: refused is %t, expected %t: %v", pair, isRefused, want, err)
			}
		}
	}
}

func TestNodesThatCannotRun(t *testing.T) {
	var noCell stash.Stasher[string]
	for want, n := range map[string]node{
		`Owns "" must have a name`: espalier.Owns("", desiredConfigMap),
		`Owns "A" must have a function that returns what is desired`: espalier.Owns[*resources.Widget, *corev1.ConfigMap](
			"A", nil),
		`OwnsEach "A" must have a function that returns what is desired`: espalier.OwnsEach[
			*resources.Widget, *corev1.ConfigMap]("A", nil),
		`Owns "ConfigMap" must be ReadOnly to be Optional`:    owns().Optional(),
		`Owns "ConfigMap" must not have nil for Gate`:         owns().Gate(nil),
		`Owns "ConfigMap" must not have nil for Guard`:        owns().Guard(nil),
		`Owns "ConfigMap" must not have nil for Health`:       owns().Health(nil),
		`Owns "ConfigMap" must not have nil for Observes`:     owns().Observes(nil),
		`OwnsEach "ConfigMap" must not have nil for Observes`: ownsEach().Observes(nil),
		`Owns "ConfigMap" must not have nil for TakeOverFrom`: owns().TakeOverFrom(),
		`Owns "ConfigMap" must not have nil for Needs`:        owns().Needs(nil, noCell),
		`Owns "ConfigMap" must not have nil for Yield`:        espalier.Yield(owns(), noCell, colorOf),
		`OwnsEach "ConfigMap" must not have nil for Yield`: espalier.YieldEach[*resources.Widget, *corev1.ConfigMap](
			ownsEach(), color, nil),
		`Runs "A" must not have nil for Needs`: espalier.Runs("A", runs(new(int))).Needs(noCell),
		`When "A" must not be both Independent and After`: espalier.When("A",
			func(context.Context, *resources.Widget) bool { return true }).Independent().After("B"),
		`Owns "A" must have a Type since none can be made of cacheapi.Object`: espalier.Owns("A",
			func(context.Context, *resources.Widget) (object, error) { return nil, nil }),
		`Owns "A" must be valid: ChildReconciler "A" must define ChildType with apiVersion and kind since it is ` +
			`unstructured`: espalier.Owns("A",
			func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) { return nil, nil },
		).Type(nil).Type(&unstructured.Unstructured{}),
	} {
		if err := validate(n); err == nil || err.Error() != want {
			t.Errorf("the error is %v, expected %s", err, want)
		}
		if strings.Contains(want, "must be valid") || strings.HasPrefix(want, "When") {
			continue // only the set-up asks
		}
		if _, err := n.Reconcile(t.Context(), widget.Object()); err == nil {
			t.Errorf("it runs although %s", want)
		}
	}
}

func validate(n node) error {
	return n.(interface{ Validate(context.Context) error }).Validate(context.Background())
}

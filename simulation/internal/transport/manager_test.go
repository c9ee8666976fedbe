package transport_test

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/simulation/internal/plan"
)

const (
	child  = "/api/v1/namespaces/default/configmaps/web"
	parent = "/apis/apps/v1/namespaces/default/deployments/web"
)

// byCount are faults that strike the story, each of a sort.
var byCount = []plan.Fault{
	{Sort: plan.Refuses, Actor: "operator", Verb: plan.Create, Path: child},
	{Sort: plan.Fails, Actor: "operator", Verb: plan.Update, Path: child},
	{Sort: plan.LosesAnswer, Actor: "operator", Verb: plan.Create, Path: child},
	{Sort: plan.Conflicts, Actor: "operator", Verb: plan.Update, Path: child},
	{Sort: plan.Throttles, Actor: "operator", Verb: plan.Patch, Path: parent, Times: 12, Delay: time.Second},
	{Sort: plan.Expires, Actor: "operator", Verb: plan.Watch, Path: "/api/v1/configmaps", Nth: 2},
	{Sort: plan.CutsWatch, Actor: "operator", Verb: plan.Watch, Path: "/apis/apps/v1/deployments", Delay: time.Minute},
	{Sort: plan.DelaysWatch, Actor: "operator", Verb: plan.Watch, Path: "/api/v1/configmaps*", Delay: 10 * time.Minute},
	{Sort: plan.DiesBefore, Actor: "operator", Verb: plan.Create, Path: child},
	{Sort: plan.DiesAfter, Actor: "operator", Verb: plan.Create, Path: child},
	{Sort: plan.Restarts, Actor: "operator", Verb: plan.Patch, Path: parent, Delay: 10 * time.Second},
}

// TestManagerRecovers has the operator meet each sort of fault, which it gets over, and the same happens again.
func TestManagerRecovers(t *testing.T) {
	for _, fault := range byCount {
		t.Run(string(fault.Sort), func(t *testing.T) {
			p := plan.Plan{Faults: []plan.Fault{fault}}
			var first string
			processors(t, 1, func(run string) {
				simulate(t, p, func(c *cluster) {
					if !c.story() {
						c.Errorf("the work is not done:\n%s", c.Log())
					}
					happened := c.Happened()
					if missed := p.Missed(happened); missed != nil {
						c.Errorf("missed are %v:\n%s", missed, c.Log())
					}
					sameAs(t, &first, run, plan.Plan{Faults: happened}.String())
				})
			})
		})
	}
	if len(byCount) != len(plan.Sorts) || slices.ContainsFunc(plan.Sorts, func(s plan.Sort) bool {
		return !slices.ContainsFunc(byCount, func(f plan.Fault) bool { return f.Sort == s })
	}) {
		t.Error("a sort is not tried")
	}
}

// TestManagerUnderSeeds has the operator get over what seeds draw.
func TestManagerUnderSeeds(t *testing.T) {
	happened := map[plan.Sort]int{}
	for seed := range uint64(10) {
		p := plan.FromSeed(seed, plan.Options{Actors: []string{"operator"}})
		simulate(t, p, func(c *cluster) {
			if !c.story() {
				c.Errorf("seed %d, %v: the work is not done:\n%s", seed, p, c.Log())
			}
			for _, f := range c.Happened() {
				happened[f.Sort]++
			}
		})
	}
	t.Logf("what happened: %v", happened)
	if len(happened) < 5 {
		t.Errorf("what happened is %v", happened)
	}
}

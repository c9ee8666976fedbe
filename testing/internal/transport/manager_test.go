package transport_test

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
)

const (
	child  = "/api/v1/namespaces/default/configmaps/web"
	parent = "/apis/apps/v1/namespaces/default/deployments/web"
)

// byCount are faults that strike the story, each of a kind.
var byCount = []fault.Fault{
	{Kind: fault.Refuses, Actor: "operator", Verb: fault.Create, Path: child},
	{Kind: fault.Fails, Actor: "operator", Verb: fault.Update, Path: child},
	{Kind: fault.LosesAnswer, Actor: "operator", Verb: fault.Create, Path: child},
	{Kind: fault.Conflicts, Actor: "operator", Verb: fault.Update, Path: child},
	{Kind: fault.Throttles, Actor: "operator", Verb: fault.Patch, Path: parent, Times: 12, Delay: time.Second},
	{Kind: fault.Expires, Actor: "operator", Verb: fault.Watch, Path: "/api/v1/configmaps", Nth: 2},
	{Kind: fault.CutsWatch, Actor: "operator", Verb: fault.Watch, Path: "/apis/apps/v1/deployments", Delay: time.Minute},
	{Kind: fault.DelaysWatch, Actor: "operator", Verb: fault.Watch, Path: "/api/v1/configmaps*", Delay: 10 * time.Minute},
	{Kind: fault.DiesBefore, Actor: "operator", Verb: fault.Create, Path: child},
	{Kind: fault.DiesAfter, Actor: "operator", Verb: fault.Create, Path: child},
	{Kind: fault.Restarts, Actor: "operator", Verb: fault.Patch, Path: parent, Delay: 10 * time.Second},
}

// TestManagerRecovers has the operator meet each kind of fault, which it gets over, and the same happens again.
func TestManagerRecovers(t *testing.T) {
	for _, struck := range byCount {
		t.Run(string(struck.Kind), func(t *testing.T) {
			p := plan.Plan{Faults: []fault.Fault{struck}}
			var first string
			processors(t, 1, func(run string) {
				simulate(t, p, keep, func(c *cluster) {
					if !c.story() {
						c.Errorf("the work is not done:\n%s", c.Log())
					}
					happened := c.Happened()
					if missed := p.Missed(happened); missed != nil {
						c.Errorf("missed are %v:\n%s", missed, c.Log())
					}
					sameAs(t, &first, run, plan.Plan{Faults: happened}.Code())
				})
			})
		})
	}
	if len(byCount) != len(plan.Kinds) || slices.ContainsFunc(plan.Kinds, func(k fault.Kind) bool {
		return !slices.ContainsFunc(byCount, func(f fault.Fault) bool { return f.Kind == k })
	}) {
		t.Error("a kind is not tried")
	}
}

// TestManagerUnderSeeds has the operator get over what seeds draw.
func TestManagerUnderSeeds(t *testing.T) {
	happened := map[fault.Kind]int{}
	for seed := range uint64(10) {
		p := plan.FromSeed(seed, plan.Options{Actors: []string{"operator"}})
		simulate(t, p, keep, func(c *cluster) {
			if !c.story() {
				c.Errorf("seed %d, %v: the work is not done:\n%s", seed, p, c.Log())
			}
			for _, f := range c.Happened() {
				happened[f.Kind]++
			}
		})
	}
	t.Logf("what happened: %v", happened)
	if len(happened) < 5 {
		t.Errorf("what happened is %v", happened)
	}
}

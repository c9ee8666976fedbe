package transport_test

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation/faults"
)

const (
	child  = "/api/v1/namespaces/default/configmaps/web"
	parent = "/apis/apps/v1/namespaces/default/deployments/web"
)

// byCount are faults that strike the story, each of a sort.
var byCount = []faults.Fault{
	{Sort: faults.Refuses, Actor: "operator", Verb: faults.Create, Path: child},
	{Sort: faults.Fails, Actor: "operator", Verb: faults.Update, Path: child},
	{Sort: faults.LosesAnswer, Actor: "operator", Verb: faults.Create, Path: child},
	{Sort: faults.Conflicts, Actor: "operator", Verb: faults.Update, Path: child},
	{Sort: faults.Throttles, Actor: "operator", Verb: faults.Patch, Path: parent, Times: 12, Delay: time.Second},
	{Sort: faults.Expires, Actor: "operator", Verb: faults.Watch, Path: "/api/v1/configmaps", Nth: 2},
	{Sort: faults.CutsWatch, Actor: "operator", Verb: faults.Watch, Path: "/apis/apps/v1/deployments", Delay: time.Minute},
	{Sort: faults.DelaysWatch, Actor: "operator", Verb: faults.Watch, Path: "/api/v1/configmaps*", Delay: 10 * time.Minute},
	{Sort: faults.DiesBefore, Actor: "operator", Verb: faults.Create, Path: child},
	{Sort: faults.DiesAfter, Actor: "operator", Verb: faults.Create, Path: child},
	{Sort: faults.Restarts, Actor: "operator", Verb: faults.Patch, Path: parent, Delay: 10 * time.Second},
}

// TestManagerRecovers has the operator meet each sort of fault, which it gets over, and the same happens again.
func TestManagerRecovers(t *testing.T) {
	for _, fault := range byCount {
		t.Run(string(fault.Sort), func(t *testing.T) {
			p := faults.Plan{Faults: []faults.Fault{fault}}
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
					sameAs(t, &first, run, faults.Plan{Faults: happened}.String())
				})
			})
		})
	}
	if len(byCount) != len(faults.Sorts) || slices.ContainsFunc(faults.Sorts, func(s faults.Sort) bool {
		return !slices.ContainsFunc(byCount, func(f faults.Fault) bool { return f.Sort == s })
	}) {
		t.Error("a sort is not tried")
	}
}

// TestManagerUnderSeeds has the operator get over what seeds draw.
func TestManagerUnderSeeds(t *testing.T) {
	happened := map[faults.Sort]int{}
	for seed := range uint64(10) {
		p := faults.FromSeed(seed, faults.Options{Actors: []string{"operator"}})
		simulate(t, p, keep, func(c *cluster) {
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

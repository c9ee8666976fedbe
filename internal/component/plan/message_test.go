package plan_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

func obstacle(kind plan.ObstacleKind, name, message string) plan.Obstacle {
	return plan.Obstacle{Key: foo(name).Key, Kind: kind, Message: message}
}

func TestMessage(t *testing.T) {
	progress := plan.Progress{Wave: 2, Waves: 5, Ready: 37, Total: 120}
	api := plan.Obstacle{Key: plan.Key{Group: "apps", Kind: "Deployment", Namespace: "app", Name: "api"},
		Kind: plan.ObstacleWaiting, Message: "1 of 3 replicas available"}
	many := plan.Plan{Progress: progress, Obstacles: []plan.Obstacle{api, obstacle(plan.ObstacleWaiting, "b", ""),
		obstacle(plan.ObstacleFailed, "c", "quota"),
		obstacle(plan.ObstacleNotOurs, "d", "it belongs to X"), obstacle(plan.ObstacleWaiting, "e", "")}}
	for name, test := range map[string]struct {
		plan  plan.Plan
		limit int
		want  string
	}{
		"one":        {plan.Plan{Progress: progress, Obstacles: []plan.Obstacle{api}}, 200, "wave 2 of 5: 37 of 120 ready, waiting for Deployment app/api: 1 of 3 replicas available"},
		"none":       {plan.Plan{Progress: progress}, 200, "wave 2 of 5: 37 of 120 ready"},
		"done":       {plan.Plan{Done: true, Inventory: make([]apis.InventoryRecord, 3)}, 200, "all 3 objects are ready"},
		"deleted":    {plan.Plan{Done: true, Deleting: true}, 200, "all objects are gone"},
		"under way":  {plan.Plan{}, 200, "under way"},
		"after all":  {plan.Plan{Obstacles: []plan.Obstacle{obstacle(plan.ObstacleBlocked, "a", "in use by Foo app/x")}}, 200, "blocked: Foo app/a: in use by Foo app/x"},
		"many":       {many, 300, "wave 2 of 5: 37 of 120 ready, failed: Foo app/c: quota; not ours: Foo app/d: it belongs to X; waiting for Deployment app/api: 1 of 3 replicas available and 2 more"},
		"many, less": {many, 130, "wave 2 of 5: 37 of 120 ready, failed: Foo app/c: quota; not ours: Foo app/d: it belongs to X; waiting for 3 more"},
		"many, few":  {many, 100, "wave 2 of 5: 37 of 120 ready, failed: Foo app/c: quota; not ours: 1 more; waiting for 3 more"},
		"short":      {many, 40, "wave 2 of 5: 37 of 120 ready, failed:…"},
		"tiny":       {many, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Message(test.plan, test.limit); got != test.want {
				t.Errorf("the message is\n%q, want\n%q", got, test.want)
			}
		})
	}
	odd := plan.Plan{Obstacles: []plan.Obstacle{obstacle(plan.ObstacleFailed, "a", strings.Repeat("ü", 200))}}
	for limit := range 100 {
		if got := plan.Message(odd, limit); len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("with the limit %d the message is %q, want valid UTF-8 within the limit", limit, got)
		}
	}
}

func TestKeyInWords(t *testing.T) {
	for want, key := range map[string]plan.Key{
		"Foo app/a":                {Group: "test.local", Kind: "Foo", Namespace: "app", Name: "a"},
		"Namespace app":            {Kind: "Namespace", Name: "app"},
		"types * of *.test.local":  {Group: "*.test.local", Kind: "*"},
		"types Foo of core group?": {},
	} {
		if key == (plan.Key{}) {
			key, want = plan.Key{Kind: "Foo"}, "types Foo of the core group"
		}
		if got := key.String(); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}

func TestPlanInWords(t *testing.T) {
	c := newComponent(t, configMap("a"), with(foo("taken"), policy(apis.AdoptNever)))
	c.cluster.put(foo("taken").Key, plan.Unowned)
	want := `wave 1 of 1
  create ConfigMap app/a: it does not exist
in the way
  not ours: Foo app/taken: it exists already; adoption-policy: if-unowned adopts it
`
	if got := plan.Make(c.input()).String(); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	if got := plan.Make(plan.Input{}).String(); got != "all 0 objects are ready\n" {
		t.Errorf("the plan in words is %q, want \"all 0 objects are ready\n\"", got)
	}
}

package plan_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

func TestExplain(t *testing.T) {
	c := newComponent(t, with(configMap("changed"), policy(apis.UpdateRecreate)), foo("old"), crd("baz"), foo("same"))
	c.rollOutAll(t)
	c.cluster.put(configMap("there").Key, plan.Unowned)
	c.cluster.put(configMap("theirs").Key, plan.Foreign)
	c.desired = []plan.Desired{with(configMap("changed"), policy(apis.UpdateRecreate), digest("2")), foo("same"),
		configMap("there"),
		with(configMap("hook"), purged(0)), with(foo("late"), order(1, 0)), with(configMap("last"), order(2, 0))}
	in := c.input()
	in.Observed[foo("late").Key] = plan.Observed{}
	copied := c.input()
	copied.Observed[foo("late").Key] = plan.Observed{}
	want := `wave 1 of 3
  recreate ConfigMap app/changed: its desired state changed
  adopt ConfigMap app/there: it exists
  create ConfigMap app/hook: it does not exist
wave 1 of 3
  create ConfigMap app/changed: it does not exist
objects that are not desired any more
  check CustomResourceDefinition baz.test.local: others may use the types
objects that are not desired any more
  delete type CustomResourceDefinition baz.test.local: it is not desired any more
objects that are not desired any more
  delete Foo app/old: it is not desired any more
purge after wave 1 of 3
  purge ConfigMap app/hook: its purge order is reached
wave 2 of 3
  create Foo app/late: it does not exist
wave 3 of 3
  create ConfigMap app/last: it does not exist
`
	if got := plan.Explain(in); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	if !reflect.DeepEqual(in, copied) {
		t.Errorf("the input was changed to %+v, want %+v", in, copied)
	}
	c.desired = append(c.desired, configMap("theirs"))
	stages, last := plan.Simulate(c.input())
	if len(stages) == 0 || last.Done {
		t.Errorf("there are %d stages, want some, and a plan that is not done:\n%s", len(stages), last)
	}
	const kept = "it is kept until these are written: ConfigMap app/theirs"
	same(t, "obstacles", obstacles(last), []string{
		"not ours theirs: it belongs to Other space/them; adoption-policy: always adopts it",
		"waiting baz.test.local: " + kept, "waiting old: " + kept,
	})
}

func TestExplainDeletion(t *testing.T) {
	c := newComponent(t, crd("baz"), baz("instance"), with(foo("foo"), order(0, -1)))
	c.patterns = []plan.Pattern{{Group: "test.local", Kind: "Foo"}}
	c.rollOutAll(t)
	c.deleting = true
	want := `checks before the deletion
  check CustomResourceDefinition baz.test.local: others may use the types
  check types Foo of test.local: others may use the types
deletion, wave 1 of 2
  delete Foo app/foo: the component is being deleted
deletion, wave 1 of 1
  delete Baz app/instance: the component is being deleted
deletion, wave 1 of 1
  delete type CustomResourceDefinition baz.test.local: the component is being deleted
`
	if got := plan.Explain(c.input()); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
}

func ExampleExplain() {
	settings := plan.Desired{Key: plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, Version: "v1",
		Digest: "1"}
	server := plan.Desired{Key: plan.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "server"},
		Version: "v1", Digest: "2", ApplyOrder: 1, AdoptionPolicy: apis.AdoptIfUnowned}
	fmt.Print(plan.Explain(plan.Input{
		Desired: []plan.Desired{server, settings},
		Observed: map[plan.Key]plan.Observed{
			settings.Key: {Presence: plan.Absent},
			server.Key:   {Presence: plan.Present, UID: "42", Claim: "was written by kubectl"},
		},
	}))
	// Output:
	// wave 1 of 2
	//   create ConfigMap shop/settings: it does not exist
	// wave 2 of 2
	//   adopt Deployment shop/server: it exists and was written by kubectl
}

func TestExplainNothing(t *testing.T) {
	if got := plan.Explain(plan.Input{}); got != "nothing to do\n" {
		t.Errorf("the explanation is %q, want \"nothing to do\n\"", got)
	}
}

// A type that the component defines is served once it is defined. Any other missing type stays an obstacle.
func TestExplainMissingTypes(t *testing.T) {
	missing := plan.Observed{Presence: plan.Absent, TypeMissing: true}
	in := single(foo("foo"), nil, missing)
	want := "in the way\n  failed: Foo app/foo: the cluster does not serve its type\n"
	if got := plan.Explain(in); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	in = single(baz("baz"), nil, missing)
	in.Desired = append(in.Desired, crd("baz"))
	in.Observed[crd("baz").Key] = plan.Observed{Presence: plan.Absent}
	want = `wave 1 of 1
  create CustomResourceDefinition baz.test.local: it does not exist
wave 1 of 1, instances of managed types
  create Baz app/baz: it does not exist
`
	if got := plan.Explain(in); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
}

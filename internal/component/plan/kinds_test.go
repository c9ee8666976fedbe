package plan_test

import (
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// kindsInOrder are all kinds of the tables, and one of none, from the first to the last; those of one line may go
// together.
var (
	applyOrder = [][]string{
		{"/Namespace"},
		{"apiextensions.k8s.io/CustomResourceDefinition", "networking.k8s.io/IngressClass", "node.k8s.io/RuntimeClass", "scheduling.k8s.io/PriorityClass",
			"storage.k8s.io/StorageClass", "rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/Role"},
		{"/ConfigMap", "/Secret", "rbac.authorization.k8s.io/ClusterRoleBinding", "rbac.authorization.k8s.io/RoleBinding"},
		{"apps/Deployment", "/Service", "other.local/Namespace", "other.local/ConfigMap"},
		{"admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration"},
		{"apiregistration.k8s.io/APIService"},
	}
	deleteOrder = [][]string{
		{"admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration"},
		{"apiextensions.k8s.io/CustomResourceDefinition", "apiregistration.k8s.io/APIService"},
		{"apps/Deployment", "rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/ClusterRoleBinding", "other.local/Namespace"},
		{"/Service", "/ConfigMap", "/Secret"},
		{"/Namespace"},
		{"networking.k8s.io/IngressClass", "node.k8s.io/RuntimeClass", "scheduling.k8s.io/PriorityClass", "storage.k8s.io/StorageClass"},
	}
)

// backwards returns an object of each kind, from the last line to the first. The order within a line is kept.
func backwards(lines [][]string) []plan.Desired {
	var desired []plan.Desired
	for i := len(lines) - 1; i >= 0; i-- {
		for _, name := range lines[i] {
			d := object1("", "", name)
			for at, r := range name {
				if r == '/' {
					d.Group, d.Kind = name[:at], name[at+1:]
				}
			}
			d.Namespace = ""
			desired = append(desired, d)
		}
	}
	return desired
}

func TestApplyOrder(t *testing.T) {
	c := newComponent(t, backwards(applyOrder)...)
	var want []string
	for _, line := range applyOrder {
		for _, name := range line {
			want = append(want, "create "+name)
		}
	}
	if p := c.pass(); !p.Done || c.steps != len(applyOrder) {
		t.Errorf("%d stages, want %d:\n%s", c.steps, len(applyOrder), p)
	}
	same(t, "operations", c.cluster.trace, want)
}

func TestDeleteOrder(t *testing.T) {
	c := newComponent(t, backwards(deleteOrder)...)
	c.pass()
	var records []string
	for _, r := range c.stored {
		records = append(records, r.Name)
	}
	var want, operations []string
	for _, line := range deleteOrder {
		for _, name := range line {
			want = append(want, name)
			action := "delete "
			if name == "apiextensions.k8s.io/CustomResourceDefinition" {
				action = "delete type "
			} else if name == "/Namespace" {
				action = "delete if unused "
			}
			operations = append(operations, action+name)
		}
	}
	same(t, "records", records, want)
	c.deleting, c.cluster.trace, c.steps = true, nil, 0
	c.pass()
	// The check comes first.
	same(t, "operations", c.cluster.trace[1:], operations)
	if c.steps != 1+len(deleteOrder) {
		t.Errorf("%d stages, want %d", c.steps, 1+len(deleteOrder))
	}
}

// Waves are sorted before kinds. Each apply order is a wave.
func TestWaves(t *testing.T) {
	c := newComponent(t, with(configMap("c"), order(32767, -32768)), with(foo("b"), order(0, 0)),
		with(namespace("a"), order(-32768, 32767)))
	p := plan.Make(c.input())
	if p.Progress != (plan.Progress{Wave: 1, Waves: 3, Ready: 0, Total: 1}) || p.Next.Title != "wave 1 of 3" {
		t.Errorf("the progress is %+v and the title %q, want wave 1 of 3 with 0 of 1 ready", p.Progress, p.Next.Title)
	}
	c.rollOutAll(t)
	same(t, "operations", c.cluster.trace, []string{"create a", "create b", "create c"})
	var names []string
	for _, r := range c.stored {
		names = append(names, r.Name)
	}
	same(t, "records", names, []string{"c", "b", "a"})
}

// Records of the same wave and priority keep their order.
func TestOrderOfRecordsIsStable(t *testing.T) {
	in := plan.Input{Inventory: []apis.InventoryRecord{asIs(foo("z")), asIs(foo("a"))},
		Desired: []plan.Desired{foo("new"), foo("a"), foo("z")}}
	var names []string
	for _, r := range plan.Make(in).Inventory {
		names = append(names, r.Name)
	}
	same(t, "records", names, []string{"z", "a", "new"})
}

// TestGroupPatterns finds out what a pattern matches: a missing type that matches is waited for.
func TestGroupPatterns(t *testing.T) {
	for _, test := range []struct {
		group, pattern string
		match          bool
	}{
		{"foo", "foo", true}, {"bar.foo", "*.foo", true}, {"baz.bar.foo", "*.foo", true}, {"any.thing", "*", true}, {"", "*", true}, {"", "", true},
		{"foo", "f*o", false}, {"foo.bar", "foo.*", false}, {"bar.foo", "*r.foo", false}, {"bar.foo", "b*.foo", false}, {"baz.bar.foo", "*.*.foo", false},
		{"foo", "*.foo", false}, {"foo", "", false}, {"barfoo", "*.foo", false}, {"foo", "bar", false},
	} {
		t.Run(fmt.Sprintf("%s as %s", test.group, test.pattern), func(t *testing.T) {
			for kind, kindMatches := range map[string]bool{"*": true, "Thing": true, "Other": false} {
				first := object1(test.group, "Thing", "thing")
				in := plan.Input{Desired: []plan.Desired{first, object1("unrelated", "Regular", "regular")},
					Patterns: []plan.Pattern{{Group: test.pattern, Kind: kind}},
					Observed: map[plan.Key]plan.Observed{first.Key: {Presence: plan.Absent, TypeMissing: true},
						object1("unrelated", "Regular", "regular").Key: live(object1("unrelated", "Regular",
							"regular"))}}
				want := "failed"
				if test.match && kindMatches {
					want = "waiting"
				}
				got := ""
				for _, o := range plan.Make(in).Obstacles {
					if o.Key == first.Key {
						got = string(o.Kind)
					}
				}
				// It waits for what brings its type only if that is expected of the component.
				if got == "" && want == "waiting" {
					got = want
				}
				if got != want {
					t.Errorf("kind %s: %s, want %s", kind, got, want)
				}
			}
		})
	}
}

func TestVersionsOfManagedTypes(t *testing.T) {
	service := object1("apiregistration.k8s.io", "APIService", "v1.served.local")
	service.Namespace, service.ManagedTypes = "", []apis.ManagedType{{Group: "served.local", Version: "v1", Kind: "*"}}
	for version, want := range map[string]string{"v1": "waiting thing: its type is not served yet",
		"v2": "failed thing: the cluster does not serve its type"} {
		thing := object1("served.local", "Thing", "thing")
		thing.Version = version
		r := asIs(service)
		in := single(service, &r, live(service))
		in.Desired = append(in.Desired, thing)
		in.Observed[thing.Key] = plan.Observed{Presence: plan.Absent, TypeMissing: true}
		same(t, "obstacles", obstacles(plan.Make(in)), []string{want})
	}
}

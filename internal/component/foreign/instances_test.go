package foreign_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestCheckDistinguishesOwners(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		owner []string
		scope func(*apiextensionsv1.CustomResourceDefinition)
		want  plan.Use
	}{
		{name: "nothing", want: none},
		{name: "our own", owner: []string{ours, ours}, want: none},
		{name: "without owner", owner: []string{ours, ""}, want: blocking(0, "Anvil NS/n1")},
		{name: "of another owner", owner: []string{"them", ours}, want: blocking(0, "Anvil NS/n0")},
		{name: "cluster-wide", owner: []string{"", ours}, scope: clusterScoped, want: blocking(0, "Anvil n0")},
		{name: "as many as are named", owner: []string{"", "", ""},
			want: blocking(0, "Anvil NS/n0", "Anvil NS/n1", "Anvil NS/n2")},
		{name: "one more", owner: []string{"", "", "", ""}, want: blocking(1, "Anvil NS/n0", "Anvil NS/n1",
			"Anvil NS/n2")},
		{name: "not counted", owner: []string{"", "", "", "", ""},
			want: blocking(-1, "Anvil NS/n0", "Anvil NS/n1", "Anvil NS/n2")},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			crd := crdOf(fmt.Sprintf("Anvil%d", i))
			if test.scope != nil {
				test.scope(crd)
			}
			install(t, crd)
			namespace := plane.Namespace(t)
			for n, owner := range test.owner {
				create(t, instance(crd, namespace, fmt.Sprintf("n%d", n), owner))
			}
			for j := range test.want.Instances {
				test.want.Instances[j] = strings.NewReplacer("Anvil", crd.Spec.Names.Kind, "NS",
					namespace).Replace(test.want.Instances[j])
			}
			for _, fence := range []bool{false, true} {
				g, requests := guarded(t, interceptor.Funcs{})
				use, err := checkOne(t.Context(), g, keyOf(crd), fence)
				assertUse(t, use, err, test.want)
				if fence && use.State == plan.ForeignNone {
					assertFences(t, crd, 1)
					continue
				}
				assertFences(t, crd, 0)
				if n := requests.Writes(); n != 0 {
					t.Errorf("there are %d writes, want none: %v", n, requests.Counts())
				}
			}
		})
	}
}

// If no version of a type is served, the use of the type is unknown.
func TestNoVersionServed(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Sickle"))
	theirs := instance(crd, plane.Namespace(t), "theirs", "")
	create(t, theirs)
	serve := func(yes bool) {
		t.Helper()
		fresh := stored(t, crd)
		fresh.Spec.Versions[0].Served = yes
		if err := live(t).Update(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
	}
	serve(false)
	g := newGuard(t, plane.Config(t))
	want := unknown("no version of Sickle is served, so that its instances cannot be listed")
	use, err := checkOne(t.Context(), g, keyOf(crd), true)
	assertUse(t, use, err, want)
	use, err = deleteOne(t.Context(), g, keyOf(crd), stored(t, crd).UID)
	assertUse(t, use, err, want)
	assertFences(t, crd, 0)
	serve(true)
	controlplanetest.Eventually(t, "the instance is not found", func(ctx context.Context) error {
		use, err := checkOne(ctx, newGuard(t, plane.Config(t)), keyOf(crd), true)
		if err != nil || use.State != plan.ForeignBlocking {
			return fmt.Errorf("%+v, %v", use, err)
		}
		return nil
	})
}

// A definition with names that are taken is never served. Instances of the type that has the names do not count.
func TestNamesAreTaken(t *testing.T) {
	t.Parallel()
	first := install(t, crdOf("Trowel"))
	create(t, instance(first, plane.Namespace(t), "theirs", ""))
	second := crdOf("Trowel", func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Names.Plural, crd.Spec.Names.Singular = "trowelz", "trowelz"
		crd.Name = "trowelz." + smithy
	})
	create(t, second)
	t.Cleanup(func() { uninstall(t, second) })
	controlplanetest.Eventually(t, "the names are accepted", func(context.Context) error {
		for _, c := range stored(t, second).Status.Conditions {
			if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
				return nil
			}
		}
		return fmt.Errorf("%v", stored(t, second).Status.Conditions)
	})
	g := newGuard(t, plane.Config(t))
	use, err := checkOne(t.Context(), g, keyOf(second), false)
	assertUse(t, use, err, none)
	use, err = checkOne(t.Context(), g, keyOf(second), true)
	assertUse(t, use, err, none)
	// Should its names become free, it is served with the fence.
	assertFences(t, second, 1)
	use, err = deleteOne(t.Context(), g, keyOf(second), stored(t, second).UID)
	assertUse(t, use, err, none)
	assertGone(t, second)
	use, err = checkOne(t.Context(), g, keyOf(first), false)
	if err != nil || use.State != plan.ForeignBlocking {
		t.Errorf("the use is %+v and the error %v, want %v and none", use, err, plan.ForeignBlocking)
	}
}

// A client that maps the kind to another resource would list the wrong instances. The kind is not namespaced, so that
// it does not stand in the way of the tests that list a namespace at the same time.
func TestKindStandsForAnotherResource(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Vise", clusterScoped))
	g := newGuard(t, plane.Config(t))
	use, err := checkOne(t.Context(), g, keyOf(crd), false)
	assertUse(t, use, err, none)
	uninstall(t, crd)
	assertGone(t, crd)
	other := install(t, crdOf("Vise", clusterScoped, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Names.Plural = "visen"
		crd.Name = "visen." + smithy
	}))
	use, err = checkOne(t.Context(), g, keyOf(other), true)
	assertUse(t, use, err, unknown("instances of Vise could not be listed: visen and vises are of the same kind"))
	assertFences(t, other, 0)
}

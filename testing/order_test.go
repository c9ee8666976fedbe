package testing_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"
)

// everything makes one call of each kind.
func everything(ctx context.Context, c reconcilers.Config) error {
	generated := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "cm-"}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	return errors.Join(
		kinds["Track"].do(ctx, c),
		c.Tracker.TrackReference(tracker.Reference{Kind: "Secret", Namespace: "default", Selector: labels.Everything()}, pod.Object()),
		c.Create(ctx, namespace, client.DryRunAll),
		c.Create(ctx, generated),
		kinds["Event"].do(ctx, c),
		kinds["StatusPatch"].do(ctx, c),
		kinds["Patch"].do(ctx, c),
		kinds["Update"].do(ctx, c),
		kinds["StatusUpdate"].do(ctx, c),
		kinds["Apply"].do(ctx, c),
		kinds["StatusApply"].do(ctx, c),
		c.SubResource("resize").Update(ctx, pod.Object(), client.WithSubResourceBody(&corev1.Pod{})),
		c.SubResource("binding").Patch(ctx, pod.Object(), keep),
		c.SubResource("ephemeralcontainers").Apply(ctx, corev1ac.Pod("web", "default")),
		c.SubResource("eviction").Create(ctx, pod.Object(), &policyv1.Eviction{}),
		kinds["Delete"].do(ctx, c),
		kinds["DeleteCollection"].do(ctx, c),
		c.DeleteAllOf(ctx, &corev1.Node{}),
	)
}

var everyWrite = []string{
	"create Namespace acme (dry run)",
	"create ConfigMap default/cm-*",
	"patch Pod/status default/web",
	"patch ConfigMap default/settings",
	"update ConfigMap default/settings",
	"update Pod/status default/web",
	"apply ConfigMap default/settings",
	"apply Pod/status default/web",
	"update Pod/resize default/web",
	"patch Pod/binding default/web",
	"apply Pod/ephemeralcontainers default/web",
	"create Pod/eviction default/web",
	"delete ConfigMap default/settings",
	"delete-collection ConfigMap default/*",
	"delete-collection Node *",
}

func TestOrder(t *testing.T) {
	withTracks := append([]string{"track ConfigMap default/settings", "track Secret default/*"}, everyWrite...)
	withEvents := append(append([]string{}, everyWrite[:2]...), "event Seen ConfigMap default/settings")
	withEvents = append(withEvents, everyWrite[2:]...)
	swapped := append([]string{}, everyWrite...)
	swapped[2], swapped[3] = swapped[3], swapped[2]

	for name, tc := range map[string]struct {
		do     do
		expect []string
		want   []string
	}{
		"not compared": {do: everything},
		"writes":       {do: everything, expect: everyWrite},
		"with tracks":  {do: everything, expect: withTracks},
		"with events":  {do: everything, expect: withEvents},
		"nothing":      {do: kinds["Track"].do, expect: []string{}},
		"missing": {
			do: kinds["Event"].do, expect: []string{"create ConfigMap a"},
			want: []string{`-`, `"create ConfigMap a"`},
		},
		"unexpected": {
			do: kinds["Delete"].do, expect: []string{},
			want: []string{"+", "\nTo expect it, set ExpectOrder to:\n", `[]string{"delete ConfigMap default/settings"}`},
		},
		"swapped": {
			do: everything, expect: swapped,
			want: []string{"ExpectOrder differs for config \"other\" (-expected, +actual):\n"},
		},
		"events differ": {
			do: kinds["Event"].do, expect: []string{"event Gone ConfigMap a"},
			want: []string{"event Seen ConfigMap default/settings"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newExpectConfig()
			c.Name, c.ExpectOrder = "other", tc.expect
			if err := tc.do(t.Context(), c.Config()); err != nil {
				t.Fatal(err)
			}
			c.AssertOrderExpectations(nil)
			failures := strings.Join(c.Failures(), "\n")
			if (failures != "") != (tc.want != nil) {
				t.Errorf("want parts %q of the failures, got %q", tc.want, failures)
			}
			for _, want := range tc.want {
				if !strings.Contains(failures, want) {
					t.Errorf("want %q in %s", want, failures)
				}
			}
		})
	}
}

// A failed write has its place too: what was tried is what the order is about.
func TestOrderOfACase(t *testing.T) {
	copied := settings.With(func(c *corev1.ConfigMap) { c.Name = "copy" })
	rtesting.ReconcilerTests{"failed": {
		Request:       request,
		GivenObjects:  []client.Object{settings},
		WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap")},
		ExpectCreates: []client.Object{copied},
		ExpectOrder:   []string{"create ConfigMap default/copy"},
		ShouldErr:     true,
	}}.Run(t, scheme, newCopier)
}

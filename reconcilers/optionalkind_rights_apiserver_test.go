package reconcilers_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// userWith returns the config of a user with rules.
func userWith(t *testing.T, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	name := "user-" + plane.Namespace(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := live(t).Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = live(t).Delete(context.Background(), obj) })
	}
	config := plane.Config(t)
	config.Impersonate.UserName = name
	return config
}

// A user who may not watch what defines kinds learns from the API server, which it asks only while somebody waits.
func TestAnOptionalKindOfAUserWhoMayNotWatchDefinitions(t *testing.T) {
	t.Parallel()
	kind := meterKind("asked")
	o := startMeterOperator(t, kind, userWith(t,
		rbacv1.PolicyRule{
			APIGroups: []string{resources.GroupVersion.Group, kind.Group, "", "events.k8s.io"},
			Resources: []string{"*"}, Verbs: []string{"*"},
		}), widgetSequence{configMapChild("a"), childMeter(), readMeter()})
	w := o.widget(t, "with", "fuel")
	o.shows(t, w, map[string]string{"child": "not served", "read": "not served"})
	o.install(t)
	o.shows(t, w, map[string]string{"child": "is fuel", "read": "not found"})
}

// While nothing changes there is no request (invariant L1), whether the kind is served or not. A kind that is not
// served, and of which no object is desired, is not asked for.
func TestL1AnOptionalKindCostsNoRequest(t *testing.T) {
	t.Parallel()
	o := startProbed(t, meterKind("idle"), configMapChild("a"), childMeter())
	w, without := o.widget(t, "with", "fuel"), o.widget(t, "without", "")
	o.shows(t, w, map[string]string{"child": "not served"})
	o.shows(t, without, map[string]string{"child": "none"})
	for request := range o.requests.Counts() {
		if strings.Contains(request.Path, "/meters") {
			t.Errorf("there is the request %s of a kind that is not served, want none", request)
		}
	}
	o.staysIdle(t, w)
	o.staysIdle(t, without)
	o.install(t)
	o.shows(t, w, map[string]string{"child": "is fuel"})
	o.staysIdle(t, w)
	o.staysIdle(t, without)
}

// touch changes the generation of Widgets.
func (o *meterOperator) touch(t *testing.T, widgets ...*resources.Widget) {
	t.Helper()
	for _, w := range widgets {
		// The operator may write the status at the same time.
		touched := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, time.Now())
		if err := o.live.Patch(t.Context(), w.DeepCopy(), client.RawPatch(types.MergePatchType, touched)); err != nil {
			t.Fatal(err)
		}
	}
}

// A resource with a finalizer for its child does not wait for a kind that is gone.
func TestAnOptionalKindDoesNotHoldAFinalizer(t *testing.T) {
	t.Parallel()
	child := childMeter()
	child.Finalizer = "test.espalier.dev/meter"
	child.OurChild = func(w *resources.Widget, m *meter) bool { return m.Name == w.Name }
	child.ListOptions = func(_ context.Context, w *resources.Widget) []client.ListOption {
		return []client.ListOption{client.InNamespace(w.Namespace)}
	}
	o := startMeterOperator(t, meterKind("held"), plane.Config(t), widgetSequence{configMapChild("a"), child})
	o.install(t)
	w := o.widget(t, "with", "fuel")
	o.shows(t, w, map[string]string{"child": "is fuel"})
	o.uninstall(t)
	o.shows(t, w, map[string]string{"child": "not served"})
	if err := o.live.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Widget is still there", func(ctx context.Context) error {
		return isNotFound(o.live.Get(ctx, client.ObjectKeyFromObject(w), w), "the Widget")
	})
}

// A kind of Kubernetes itself is watched from the start, with the requests of a kind that is needed.
func TestAnOptionalKindOfKubernetesIsWatchedAtSetup(t *testing.T) {
	t.Parallel()
	start := func(optional bool) map[string]int {
		op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
			// Sources that start at the same time have controller-runtime's mapper ask once more, at times.
			for _, obj := range []client.Object{&appsv1.Deployment{}, &resources.Widget{}} {
				if _, err := config.IsObjectNamespaced(obj); err != nil {
					t.Fatal(err)
				}
			}
			child := deploymentChild()
			child.OptionalKind = optional
			return &widgetRoot{Config: config, Reconciler: child}
		})
		eventually(t, "the Deployments and the Widgets are not watched", func(context.Context) error {
			watched := map[string]bool{}
			for request := range op.requests.Counts() {
				if request.Verb == "watch" {
					watched[path.Base(request.Path)] = true
				}
			}
			if watched["deployments"] && watched["widgets"] {
				return nil
			}
			return fmt.Errorf("the watched resources are %v", watched)
		})
		counts := map[string]int{}
		for request, n := range op.requests.Counts() {
			if at, ok := strings.CutPrefix(request.Path, "/apis/"+appsv1.GroupName); ok || request.Verb != "watch" {
				counts[request.Verb+" "+strings.ReplaceAll(at, op.namespace, "NS")] += n
			}
		}
		return counts
	}
	if needed, optional := start(false), start(true); len(needed) != len(optional) {
		t.Errorf("the requests of the start are %v, want those of a kind that is needed, %v", optional, needed)
	}
}

// A kind that another controller of the manager watches from the start stays in the cache when it goes, so that the
// other controller hears of it when it is back.
func TestAnOptionalKindThatIsWatchedFromTheStartStaysWatched(t *testing.T) {
	t.Parallel()
	kind := meterKind("shared")
	before := &meterOperator{gvk: kind}
	var err error
	if before.live, err = client.New(plane.Config(t), client.Options{Scheme: meterScheme(before.gvk)}); err != nil {
		t.Fatal(err)
	}
	before.install(t)
	eventually(t, "the kind is not served", func(ctx context.Context) error {
		c, err := client.New(plane.Config(t), client.Options{Scheme: meterScheme(before.gvk)})
		if err != nil {
			return err
		}
		return c.List(ctx, &meterList{})
	})
	needed := readMeter()
	needed.Setup = func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
		return reconcilers.WatchTracked(ctx, bldr, &meter{})
	}
	o := startMeterOperator(t, kind, plane.Config(t), widgetSequence{configMapChild("a"), childMeter(), needed})
	w := o.widget(t, "with", "fuel")
	o.shows(t, w, map[string]string{"child": "is fuel", "read": "not found"})
	o.uninstall(t)
	eventually(t, "the definition is still there", func(ctx context.Context) error {
		return o.live.Create(ctx, meterDefinition(o.gvk))
	})
	o.createRead(t, "again")
	o.shows(t, w, map[string]string{"child": "is fuel", "read": "is again"})
}

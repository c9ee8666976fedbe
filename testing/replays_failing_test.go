package testing_test

import (
	"context"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// counts is the metadata of a row that changes the resource in each request, and asks for a delay.
func counts(delay time.Duration) map[string]any {
	return map[string]any{"node": node[*corev1.ConfigMap]{
		reconcile: func(ctx context.Context, cm *corev1.ConfigMap) (reconcilers.Result, error) {
			cm = cm.DeepCopy()
			cm.Data["k"] += "w"
			return reconcilers.Result{RequeueAfter: delay}, reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, cm)
		},
	}}
}

// counted is the resource after one request.
var counted = []client.Object{settings.With(func(c *corev1.ConfigMap) { c.Data["k"] += "w" })}

// noRest is what is printed of a row whose requests go on.
var noRest = []string{
	"without a fault, the row never comes to rest", "story: ", `rtesting.NoReplays("why it never comes to rest")`,
}

// once is the metadata of a row that creates a child, unless it did so before.
func once(done map[string]bool) map[string]any {
	return does(func(ctx context.Context, cm *corev1.ConfigMap) error {
		if done[cm.Name] {
			return nil
		}
		done[cm.Name] = true
		return ensures(ctx, cm, "one")
	})
}

// expires is the metadata of a row in virtual time that creates a child once the process is 30 seconds old, and waits
// until then.
func expires(wait func(ctx context.Context) error) map[string]any {
	expiry := time.Date(2000, 1, 1, 0, 0, 30, 0, time.UTC)
	return map[string]any{"node": node[*corev1.ConfigMap]{
		reconcile: func(ctx context.Context, cm *corev1.ConfigMap) (reconcilers.Result, error) {
			if left := time.Until(expiry); left > 0 {
				return reconcilers.Result{RequeueAfter: left}, wait(ctx)
			}
			return reconcilers.Result{}, ensures(ctx, cm, "one")
		},
	}}
}

func init() { maps.Copy(scenarios, replayed) }

// replayed are suites whose replays fail.
var replayed = map[string]scenario{
	"a change in each request": {
		run:      nodes(cmCase{Metadata: counts(0), ExpectUpdates: counted}),
		want:     append(noRest, "20 times: get ConfigMap settings · update ConfigMap settings · again", "a change"),
		unwanted: []string{"not replayed"},
	},
	"an error in each later request": {
		run: nodes(cmCase{Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
			return reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, configMap("one"))
		}), ExpectCreates: []client.Object{configMap("one")}}),
		want: append(noRest, `ends with an error: ConfigMapResourceReconciler: configmaps "one" already exists`),
	},
	"a state that outlives the instance": {
		run: nodes(cmCase{Metadata: once(map[string]bool{}), ExpectCreates: oneChild}),
		want: []string{
			"without a fault, a new instance of the code makes other writes than that of the row",
			"the row:  create ConfigMap default/one\n", "new instance: no writes\n", "list the service in Externals",
		},
	},
	"a state that outlives the instance of a row until rest": {
		run: nodes(cmCase{
			Until: rtesting.Rest(), Metadata: once(map[string]bool{}), ExpectCreates: oneChild,
		}),
		want: []string{"the row:  create ConfigMap default/one\n", "new instance: no writes\n"},
	},
	"a state that outlives the root": {
		run: func(t *testing.T) {
			done := false
			rtesting.RootTests{"case": {
				Request: request, GivenObjects: []client.Object{settings},
				ExpectCreates: []client.Object{configMap("one")},
			}}.RunRoot(t, scheme, func(c reconcilers.Config) reconcile.Reconciler {
				return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
					if done {
						return reconcile.Result{}, nil
					}
					done = true
					return reconcile.Result{}, c.Create(ctx, configMap("one"))
				})
			})
		},
		want: []string{"the row:  create ConfigMap default/one\n", "new instance: no writes\n"},
	},
	"a fault while it waits": {
		run: nodes(cmCase{
			VirtualTime: true, Until: rtesting.Rest(), Metadata: expires(func(ctx context.Context) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				all := &corev1.ConfigMapList{}
				if err := c.List(ctx, all); err != nil || len(all.Items) > 1 {
					return err
				}
				if err := c.Create(ctx, configMap("lock")); err != nil {
					return err
				}
				return c.Create(ctx, configMap("note"))
			}),
			ExpectCreates: []client.Object{configMap("lock"), configMap("note"), oneChild[0]},
		}),
		want: []string{
			`replayed with DiesAfter("create ConfigMap default/lock"), the row ends in another way`,
			"missing: ConfigMap default/note",
		},
	},
	"a swallowed error before the write of the observed generation": {
		run: func(t *testing.T) {
			rtesting.NodeTests[*appsv1.Deployment]{"case": {
				Resource:      &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}},
				ExpectCreates: []client.Object{configMap("one")},
			}}.RunNode(t, scheme, func() reconcilers.SubReconciler[*appsv1.Deployment] {
				return node[*appsv1.Deployment]{reconcile: func(
					ctx context.Context, _ *appsv1.Deployment,
				) (reconcilers.Result, error) {
					_ = reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, configMap("one"))
					return reconcilers.Result{}, nil
				}}
			})
		},
		want: []string{
			`replayed with Fails("create ConfigMap default/one"), the row ends in another way`,
			"update Deployment/status web · rest", "missing: ConfigMap default/one",
		},
	},
}

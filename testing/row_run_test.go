package testing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// The context of a run outlives the instances of the code that die in it, and ends after CleanUp.
func TestPrepareAndCleanUpHaveTheContextOfTheRun(t *testing.T) {
	t.Parallel()
	var runs []context.Context
	t.Run("row", func(t *testing.T) {
		alive := func(_ *testing.T, ctx context.Context, _ *cmCase) error {
			runs = append(runs, ctx)
			return ctx.Err()
		}
		runNodes(t, cmNodes{"dies": {
			Resource: settings.Object(),
			Fault:    rtesting.DiesAfter("create ConfigMap default/one"),
			Prepare: func(t *testing.T, ctx context.Context, tc *cmCase) (context.Context, error) {
				tc.Metadata = does(func(ofRequest context.Context, cm *corev1.ConfigMap) error {
					if err := ctx.Err(); err != nil {
						t.Errorf("the context of Prepare has ended: %s", err)
					}
					return ensures(ofRequest, cm, "one")
				})
				return ctx, ctx.Err()
			},
			CleanUp: alive,
		}})
	})
	if len(runs) != 3 {
		t.Fatalf("want three runs, got %d", len(runs))
	}
	for i, ctx := range runs {
		if ctx.Err() == nil {
			t.Errorf("the context of run %d goes on", i)
		}
	}
}

// What waits for the end of the context of a row ends with the row.
func TestAContextOfARowEnds(t *testing.T) {
	t.Parallel()
	waits := func(ctx context.Context, _ *corev1.ConfigMap) error {
		go func() { <-ctx.Done() }()
		return nil
	}
	row := cmCase{
		Resource: settings.Object(), VirtualTime: true, Metadata: does(waits),
		Prepare: func(_ *testing.T, ctx context.Context, _ *cmCase) (context.Context, error) {
			return ctx, waits(ctx, nil)
		},
	}
	runNodes(t, cmNodes{"of a node": row})
	runNode(t, cmTests{"of a sub-reconciler": row})
}

// The namespaces that are there without being given are from the time of the row, in replays too.
func TestNamespacesAreFromTheTimeOfTheRow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	runNodes(t, cmNodes{"row": {
		Resource:          settings.Object(),
		Now:               now,
		AdditionalConfigs: map[string]rtesting.ExpectConfig{"remote": {}},
		Fault:             rtesting.DiesAfter("create ConfigMap default/one"),
		Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
			for _, c := range []client.Client{
				reconcilers.RetrieveConfigOrDie(ctx), reconcilers.RetrieveAdditionalConfigs(ctx)["remote"],
			} {
				namespace := &corev1.Namespace{}
				if err := c.Get(ctx, client.ObjectKey{Name: "default"}, namespace); err != nil {
					return err
				}
				if created := namespace.CreationTimestamp; !created.Time.Equal(now) {
					return fmt.Errorf("the namespace is from %s", created)
				}
			}
			return ensures(ctx, cm, "one")
		}),
	}})
}

// In a replay in virtual time a delay passes for the code that asks the row for the time, and for that which asks the
// process.
func TestBothTimesPassInReplays(t *testing.T) {
	t.Parallel()
	runNodes(t, cmNodes{"row": {
		Resource: settings.Object(), VirtualTime: true, Now: time.Unix(1000, 0),
		Fault: rtesting.DiesAfter("create ConfigMap default/late"),
		Prepare: func(_ *testing.T, ctx context.Context, tc *cmCase) (context.Context, error) {
			began := time.Now()
			late := waits(time.Hour)
			tc.Metadata = map[string]any{"node": node[*corev1.ConfigMap]{
				reconcile: func(ctx context.Context, cm *corev1.ConfigMap) (reconcilers.Result, error) {
					result, err := late.Reconcile(ctx, cm)
					if slept := time.Since(began); result.RequeueAfter == 0 && slept.Truncate(time.Minute) != time.Hour {
						return result, fmt.Errorf("%s passed", slept)
					}
					return result, err
				},
			}}
			return ctx, nil
		},
		ExpectedResult: reconcilers.Result{RequeueAfter: time.Hour},
	}})
}

// A resource that is gone calls for nothing.
func TestRestOfAResourceThatIsGone(t *testing.T) {
	t.Parallel()
	leaving := settings.With(func(c *corev1.ConfigMap) {
		c.Finalizers = []string{"example.com/done"}
		c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	})
	runNodes(t, cmNodes{"row": {
		Resource: leaving.Object(),
		Until:    rtesting.Rest(),
		Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
			before := cm.DeepCopy()
			cm.Finalizers = nil
			return reconcilers.RetrieveConfigOrDie(ctx).Patch(ctx, cm, client.MergeFrom(before))
		}),
		ExpectResource: leaving.With(func(c *corev1.ConfigMap) { c.Finalizers = nil }).Object(),
		ExpectPatches: []rtesting.PatchRef{{
			Kind: "ConfigMap", Namespace: "default", Name: "settings",
			PatchType: "application/merge-patch+json", Patch: []byte(`{"metadata":{"finalizers":null}}`),
		}},
	}})
}

// The resource of a root has its version beside an object of another kind with its name.
func TestVersionOfTheResourceOfARoot(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	rtesting.RootTests{"row": {
		Request: request, GivenObjects: []client.Object{secret, settings},
	}}.RunRoot(t, clientgoscheme.Scheme, func(c reconcilers.Config) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, r reconcilers.Request) (reconcilers.Result, error) {
			cm := &corev1.ConfigMap{}
			err := c.Get(ctx, r.NamespacedName, cm)
			if err == nil && cm.ResourceVersion != "999" {
				err = fmt.Errorf("got version %s", cm.ResourceVersion)
			}
			return reconcilers.Result{}, err
		})
	})
}

// A list by an indexed field is answered in each run of a row, over both servers in memory.
func TestGivenIndexes(t *testing.T) {
	t.Parallel()
	onNode := pod.With(func(p *corev1.Pod) { p.Spec.NodeName, p.Name = "node", "placed" })
	indexes := []rtesting.Index{{
		Object: &corev1.Pod{}, Field: "onNode",
		Extract: func(obj client.Object) []string { return []string{obj.(*corev1.Pod).Spec.NodeName} },
	}}
	row := cmCase{
		Resource:      settings.Object(),
		GivenObjects:  []client.Object{pod, onNode},
		GivenIndexes:  indexes,
		ExpectCreates: []client.Object{controlled(configMap("placed"))},
		AdditionalConfigs: map[string]rtesting.ExpectConfig{
			"remote": {GivenObjects: []client.Object{onNode}, GivenIndexes: indexes},
		},
		Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
			for _, c := range []client.Client{
				reconcilers.RetrieveConfigOrDie(ctx), reconcilers.RetrieveAdditionalConfigs(ctx)["remote"],
			} {
				pods := &corev1.PodList{}
				if err := c.List(ctx, pods, client.MatchingFields{"onNode": "node"}); err != nil {
					return err
				}
				if len(pods.Items) != 1 || pods.Items[0].Name != "placed" {
					return fmt.Errorf("got %v", pods.Items)
				}
			}
			return ensures(ctx, cm, "placed")
		}),
	}
	replayed := row
	replayed.Fault = rtesting.DiesAfter("create ConfigMap default/placed")
	runNodes(t, cmNodes{"passes": row, "is replayed": replayed})
	row.ExpectCreates, row.Metadata = nil, does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		pods := &corev1.PodList{}
		err := reconcilers.RetrieveConfigOrDie(ctx).List(ctx, pods, client.MatchingFields{"onNode": "node"})
		if err == nil && len(pods.Items) != 1 {
			err = fmt.Errorf("got %v", pods.Items)
		}
		return err
	})
	runNode(t, cmTests{"of a sub-reconciler": row})
}

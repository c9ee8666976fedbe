package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// generated is a node whose child has a generated name. So nothing but the node itself keeps it from having two.
func generated(process string) *childOfWidget {
	return &childOfWidget{
		DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: w.Name + "-"},
				Data:       map[string]string{"by": process, "image": w.Spec.Fields["image"]},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			// As many do, it drops the labels of others.
			current.Labels, current.Data = desired.Labels, desired.Data
		},
		ReflectChildStatusOnParent: func(_ context.Context, w *resources.Widget, child *corev1.ConfigMap, _ error) {
			w.Status.AddField("child", client.Object(child).GetName())
		},
	}
}

type childOfWidget = reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]

// waiting is a node that is not done with a terminating Widget in a request that has found a child.
type waiting struct{ node }

func (n waiting) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	exist, err := reconcilers.HaveChildren(ctx, reconcilers.Describe(n.node), w)
	if err != nil {
		return reconcilers.Result{}, err
	}
	result, err := n.node.Reconcile(ctx, w)
	if err == nil && exist && w.DeletionTimestamp != nil {
		err = reconcilers.ErrQuiet
	}
	return result, err
}

func (n waiting) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "Waiting", Nodes: []reconcilers.Description{reconcilers.Describe(n.node)}}
}

// guarded returns a node that keeps a Widget until its child is gone, by what the node finds.
func guarded(inner node) node {
	return &reconcilers.WithFinalizer[*resources.Widget]{Finalizer: finalizer, Reconciler: waiting{inner}}
}

func createWidget(t *testing.T, c client.Client, namespace, shard string) *resources.Widget {
	t.Helper()
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "w", Labels: map[string]string{shardLabel: shard},
	}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	return w
}

func setImage(t *testing.T, c client.Client, w *resources.Widget, image string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"fields":{"image":%q}}}`, image)
	if err := c.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

// onlyChild returns an error unless a Widget has one child, which a process made for an image. It reads the child.
func onlyChild(
	ctx context.Context, c client.Client, w *resources.Widget, child *corev1.ConfigMap, process, image string,
) error {
	children := &corev1.ConfigMapList{}
	if err := c.List(ctx, children, client.InNamespace(w.Namespace)); err != nil {
		return err
	}
	var own []corev1.ConfigMap
	for _, item := range children.Items {
		if metav1.IsControlledBy(&item, w) {
			own = append(own, item)
		}
	}
	if len(own) != 1 {
		return fmt.Errorf("the Widget has %d children, want one", len(own))
	}
	*child = own[0]
	if child.Data["by"] != process || child.Data["image"] != image {
		return fmt.Errorf("the child has %v, want it made by %s for %q", child.Data, process, image)
	}
	return nil
}

// A child with a generated name is not created twice, whichever shard the ring says it belongs to before, while and
// after its owner moves.
func TestAChildIsNotCreatedTwiceWhereverItIs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, during, after string }{
		"the child has no label":                {},
		"the child moves before the owner":      {before: "second", during: "second", after: "second"},
		"the child moves while the owner moves": {before: "first", during: "second", after: "second"},
		"the child moves after the owner":       {before: "first", during: "first", after: "second"},
		"the child is a third one's":            {before: "third", during: "third", after: "third"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, namespace := live(t), plane.Namespace(t)
			start(t, namespace, "first", generated("first"))
			start(t, namespace, "second", generated("second"))
			w, child := createWidget(t, c, namespace, "first"), &corev1.ConfigMap{}
			place := func(shard string) {
				if shard != "" {
					label(t, c, child, assigned(shard))
				}
			}
			is := func(process, image string) {
				t.Helper()
				controlplanetest.Eventually(t, "not reconciled", func(ctx context.Context) error {
					return onlyChild(ctx, c, w, child, process, image)
				})
			}
			is("first", "")
			place(test.before)
			setImage(t, c, w, "1")
			is("first", "1")
			label(t, c, w, fmt.Sprintf(`{%q:"true"}`, drainLabel))
			place(test.during)
			controlplanetest.Eventually(t, "the Widget is not given back", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil || len(w.Labels) == 0 {
					return err
				}
				return fmt.Errorf("it has the labels %v", w.Labels)
			})
			label(t, c, w, assigned("second"))
			is("second", "1")
			place(test.after)
			setImage(t, c, w, "2")
			is("second", "2")
			if child.Labels[shardLabel] != test.after {
				t.Errorf("the child has the label %q of a shard, want %q, as the ring has set it",
					child.Labels[shardLabel], test.after)
			}
		})
	}
}

// A finalizer stays while there is a child that the cache of the shard does not show.
func TestAFinalizerStaysForAChildThatIsHidden(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]string{"nobody's": "", "another's": "second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, namespace := live(t), plane.Namespace(t)
			start(t, namespace, "first", guarded(generated("first")))
			w, child := createWidget(t, c, namespace, "first"), &corev1.ConfigMap{}
			controlplanetest.Eventually(t, "not reconciled", func(ctx context.Context) error {
				return onlyChild(ctx, c, w, child, "first", "")
			})
			// Somebody else keeps the child.
			keep := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["test.espalier.dev/keep"]}}`))
			if err := c.Patch(t.Context(), child, keep); err != nil {
				t.Fatal(err)
			}
			if where != "" {
				label(t, c, child, assigned(where))
			}
			if err := c.Delete(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			controlplanetest.Eventually(t, "the child is not deleted", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil || child.DeletionTimestamp != nil {
					return err
				}
				return errors.New("the ConfigMap has no deletion timestamp")
			})
			setImage(t, c, w, "woken")
			controlplanetest.Eventually(t, "the Widget was not woken", func(ctx context.Context) error {
				return c.Get(ctx, client.ObjectKeyFromObject(w), w)
			})
			if len(w.Finalizers) == 0 {
				t.Error("the finalizer is gone while the child is there, want it to stay")
			}
			// The ring gives it back to the shard, and then it goes.
			label(t, c, child, assigned("first"))
			free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
			if err := c.Patch(t.Context(), child, free); err != nil {
				t.Fatal(err)
			}
			controlplanetest.Eventually(t, "the Widget does not go", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
					return client.IgnoreNotFound(err)
				}
				return fmt.Errorf("it has the finalizers %v", w.Finalizers)
			})
		})
	}
}

// What needs a leader and is not sharded would run in each process.
func TestAManagerOfAShardRefusesWhatIsNotSharded(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	p := start(t, namespace, "one", made("one"))
	runs := manager.RunnableFunc(func(context.Context) error { return nil })
	if err := p.manager.Add(runs); err == nil || !strings.Contains(err.Error(), "needs a leader") {
		t.Errorf("a runnable that needs a leader gives the error %v, want that it needs one", err)
	}
	if err := p.manager.Add(everywhere{runs}); err != nil {
		t.Errorf("a runnable that needs no leader gives the error %v, want none", err)
	}
	unsharded := tree(made("one"))(p.config.WithShard(nil))
	unsharded.ControllerName = "other"
	if err := unsharded.SetupWithManager(t.Context(), p.manager); err == nil || !strings.Contains(err.Error(), "WithShard") {
		t.Errorf("a root without the option gives the error %v, want one that names WithShard", err)
	}
}

// What cannot be sharded is not admitted because it runs in each process, whatever its config.
func TestAManagerOfAShardRefusesWhatCannotBeSharded(t *testing.T) {
	t.Parallel()
	p := start(t, plane.Namespace(t), "one", made("one"))
	everywhere := func(bldr *reconcilers.Builder) *reconcilers.Builder {
		return bldr.WithOptions(controller.Options{NeedLeaderElection: new(false)})
	}
	config := p.config.WithShard(nil)
	embedded := reconcilers.Embed(config, made("one"))
	aggregate := &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
		Config: config, Request: reconcilers.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "summary"}},
		Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{},
		Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			everywhere(bldr)
			return nil
		},
		AggregateObjectManager: &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		},
	}
	for name, err := range map[string]error{
		"a hand-written reconciler": embedded.SetupWithManager(t.Context(), p.manager,
			everywhere(ctrl.NewControllerManagedBy(p.manager).For(&resources.Widget{}))),
		"one object": aggregate.SetupWithManager(t.Context(), p.manager),
	} {
		if err == nil || !strings.Contains(err.Error(), "cannot be sharded") {
			t.Errorf("%s: the set-up gives the error %v, want that it cannot be sharded", name, err)
		}
	}
}

// A root that the ring does not know would see a part of what it reads, or share resources with another.
func TestARootThatHasNotJoinedIsRefused(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	p := start(t, namespace, "one", made("one"))
	again := tree(made("one"))(p.config)
	again.ControllerName = "again"
	another := &reconcilers.ResourceReconciler[*corev1.Secret]{Config: p.config, Reconciler: reconcilers.Sequence[*corev1.Secret]{}}
	for name, root := range map[string]interface {
		SetupWithManager(ctx context.Context, mgr reconcilers.Manager) error
	}{"a type that the ring does not share": another, "another root for one type": again} {
		if err := root.SetupWithManager(t.Context(), p.manager); err == nil || !strings.Contains(err.Error(), "Join") {
			t.Errorf("%s: the set-up gives the error %v, want one that names Join", name, err)
		}
	}
}

// everywhere runs in each process.
type everywhere struct{ manager.Runnable }

func (everywhere) NeedLeaderElection() bool { return false }

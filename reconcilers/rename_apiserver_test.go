package reconcilers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// setName changes the name that is desired of the child.
func setName(t *testing.T, c client.Client, w *resources.Widget, name string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"fields":{"name":%q}}}`, name))
	if err := c.Patch(t.Context(), w, patch); err != nil {
		t.Fatal(err)
	}
}

// areNamed returns an error unless the objects of the list that the widget controls have these names.
func areNamed(ctx context.Context, c client.Client, w *resources.Widget, list client.ObjectList, want ...string) error {
	if err := c.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
		return err
	}
	var names []string
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if obj := item.(client.Object); metav1.IsControlledBy(obj, w) && obj.GetDeletionTimestamp() == nil {
			names = append(names, obj.GetName())
		}
		return nil
	})
	if slices.Sort(names); err == nil && !slices.Equal(names, want) {
		return fmt.Errorf("there are %v, want %v", names, want)
	}
	return err
}

func healthy[T client.Object](_ context.Context, child T) bool {
	return health.Healthy(health.Of(child).State)
}

func TestConfigMapIsRenamed(t *testing.T) {
	t.Parallel()
	c := live(t)
	node := configMapChild("a")
	node.Renaming, node.ChildIsReady = reconcilers.ByKind, healthy
	desired := node.DesiredChild
	node.DesiredChild = func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		child, err := desired(ctx, w)
		child.Name = "config-x" + w.Spec.Fields["name"]
		return child, err
	}
	op, roots := startOperator(t, treeOf(node))
	w := op.createWidget(t, c)
	for _, name := range []string{"1", "2", "3", "2"} {
		setName(t, c, w, name)
		eventually(t, "not renamed", func(ctx context.Context) error {
			return areNamed(ctx, c, w, &corev1.ConfigMapList{}, "config-x"+name)
		})
	}
	reconcileSteadily(t, op, roots[0], w)
}

// A release of an operator without a Renaming deletes what it finds of two names, and makes its own.
func TestTwoNamesWithoutARenaming(t *testing.T) {
	t.Parallel()
	c := live(t)
	node := configMapChild("a")
	op, _ := startOperator(t, treeOf(node))
	w := op.createWidget(t, c)
	key := client.ObjectKey{Namespace: w.Namespace, Name: w.Name + "-a"}
	first := &corev1.ConfigMap{}
	eventually(t, "there is no child", func(ctx context.Context) error { return c.Get(ctx, key, first) })
	second := first.DeepCopy()
	second.ResourceVersion, second.UID, second.Name = "", "", "another"
	if err := c.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not made anew", func(ctx context.Context) error {
		if err := areNamed(ctx, c, w, &corev1.ConfigMapList{}, key.Name); err != nil {
			return err
		}
		child := &corev1.ConfigMap{}
		if err := c.Get(ctx, key, child); err != nil || child.UID == first.UID {
			return fmt.Errorf("the child is that of before (%v)", err)
		}
		return nil
	})
}

// A Deployment is ready when its status says so, and only then the one of the name before goes.
func TestDeploymentIsRenamed(t *testing.T) {
	t.Parallel()
	c := live(t)
	node := deploymentChild()
	node.Renaming, node.ChildIsReady = reconcilers.ByKind, healthy
	desired := node.DesiredChild
	node.DesiredChild = func(ctx context.Context, w *resources.Widget) (*appsv1.Deployment, error) {
		child, err := desired(ctx, w)
		child.Name = "app-x" + w.Spec.Fields["name"]
		return child, err
	}
	op, roots := startOperator(t, treeOf(node))
	w := op.createWidget(t, c)
	are := func(names ...string) {
		t.Helper()
		eventually(t, "not so", func(ctx context.Context) error { return areNamed(ctx, c, w, &appsv1.DeploymentList{}, names...) })
	}
	rollOut := func(name string) {
		t.Helper()
		eventually(t, "not rolled out", func(ctx context.Context) error {
			child := &appsv1.Deployment{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, child); err != nil {
				return err
			}
			child.Status = appsv1.DeploymentStatus{
				ObservedGeneration: child.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
				Conditions: []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
				},
			}
			return c.Status().Update(ctx, child)
		})
	}
	are("app-x")
	setName(t, c, w, "1")
	are("app-x", "app-x1")
	rollOut("app-x1")
	are("app-x1")
	setName(t, c, w, "2")
	are("app-x1", "app-x2")
	reconcileSteadily(t, op, roots[0], w)
	are("app-x1", "app-x2")
	// A rollback in the middle: the name before is desired again, and it is ready.
	setName(t, c, w, "1")
	are("app-x1")
	setName(t, c, w, "2")
	are("app-x1", "app-x2")
	setName(t, c, w, "3")
	are("app-x1", "app-x3")
	rollOut("app-x3")
	are("app-x3")
	reconcileSteadily(t, op, roots[0], w)
}

// The name of what holds data is not followed, but what else is desired is.
func TestVolumeClaimIsNotRenamed(t *testing.T) {
	t.Parallel()
	c := live(t)
	node := &reconcilers.ChildReconciler[*resources.Widget, *corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList]{
		DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.PersistentVolumeClaim, error) {
			return &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: w.Namespace, Name: "data-x" + w.Spec.Fields["name"],
					Labels: map[string]string{"name": w.Spec.Fields["name"]},
				},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}, nil
		},
		ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.PersistentVolumeClaim]{FieldManager: "test"},
		Renaming:           reconcilers.ByKind,
		ChildIsReady:       healthy[*corev1.PersistentVolumeClaim],
		ReflectChildStatusOnParent: func(ctx context.Context, w *resources.Widget, child *corev1.PersistentVolumeClaim, err error) {
			if err != nil {
				w.Status.MarkChildNotReady(ctx, "Failed", child.Name+": "+err.Error())
				return
			}
			w.Status.MarkChildReady(ctx)
		},
	}
	op, roots := startOperator(t, treeOf(node))
	w := op.createWidget(t, c)
	eventually(t, "not ready", func(ctx context.Context) error { return isReady(ctx, c, w) })
	setName(t, c, w, "new")
	eventually(t, "not refused", func(ctx context.Context) error {
		return childMessage(ctx, c, w, "data-x: PersistentVolumeClaim "+w.Namespace+"/data-xnew is not created, since "+
			"PersistentVolumeClaim "+w.Namespace+"/data-x exists, may hold data")
	})
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "data-x"}, claim); err != nil || claim.Labels["name"] != "new" {
		t.Errorf("the claim has the labels %v (%v), want them as desired", claim.Labels, err)
	}
	if err := areNamed(t.Context(), c, w, &corev1.PersistentVolumeClaimList{}, "data-x"); err != nil {
		t.Error(err)
	}
	reconcileSteadily(t, op, roots[0], w)
	setName(t, c, w, "")
	eventually(t, "not ready again", func(ctx context.Context) error { return isReady(ctx, c, w) })
}

package controllers_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// TestGarbage deletes an owner of an owner by each policy.
func TestGarbage(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		t.Run(string(policy), func(t *testing.T) {
			run(t, controllers.Options{}, func(c cluster) {
				owner := configMap("owner")
				c.create(owner)
				child := configMap("child", owner)
				child.Finalizers = []string{"example.com/wait"}
				c.create(child)
				grandchild := configMap("grandchild", child)
				c.create(grandchild)
				c.must(c.Delete(c.ctx, owner, client.PropagationPolicy(policy)))
				time.Sleep(time.Second)
				c.get(child)
				if policy == metav1.DeletePropagationOrphan {
					c.gone(owner)
					if len(child.OwnerReferences) > 0 || child.DeletionTimestamp != nil {
						c.Errorf("the child is %v", child.ObjectMeta)
					}
					c.get(grandchild)
					c.idle()
					return
				}
				if policy == metav1.DeletePropagationForeground {
					c.get(owner)
				} else {
					c.gone(owner)
				}
				c.idle()
				c.get(child)
				child.Finalizers = nil
				c.must(client.IgnoreNotFound(c.Update(c.ctx, child)))
				time.Sleep(time.Second)
				c.gone(owner, child, grandchild)
			})
		})
	}
}

// TestOrphanOfSeveral deletes an owner of several objects, one of which has another owner, so that they stay.
func TestOrphanOfSeveral(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		owner, other := configMap("owner"), configMap("other")
		owner.Finalizers = []string{"example.com/wait"}
		c.create(owner)
		c.create(other)
		one, two, both := configMap("one", owner), configMap("two", owner), configMap("both", owner, other)
		both.OwnerReferences[1].Controller = ptr.To(false)
		for _, obj := range []client.Object{one, two, both} {
			c.create(obj)
		}
		c.must(c.Delete(c.ctx, owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		c.get(owner)
		if want := []string{"example.com/wait", metav1.FinalizerOrphanDependents}; !slices.Equal(owner.Finalizers, want) {
			c.Errorf("the finalizers of the owner are %v, want %v", owner.Finalizers, want)
		}
		time.Sleep(time.Second)
		c.get(owner)
		if want := []string{"example.com/wait"}; !slices.Equal(owner.Finalizers, want) {
			c.Errorf("the finalizers of the owner are %v, want %v", owner.Finalizers, want)
		}
		owner.Finalizers = nil
		c.must(client.IgnoreNotFound(c.Update(c.ctx, owner)))
		time.Sleep(time.Minute)
		c.gone(owner)
		for _, obj := range []*corev1.ConfigMap{one, two} {
			c.get(obj)
			if len(obj.OwnerReferences) > 0 || obj.DeletionTimestamp != nil {
				c.Errorf("the owners of %s are %v, want none", obj.Name, obj.OwnerReferences)
			}
		}
		c.get(both)
		if len(both.OwnerReferences) != 1 || both.OwnerReferences[0].Name != "other" || both.DeletionTimestamp != nil {
			c.Errorf("the owners of both are %v, want other alone", both.OwnerReferences)
		}
		c.idle()
	})
}

// TestGarbageReferences has references to owners that are not there, each of another kind.
func TestGarbageReferences(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		owner := configMap("owner")
		c.create(owner)
		other := configMap("other")
		c.create(other)
		elsewhere := configMap("elsewhere", owner)
		elsewhere.Namespace = "kube-public"
		wrong := configMap("wrong", owner)
		wrong.OwnerReferences[0].UID = "other"
		unknown := configMap("unknown", owner)
		unknown.OwnerReferences[0].APIVersion = "example.com/v1"
		cluster := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "cluster", OwnerReferences: wrong.OwnerReferences},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: gigabytes(1), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/data"},
				},
			},
		}
		both := configMap("both", owner, other)
		both.OwnerReferences[1].Controller = ptr.To(false)
		for _, obj := range []client.Object{elsewhere, wrong, unknown, cluster, both} {
			c.create(obj)
		}
		c.must(c.Delete(c.ctx, other))
		time.Sleep(time.Second)
		c.gone(elsewhere, wrong)
		c.get(unknown)
		c.get(cluster)
		c.get(both)
		if len(both.OwnerReferences) != 1 || both.OwnerReferences[0].Name != "owner" {
			c.Errorf("the owners are %v", both.OwnerReferences)
		}
	})
}

// TestGarbageOfDefinition deletes an owner of a kind that was defined after the start, and the definition.
func TestGarbageOfDefinition(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		definition := widgets()
		c.create(definition)
		time.Sleep(time.Second)
		owner, second := widget("a"), widget("b")
		c.create(owner)
		c.create(second)
		child, orphan := configMap("child", owner), configMap("orphan", second)
		c.create(child)
		c.create(orphan)
		c.must(c.Delete(c.ctx, owner))
		time.Sleep(time.Minute)
		c.gone(owner, child)
		c.get(orphan)
		c.must(c.Delete(c.ctx, definition))
		time.Sleep(time.Minute)
		if err := c.Get(c.ctx, client.ObjectKeyFromObject(definition), definition); !apierrors.IsNotFound(err) {
			c.Errorf("the definition is %v, %v", definition.Status, err)
		}
		c.idle()
	})
}

package sharder_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
)

const (
	// inScene is a label of all objects of a scene.
	inScene = "espalier.dev/in-scene"
	// held is the holder of a Lease that its shard holds.
	held = "itself"
)

// ring returns a ring with main resources in namespaces and in none.
func (s *scene) ring() client.Object {
	s.Helper()
	in := func(group, resource string) metav1.GroupResource {
		return metav1.GroupResource{Group: group, Resource: resource}
	}
	obj, err := sharder.Ring{Name: ring, Spec: sharder.RingSpec{Resources: []sharder.RingResource{
		{GroupResource: in("", "configmaps"), ControlledResources: []metav1.GroupResource{in("", "secrets")}},
		{
			GroupResource:       in(rbacv1.GroupName, "clusterroles"),
			ControlledResources: []metav1.GroupResource{in(rbacv1.GroupName, "roles")},
		},
	}}}.Object()
	if err != nil {
		s.Fatal(err)
	}
	return obj
}

// lease has the Lease of a shard be of a holder, for an hour since it was renewed.
func (s *scene) lease(shard, holder string, renewed time.Duration) {
	s.Helper()
	if holder == held {
		holder = shard
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "team-1", Name: shard}}
	_, err := controllerutil.CreateOrPatch(s.Context(), s.Client, lease, func() error {
		if lease.Labels == nil {
			lease.Labels = map[string]string{sharder.RingLabel: ring, inScene: ""}
		}
		at := metav1.NewMicroTime(time.Now().Add(-renewed))
		lease.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(3600)), AcquireTime: &at, RenewTime: &at,
		}
		return nil
	})
	if err != nil {
		s.Fatalf("write Lease %s: %v", shard, err)
	}
	if holder != shard || renewed > 0 {
		return
	}
	// Whoever is asked next knows the shard.
	controlplanetest.Eventually(s, "the sharder sees "+shard, func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil || !s.ringExists(ctx) {
			return err
		}
		if state := lease.Labels[sharder.StateLabel]; state != "ready" {
			return fmt.Errorf("the label says %q", state)
		}
		return nil
	})
}

// ringExists reports whether there is a ring. Without it the sharder does nothing.
func (s *scene) ringExists(ctx context.Context) bool {
	return s.Get(ctx, client.ObjectKey{Name: ring}, s.ring()) == nil
}

// awaitWebhook waits until the API server calls the webhook.
func (s *scene) awaitWebhook() {
	s.Helper()
	controlplanetest.Eventually(s, "the webhook is called", func(ctx context.Context) error {
		obj := mapOf("team-2", "tried")
		if err := s.Create(ctx, obj, client.DryRunAll); err != nil {
			return err
		}
		if obj.Labels[sharder.ShardLabel(ring)] == "" {
			return errors.New("an object has no shard")
		}
		return nil
	})
}

func mapOf(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// makeAll makes objects of each kind, with and without a controller, and where nothing is assigned.
func (s *scene) makeAll() {
	s.Helper()
	for i := range 8 {
		owner := mapOf(fmt.Sprintf("team-%d", 1+i%2), fmt.Sprintf("main-%d", i))
		s.make(owner)
		child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: "child-of-" + owner.Name}}
		s.own(owner, child)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("wide-%d", i)}}
		s.make(role)
		s.own(role, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "team-1", Name: "child-of-" + role.Name}})
	}
	s.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-1", Name: "without-controller"}})
	s.make(mapOf(metav1.NamespaceSystem, "excluded"))
}

// own makes an object with a controller.
func (s *scene) own(owner, obj client.Object) {
	s.Helper()
	if err := controllerutil.SetControllerReference(owner, obj, scheme.Scheme); err != nil {
		s.Fatal(err)
	}
	s.make(obj)
}

// make makes an object.
func (s *scene) make(obj client.Object) {
	s.Helper()
	obj.SetLabels(map[string]string{inScene: ""})
	if err := s.Create(s.Context(), obj); err != nil {
		s.Fatalf("make %s: %v", obj.GetName(), err)
	}
}

// refuse fails the test unless the webhook refuses an object.
func (s *scene) refuse(what string, obj client.Object) {
	s.Helper()
	const reason = "generateName is not supported"
	if err := s.Create(s.Context(), obj); err == nil || !strings.Contains(err.Error(), reason) {
		s.Errorf("%s: the error is %v, want one with %q", what, err, reason)
	}
}

// giveBack takes the labels off all objects that were asked for, as shards do.
func (s *scene) giveBack() {
	s.Helper()
	for _, list := range kinds() {
		if err := s.List(s.Context(), list, client.HasLabels{sharder.DrainLabel(ring)}); err != nil {
			s.Fatal(err)
		}
		for _, obj := range objects(list) {
			asked := obj.DeepCopyObject().(client.Object)
			labels := obj.GetLabels()
			delete(labels, sharder.ShardLabel(ring))
			delete(labels, sharder.DrainLabel(ring))
			patch := client.MergeFromWithOptions(asked, client.MergeFromWithOptimisticLock{})
			if err := s.Patch(s.Context(), obj, patch); err != nil {
				s.Fatalf("give back %s: %v", obj.GetName(), err)
			}
		}
	}
}

// objects returns the items of a list.
func objects(list client.ObjectList) []client.Object {
	var all []client.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		all = append(all, item.(client.Object))
		return nil
	})
	return all
}

// named returns the kind, namespace and name of an object.
func named(obj client.Object) string {
	kind, err := apiutil.GVKForObject(obj, scheme.Scheme)
	if err != nil {
		return err.Error()
	}
	return kind.Kind + " " + client.ObjectKeyFromObject(obj).String()
}

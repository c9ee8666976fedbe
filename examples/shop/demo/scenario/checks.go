package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
)

// areReady holds when the sharder takes the replicas for ready, by their Leases.
func (s *scenario) areReady(replicas ...string) demo.Condition {
	return func(ctx context.Context) error {
		for _, name := range replicas {
			lease := &coordinationv1.Lease{}
			if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, lease); err != nil {
				return err
			}
			if state := lease.Labels[sharder.StateLabel]; state != string(sharder.Ready) {
				return fmt.Errorf("the Lease of %s is %q", name, state)
			}
		}
		return nil
	}
}

// placement has the replica of each shop.
type placement map[string]string

// lines returns a line for each replica. It marks the shops that were another's before.
func (p placement) lines(before placement) string {
	shops := map[string][]string{}
	for _, shop := range slices.Sorted(maps.Keys(p)) {
		name := strings.TrimPrefix(shop, "shop-")
		if was, ok := before[shop]; ok && was != p[shop] {
			name = "→" + name
		}
		shops[p[shop]] = append(shops[p[shop]], name)
	}
	var out strings.Builder
	for _, replica := range slices.Sorted(maps.Keys(shops)) {
		fmt.Fprintf(&out, "%s: %s\n", replica, strings.Join(shops[replica], " "))
	}
	return out.String()
}

func (s *scenario) showPlaced() string { return s.placed.lines(s.before) }

// belongTo holds when each shop belongs to one of the replicas, none is to move, and each replica has one.
func (s *scenario) belongTo(replicas ...string) demo.Condition {
	return func(ctx context.Context) error {
		list := &v1.ShopList{}
		if err := s.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) != count {
			return fmt.Errorf("there are %d shops, not %d", len(list.Items), count)
		}
		found, have := placement{}, map[string]bool{}
		for _, shop := range list.Items {
			replica := shop.Labels[sharder.ShardLabel(ring)]
			if _, drains := shop.Labels[sharder.DrainLabel(ring)]; drains || !slices.Contains(replicas, replica) {
				return fmt.Errorf("%s belongs to %q, and is to move: %t", shop.Name, replica, drains)
			}
			found[shop.Name], have[replica] = replica, true
		}
		if len(have) != len(replicas) {
			return fmt.Errorf("only %s have shops", slices.Sorted(maps.Keys(have)))
		}
		s.placed = found
		return nil
	}
}

// listChildren returns the Deployments and Services of the shops.
func (s *scenario) listChildren(ctx context.Context) ([]client.Object, error) {
	deployments, services := &appsv1.DeploymentList{}, &corev1.ServiceList{}
	for _, list := range []client.ObjectList{deployments, services} {
		if err := s.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	var found []client.Object
	for i := range deployments.Items {
		found = append(found, &deployments.Items[i])
	}
	for i := range services.Items {
		found = append(found, &services.Items[i])
	}
	if len(found) != children {
		return nil, fmt.Errorf("there are %d children, not %d", len(found), children)
	}
	return found, nil
}

// haveChildren holds when each shop was reconciled as it is, and its Deployment has the image.
func (s *scenario) haveChildren(image string) demo.Condition {
	return func(ctx context.Context) error {
		found, err := s.listChildren(ctx)
		if err != nil {
			return err
		}
		for _, obj := range found {
			deployment, ok := obj.(*appsv1.Deployment)
			if ok && deployment.Spec.Template.Spec.Containers[0].Image != image {
				return fmt.Errorf("the Deployment %s does not have the image %s", deployment.Name, image)
			}
		}
		list := &v1.ShopList{}
		if err := s.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, shop := range list.Items {
			if shop.Spec.Image != image || shop.Status.ObservedGeneration != shop.Generation {
				return fmt.Errorf("%s was not reconciled", shop.Name)
			}
		}
		return nil
	}
}

// areRemembered holds when the children are those that were remembered, and no others.
func (s *scenario) areRemembered(ctx context.Context) error {
	found, err := s.listChildren(ctx)
	if err != nil {
		return err
	}
	for _, obj := range found {
		if !s.remembered[obj.GetUID()] {
			return fmt.Errorf("the %T %s is another one than before", obj, obj.GetName())
		}
	}
	return nil
}

// remember notes which children there are, for areRemembered.
func (s *scenario) remember(ctx context.Context) error {
	found, err := s.listChildren(ctx)
	if err != nil {
		return err
	}
	s.remembered = map[types.UID]bool{}
	for _, obj := range found {
		s.remembered[obj.GetUID()] = true
	}
	return nil
}

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
func (s *replicas) areReady(names ...string) demo.Condition {
	var ready []demo.Condition
	for _, name := range names {
		lease := demo.Named[coordinationv1.Lease](namespace, name)
		ready = append(ready, demo.Finds(s.Fixture, lease, func(found *coordinationv1.Lease) error {
			if state := found.Labels[sharder.StateLabel]; state != string(sharder.Ready) {
				return fmt.Errorf("the Lease of %s is %q", name, state)
			}
			return nil
		}))
	}
	return demo.All(ready...)
}

// lines returns a line for each replica, with its shops. It marks those that were another's in the step before.
func (s *replicas) lines() string {
	shops := map[string][]string{}
	for _, shop := range slices.Sorted(maps.Keys(s.placed)) {
		name, replica := strings.TrimPrefix(shop, "shop-"), s.placed[shop]
		if was, ok := s.before[shop]; ok && was != replica {
			name = "→" + name
		}
		shops[replica] = append(shops[replica], name)
	}
	s.before = s.placed
	var out strings.Builder
	for _, replica := range slices.Sorted(maps.Keys(shops)) {
		fmt.Fprintf(&out, "%s: %s\n", replica, strings.Join(shops[replica], " "))
	}
	return out.String()
}

// list returns the shops.
func (s *replicas) list(ctx context.Context) ([]v1.Shop, error) {
	list := &v1.ShopList{}
	if err := s.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	if len(list.Items) != count {
		return nil, fmt.Errorf("there are %d shops, not %d", len(list.Items), count)
	}
	return list.Items, nil
}

// belongTo holds when each shop belongs to one of the replicas, none is to move, and each replica has a shop.
func (s *replicas) belongTo(names ...string) demo.Condition {
	return func(ctx context.Context) error {
		shops, err := s.list(ctx)
		if err != nil {
			return err
		}
		found, have := map[string]string{}, map[string]bool{}
		for _, shop := range shops {
			replica := shop.Labels[sharder.ShardLabel(ring)]
			if _, drains := shop.Labels[sharder.DrainLabel(ring)]; drains || !slices.Contains(names, replica) {
				return fmt.Errorf("%s belongs to %q, and is to move: %t", shop.Name, replica, drains)
			}
			found[shop.Name], have[replica] = replica, true
		}
		if len(have) != len(names) {
			return fmt.Errorf("only %s have shops", slices.Sorted(maps.Keys(have)))
		}
		s.placed = found
		return nil
	}
}

// listChildren returns the images of the Deployments of the shops, and the UIDs of these and of the Services.
func (s *replicas) listChildren(ctx context.Context) (images []string, uids map[types.UID]bool, err error) {
	deployments, services := &appsv1.DeploymentList{}, &corev1.ServiceList{}
	for _, list := range []client.ObjectList{deployments, services} {
		if err := s.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, nil, err
		}
	}
	uids = map[types.UID]bool{}
	for _, deployment := range deployments.Items {
		images = append(images, deployment.Spec.Template.Spec.Containers[0].Image)
		uids[deployment.UID] = true
	}
	for _, service := range services.Items {
		uids[service.UID] = true
	}
	if len(uids) != children {
		return nil, nil, fmt.Errorf("there are %d children, not %d", len(uids), children)
	}
	return images, uids, nil
}

// haveChildren holds when each shop was reconciled as it is, and its Deployment has the image.
func (s *replicas) haveChildren(image string) demo.Condition {
	return func(ctx context.Context) error {
		images, _, err := s.listChildren(ctx)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(images, func(found string) bool { return found != image }); i >= 0 {
			return fmt.Errorf("a Deployment has the image %s, not %s", images[i], image)
		}
		shops, err := s.list(ctx)
		if err != nil {
			return err
		}
		for _, shop := range shops {
			if shop.Spec.Image != image || shop.Status.ObservedGeneration != shop.Generation {
				return fmt.Errorf("%s was not reconciled", shop.Name)
			}
		}
		return nil
	}
}

// remembers notes which children there are, for areRemembered.
func (s *replicas) remembers(ctx context.Context) (err error) {
	_, s.remembered, err = s.listChildren(ctx)
	return err
}

// areRemembered holds when the children are those that were remembered, and no others.
func (s *replicas) areRemembered(ctx context.Context) error {
	_, uids, err := s.listChildren(ctx)
	if err == nil && !maps.Equal(uids, s.remembered) {
		err = fmt.Errorf("the children are %v, not %v", slices.Collect(maps.Keys(uids)), s.remembered)
	}
	return err
}

// hostsAreFree holds when no host is registered.
func (s *replicas) hostsAreFree(context.Context) error {
	for _, shop := range shops() {
		owner := client.ObjectKeyFromObject(shop).String()
		if host := s.hosts.HostOf(owner); host != "" {
			return fmt.Errorf("the host %s is still that of %s", host, owner)
		}
	}
	return nil
}

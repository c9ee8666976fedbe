package scenario

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

const (
	// count is the number of shops, and children that of their Deployments and Services.
	count, children = 12, 24

	image, newImage = "example.com/shop:1", "example.com/shop:2"

	one, two, three = "replica-1", "replica-2", "replica-3"
)

// newShop returns one of the shops. It has no pods, so that nothing has to run in the cluster.
func newShop(i int) *v1.Shop {
	name := fmt.Sprintf("shop-%02d", i)
	return &v1.Shop{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1.ShopSpec{Image: image, Host: name + ".example.com"},
	}
}

// shops returns new shops.
func shops() []client.Object {
	var all []client.Object
	for i := range count {
		all = append(all, newShop(i+1))
	}
	return all
}

// steps is the whole scenario.
func (s *scenario) steps() []demo.Step {
	return []demo.Step{
		{
			Title: "Two replicas of the operator start, and join a ring",
			Do: func(ctx context.Context) error {
				return errors.Join(s.startSharder(ctx), s.startReplica(ctx, one), s.startReplica(ctx, two))
			},
			Checks: []demo.Check{
				{Text: "each holds a Lease, so both work", Holds: s.areReady(one, two)},
			},
		},
		{
			Title: fmt.Sprintf("A user creates %d shops", count),
			Do:    func(ctx context.Context) error { return s.Create(ctx, shops()...) },
			Checks: []demo.Check{
				{Text: "each belongs to one replica", Holds: s.belongTo(one, two), Show: s.showPlaced},
				{Text: fmt.Sprintf("each was reconciled: %d children exist", children), Holds: s.haveChildren(image)},
			},
		},
		{
			Title: "A third replica joins",
			Do: func(ctx context.Context) error {
				s.before = s.placed
				return errors.Join(s.remember(ctx), s.startReplica(ctx, three))
			},
			Checks: []demo.Check{
				{Text: "it got shops (→) of the others", Holds: s.belongTo(one, two, three), Show: s.showPlaced},
			},
		},
		{
			Title: fmt.Sprintf("%s is killed: it does not release its Lease", two),
			Do: func(context.Context) error {
				s.before = s.placed
				s.replicas[two].kill()
				return nil
			},
			Checks: []demo.Check{
				{Text: "its Lease expires, and its shops (→) move", Holds: s.belongTo(one, three), Show: s.showPlaced},
			},
		},
		{
			Title: "The user asks for another image, in all shops",
			Do:    s.setImages,
			Checks: []demo.Check{
				{Text: "each was reconciled again", Holds: s.haveChildren(newImage)},
				{Text: fmt.Sprintf("the %d children are those of before: none was created twice", children),
					Holds: s.areRemembered},
			},
		},
		{
			Title: "The user deletes the shops",
			Do:    s.deleteShops,
			Checks: []demo.Check{
				{Text: "they are gone, and their hosts are free", Holds: demo.All(s.Gone(shops()...), s.hostsAreFree)},
			},
		},
	}
}

func (s *scenario) setImages(ctx context.Context) error {
	for _, shop := range shops() {
		if err := s.Patch(ctx, shop, fmt.Sprintf(`{"spec":{"image":%q}}`, newImage)); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) deleteShops(ctx context.Context) error {
	return s.Client.DeleteAllOf(ctx, &v1.Shop{}, client.InNamespace(namespace))
}

// hostsAreFree holds when no host is registered.
func (s *scenario) hostsAreFree(context.Context) error {
	for _, shop := range shops() {
		owner := client.ObjectKeyFromObject(shop).String()
		if host := s.hosts.HostOf(owner); host != "" {
			return fmt.Errorf("the host %s is still that of %s", host, owner)
		}
	}
	return nil
}

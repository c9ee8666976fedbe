package component_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delayed is a client whose creation of one object takes so long that something happens first, once.
type delayed struct {
	client.Client
	name   string
	before *func()
}

func (d delayed) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if before := *d.before; before != nil && obj.GetName() == d.name {
		*d.before = nil
		before()
	}
	return d.Client.Create(ctx, obj, opts...)
}

// settle makes as many requests as a rollout or a deletion may take. A conflict is expected, and so
// is that what is written is gone.
func (o *operated) settle(t *testing.T) {
	t.Helper()
	for range 8 {
		if _, err := o.reconcile(t, time.Minute); client.IgnoreNotFound(err) != nil && !apierrs.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

// TestCreationThatAnotherProcessDoesNotSee: a process creates an object while another one of the same operator, which
// has seen that the object is not wanted any more, finds none. No record of it is lost.
func TestCreationThatAnotherProcessDoesNotSee(t *testing.T) {
	remove := func(t *testing.T, o *operated) {
		if err := o.client.Delete(t.Context(), o.house(t)); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		finalizers []string
		change     func(t *testing.T, o *operated)
		stays      bool
	}{
		"deleted":           {change: remove},
		"deleted, not gone": {change: remove, finalizers: []string{"other.test/finalizer"}},
		"not desired anymore": {stays: true, change: func(t *testing.T, o *operated) {
			house := o.house(t)
			o.change(t, house, func() { house.SetObjects(partOf("default", "walls", "0")) })
		}},
	} {
		for kind, inventory := range map[string]component.Inventory{"status": {}, "Secret": {Kind: "Secret"}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				house, walls, roof := newHouse()
				house.Finalizers = test.finalizers
				node, other := assembling(), assembling()
				node.Inventory, other.Inventory = inventory, inventory
				o := newOperated(t, node, house, nil)
				second := *o
				second.root = component.NewComponentRoot(componentPrefix, nil,
					component.Options[*resources.Assembly]{Config: o.root.Config})
				second.root.Reconciler = other
				before := func() {
					test.change(t, o)
					second.settle(t)
				}
				o.root.Reconciler = &reconcilers.WithConfig[*resources.Assembly]{
					Reconciler: node,
					Config: func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) {
						c.Client = delayed{Client: c.Client, name: roof.Name, before: &before}
						return c, nil
					},
				}
				o.settle(t)
				second.settle(t)
				if before != nil {
					t.Fatal("the object was not created, want it created, or the test shows nothing")
				}
				for object, stays := range map[client.Object]bool{walls: test.stays, roof: false} {
					err := o.client.Get(t.Context(), client.ObjectKeyFromObject(object), &corev1.ConfigMap{})
					if client.IgnoreNotFound(err) != nil || (err == nil) != stays {
						t.Errorf("%s: the read ends with %v, want it to stay: %t", object.GetName(), err, stays)
					}
				}
				left := &corev1.SecretList{}
				if err := o.client.List(t.Context(), left); err != nil || !test.stays && len(left.Items) > 0 {
					t.Errorf("the Secrets are %v and the error is %v, want none", left.Items, err)
				}
			})
		}
	}
}

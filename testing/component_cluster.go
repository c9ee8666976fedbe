package testing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/run"
)

// cluster is the cluster in memory of a roll-out.
type cluster[Type client.Object] struct {
	run.Attempt
	rollout Rollout[Type]
	// unrecorded makes the calls of the config's client, and records nothing.
	unrecorded client.Client
	// key is the key of the resource. Given are the keys of the objects that were given beside it, and implied those of
	// the namespaces that exist besides.
	key            objects.Key
	given, implied []objects.Key
	// lastWrites are the writes of the last request, completing reports whether Complete changed an object after it.
	lastWrites []string
	completing bool
	// known is what the nodes know of the resource.
	known resourcestate.State
}

// newCluster returns an error if what is given cannot be stored.
func (r Rollout[Type]) newCluster(resource Type, given []client.Object) (*cluster[Type], error) {
	c := &cluster[Type]{rollout: r}
	c.key = c.keyOf(resource)
	if resource.GetUID() == "" {
		resource.SetUID(uidOf(c.key.Kind, resource))
	}
	c.Attempt = run.Given{
		Scheme:            r.Scheme,
		GivenObjects:      append(slices.Clone(given), resource),
		GivenAPIResources: r.GivenAPIResources,
		How: run.How{
			APIServer: true, PastCache: true, Reconciled: -1, Now: func() time.Time { return r.Now },
		},
	}.Start()
	c.unrecorded = c.Client.Client
	for _, obj := range given {
		c.given = append(c.given, c.keyOf(objects.Copy(obj)))
	}
	if len(c.Problems) > 0 {
		return nil, errors.New(strings.Join(c.Problems, "\n"))
	}
	for _, obj := range c.Store.Objects() {
		if key := c.keyOf(obj); key != c.key && !slices.Contains(c.given, key) {
			c.implied = append(c.implied, key)
		}
	}
	return c, nil
}

// keyOf panics for an object of no kind, which cannot have been given.
func (c *cluster[Type]) keyOf(obj client.Object) objects.Key {
	kind, err := objects.KindOf(obj, c.rollout.Scheme)
	if err != nil {
		panic(err)
	}
	return objects.NewKey(kind, client.ObjectKeyFromObject(obj))
}

// writes returns the writes that were made.
func (c *cluster[Type]) writes() []string { return c.Journal.Comparable(nil) }

// resource returns the resource as it is stored.
func (c *cluster[Type]) resource() (Type, error) {
	resource := objects.Copy(c.rollout.Resource)
	err := c.unrecorded.Get(context.Background(), c.key.NamespacedName, resource)
	return resource, err
}

// objects returns all objects but the resource: the given ones in their order, then the others by group, kind,
// namespace and name.
func (c *cluster[Type]) objects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var keys []objects.Key
	for _, obj := range c.Store.Objects() {
		if key := c.keyOf(obj); key != c.key && !slices.Contains(c.implied, key) {
			keys = append(keys, key)
		}
	}
	rank := func(key objects.Key) int {
		if i := slices.Index(c.given, key); i >= 0 {
			return i
		}
		return len(c.given)
	}
	slices.SortFunc(keys, func(a, b objects.Key) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	all := make([]*unstructured.Unstructured, len(keys))
	for i, key := range keys {
		all[i] = &unstructured.Unstructured{}
		all[i].SetGroupVersionKind(key.GroupVersionKind)
		if err := c.unrecorded.Get(ctx, key.NamespacedName, all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// rolledOut returns the state of the cluster.
func (c *cluster[Type]) rolledOut() (*RolledOut[Type], error) {
	resource, err := c.resource()
	if err != nil {
		return nil, fmt.Errorf("the resource is not there any more: %w", err)
	}
	// The node does not own fields of the resource that a row would have to know.
	resource.SetManagedFields(nil)
	d := &RolledOut[Type]{Fixture: NewFixture(resource), rollout: c.rollout}
	all, err := c.objects(context.Background())
	if err != nil {
		return nil, err
	}
	for _, obj := range all {
		d.objects = append(d.objects, c.typed(obj))
		if !slices.Contains(c.given, c.keyOf(obj)) {
			d.made = append(d.made, d.objects[len(d.objects)-1])
		}
	}
	return d, nil
}

// typed returns an object in its Go type of the scheme, or as it is if there is none.
func (c *cluster[Type]) typed(obj *unstructured.Unstructured) client.Object {
	made, err := c.rollout.Scheme.New(obj.GroupVersionKind())
	if err != nil {
		return obj
	}
	typed, ok := made.(client.Object)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed) != nil {
		return obj
	}
	return typed
}

// fatal ends the test. Without one, as in an example, it panics.
func fatal(t testing.TB, err error) {
	if t == nil {
		panic(err)
	}
	t.Helper()
	t.Fatal(err)
}

package reconcilers_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errLostAnswer = errors.New("the connection is lost")

// unreliable is a client whose next create has another outcome.
type unreliable struct {
	client.Client
	// next is called in the place of the next create. Nil: the create itself.
	next func(create func() error) error
}

func (u *unreliable) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	create := func() error { return u.Client.Create(ctx, obj, opts...) }
	next := u.next
	if u.next = nil; next == nil {
		return create()
	}
	return next(create)
}

// losesAnswer is a create whose answer is lost.
func losesAnswer(create func() error) error {
	if err := create(); err != nil {
		return err
	}
	return errLostAnswer
}

// losesRequest is a create that never arrives.
func losesRequest(func() error) error { return errLostAnswer }

// liveLists counts the lists of a reader.
type liveLists struct {
	client.Reader
	count int
}

func (l *liveLists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	l.count++
	return l.Reader.List(ctx, list, opts...)
}

// A create of a generated name may have an outcome that is not known. The API server would not refuse to create another
// object, and a cache that lags does not show the first one. So it is asked.
func TestACreateWithAnUnknownOutcomeIsNotRepeated(t *testing.T) {
	generated := func(change ...func(*configMapNode)) func(*trace) widgetNode {
		return changedChild(append(change, desires(generatedName))...)
	}
	set := func(calls *trace) widgetNode {
		node := reflectingSet(calls)
		node.DesiredChildren = func(context.Context, *resources.Widget) ([]*corev1.ConfigMap, error) {
			child := part("a")
			child.OwnerReferences, child.Name, child.GenerateName = nil, "", "gadget-"
			return []*corev1.ConfigMap{child}, nil
		}
		return node
	}
	refuses := func(func() error) error {
		return apierrs.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no quota"))
	}
	for name, test := range map[string]struct {
		node    func(*trace) widgetNode
		outcome func(create func() error) error
		// creates and lists are how many creates follow while the cache lags, and lists past it.
		creates, lists int
	}{
		"a child, the answer is lost":              {generated(), losesAnswer, 0, 3},
		"a child, the request is lost":             {generated(), losesRequest, 1, 1},
		"a child, it is refused":                   {generated(), refuses, 1, 0},
		"without an owner, the answer is lost":     {generated(withoutOwner), losesAnswer, 0, 3},
		"a set, the answer is lost":                {set, losesAnswer, 0, 3},
		"a name that is given, the answer is lost": {changedChild(), losesAnswer, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newStaleCluster(t, test.node)
			network := &unreliable{Client: cluster.root.Config.Client, next: test.outcome}
			live := &liveLists{Reader: cluster.root.Config.APIReader}
			cluster.root.Config.Client, cluster.root.Config.APIReader = network, live
			_, first := cluster.root.Reconcile(t.Context(), widgetRequest)
			if first == nil && test.lists > 0 {
				t.Fatal("the request with the lost create returned no error, want one")
			}
			cluster.calls.calls = nil

			for range 3 {
				_, _ = cluster.root.Reconcile(t.Context(), widgetRequest) // a given name may exist already
			}
			creates := len(slices.DeleteFunc(slices.Clone(cluster.calls.calls), func(call string) bool {
				return call != "create ConfigMap"
			}))
			if creates != test.creates || live.count != test.lists {
				t.Errorf("while the cache lags there are %d creates and %d lists past it, want %d and %d: %v", creates,
					live.count, test.creates, test.lists, cluster.calls.calls)
			}
			live.count = 0
			cluster.catchUp(t)
			for range 3 {
				if _, err := cluster.root.Reconcile(t.Context(), widgetRequest); err != nil {
					t.Errorf("the cache has caught up: returned %v, want no error", err)
				}
			}
			if n := len(cluster.children()); n != 1 || live.count > 0 {
				t.Errorf("there are %d children, and %d more lists past the cache; want 1 and none", n, live.count)
			}
		})
	}
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/internal/jsonmerge"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// ClientOptions configure a [Client].
type ClientOptions struct {
	// Scheme converts objects; nil is that of the store.
	Scheme *runtime.Scheme
	// FieldManager is the field manager of calls that name none. Empty is "espalier.test", except for an apply: an API
	// server refuses one without a field manager.
	FieldManager string
	// View is what reads see; nil sees everything at once, as an APIReader does.
	View *View
	// Indexes are the fields that the cache has indexed, by kind and name. With a View a list is selected by them
	// alone, as by the cache of controller-runtime. Without one an API server answers, except a selection by indexed
	// fields alone, which it would not know.
	Indexes map[schema.GroupKind]map[string]client.IndexerFunc
	// RefuseDropped refuses an update, and a patch other than an apply, of an object that changes nothing but a status
	// that is a subresource. An API server makes it, and drops the status.
	RefuseDropped bool
	// Intercept is called with each call in the place of making it; nil makes it. It may be called by several
	// goroutines at once.
	Intercept Intercept
}

// DefaultManager is the field manager of writes if neither the call nor the client says another.
const DefaultManager = "espalier.test"

// Client is a client of a [Store]. It makes each call by a client of controller-runtime, in the goroutine of its
// caller. What it adds are the cache that a [View] stands for, [Intercept], and that managed fields are left out.
type Client struct {
	store   *Store
	options ClientOptions
	indexes indexes
}

var _ client.WithWatch = (*Client)(nil)

// Client returns a client.
func (s *Store) Client(options ClientOptions) *Client {
	if options.Scheme == nil {
		options.Scheme = s.options.Scheme
	}
	return &Client{store: s, options: options, indexes: newIndexes(options.Indexes)}
}

// Store returns the store of the client.
func (c *Client) Store() *Store { return c.store }

// Scheme implements [client.Client].
func (c *Client) Scheme() *runtime.Scheme { return c.options.Scheme }

// RESTMapper implements [client.Client].
func (c *Client) RESTMapper() meta.RESTMapper { return c.store.RESTMapper() }

// GroupVersionKindFor implements [client.Client].
func (c *Client) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.options.Scheme)
}

// IsObjectNamespaced implements [client.Client].
func (c *Client) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, c.options.Scheme, c.RESTMapper())
}

// request is what is needed to make a call.
type request struct {
	Call
	// kind is nil if it is not served: the remote client says so.
	kind *server.Kind
	// manager is who writes.
	manager string
}

// request returns a call for an object.
func (c *Client) request(verb Verb, gvk schema.GroupVersionKind, key client.ObjectKey) request {
	r := request{Call: Call{Verb: verb, Kind: gvk, Namespace: key.Namespace, Name: key.Name}}
	if r.kind = c.store.kinds().find(gvk.GroupKind()); r.kind != nil {
		r.Namespace = r.kind.NamespaceOf(key.Namespace)
	}
	return r
}

// do makes a call, or leaves it to Intercept. Send makes it by a remote client, with a context that has the world of
// the store.
func (c *Client) do(
	ctx context.Context, r request, send func(ctx context.Context, remote client.WithWatch) error,
) error {
	made := false
	call := func() error {
		err := ctx.Err()
		if err != nil {
			return fmt.Errorf("%s: %w", r.Call, err)
		}
		served := c.store.kinds()
		remote, err := served.remote(c.options.Scheme, r.Kind, r.Namespace == "" && r.Verb != List && r.Verb != Watch)
		if err != nil {
			return err
		}
		err = send(storage.As(c.store.world().In(ctx), r.manager), remote)
		made = err == nil
		return err
	}
	if c.options.Intercept == nil {
		return call()
	}
	if err := c.options.Intercept(ctx, r.Call, call); err != nil {
		return err
	}
	if !made {
		return fmt.Errorf("%s: it was intercepted without an error, but not made", r.Call)
	}
	return nil
}

// manager is who makes a call that names a field manager, or none.
func (c *Client) manager(given string) string {
	return cmp.Or(given, c.options.FieldManager, DefaultManager)
}

// owner is the option for it.
func (c *Client) owner() client.FieldOwner { return client.FieldOwner(c.manager("")) }

func isDryRun(values []string) bool { return slices.Contains(values, metav1.DryRunAll) }

// empty returns an empty object of the same Go type, with its kind.
func empty[T runtime.Object](obj T) T {
	made := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
	made.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return made
}

// fillWith gives the object behind one pointer the value of that behind another.
func fillWith(obj, with runtime.Object) {
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(with).Elem())
}

// copyOf returns a copy of an object that is sent. A Go type that embeds an object may have no copies but those of the
// embedded object, which is an error.
func copyOf(obj client.Object) (client.Object, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		content, err := jsonmerge.Normalize(u.Object)
		if err != nil {
			return nil, err
		}
		obj = &unstructured.Unstructured{Object: content}
	}
	sent, ok := obj.DeepCopyObject().(client.Object)
	if !ok || reflect.TypeOf(obj) != reflect.TypeOf(sent) {
		return nil, fmt.Errorf("the copy of a %T is a %T: it needs a method DeepCopyObject of its own", obj, sent)
	}
	return sent, nil
}

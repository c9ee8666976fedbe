package component

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Context is what a [Generator] is given as its context: beside the values of the context that it was made from, it carries
// what is known of the component. A reconciler makes one for each request. To drive a generator without a reconciler, such as
// in a test, make one with [NewContext].
//
// Each With method returns another Context with the value; the receiver stays as it is. The functions whose names end in
// FromContext find the values, in any context derived from it.
type Context struct {
	context.Context
}

// NewContext returns a Context made from ctx, with the values that ctx already carries.
func NewContext(ctx context.Context) Context {
	return Context{Context: ctx}
}

// contextValues are all values in one, so that to find one takes one walk up the context. A nil pointer is not set: to be empty
// and not to be known are different things.
type contextValues struct {
	reconcilerName     *string
	localClient        client.Client
	client             client.Client
	component          client.Object
	componentName      *string
	componentNamespace *string
	componentDigest    *string
	componentRevision  *int64
}

type contextKey struct{}

func valuesOf(ctx context.Context) contextValues {
	values, _ := ctx.Value(contextKey{}).(contextValues)
	return values
}

func (c Context) with(set func(values *contextValues)) Context {
	values := valuesOf(c)
	set(&values)
	return Context{Context: context.WithValue(c.Context, contextKey{}, values)}
}

// WithReconcilerName adds the name of the reconciler, which is the prefix of its annotations.
func (c Context) WithReconcilerName(name string) Context {
	return c.with(func(values *contextValues) { values.reconcilerName = &name })
}

// WithLocalClient adds the client for the cluster that the component's resource is in.
func (c Context) WithLocalClient(local client.Client) Context {
	return c.with(func(values *contextValues) { values.localClient = local })
}

// WithClient adds the client for the cluster that the component is deployed to.
func (c Context) WithClient(target client.Client) Context {
	return c.with(func(values *contextValues) { values.client = target })
}

// WithComponent adds the component's resource.
func (c Context) WithComponent(component client.Object) Context {
	return c.with(func(values *contextValues) { values.component = component })
}

// WithComponentName adds the name of the component's resource.
func (c Context) WithComponentName(name string) Context {
	return c.with(func(values *contextValues) { values.componentName = &name })
}

// WithComponentNamespace adds the namespace of the component's resource, which may be empty.
func (c Context) WithComponentNamespace(namespace string) Context {
	return c.with(func(values *contextValues) { values.componentNamespace = &namespace })
}

// WithComponentDigest adds the digest of the component, see [ComponentDigest].
func (c Context) WithComponentDigest(digest string) Context {
	return c.with(func(values *contextValues) { values.componentDigest = &digest })
}

// WithComponentRevision adds the revision of the component: 1 for the first thing that is rolled out.
func (c Context) WithComponentRevision(revision int64) Context {
	return c.with(func(values *contextValues) { values.componentRevision = &revision })
}

// ReconcilerNameFromContext returns the name of the reconciler, or an error if ctx carries none.
func ReconcilerNameFromContext(ctx context.Context) (string, error) {
	return known(valuesOf(ctx).reconcilerName, "reconciler name")
}

// LocalClientFromContext returns the client for the cluster that the component's resource is in, or an error if ctx carries
// none. It acts with the identity of the component.
func LocalClientFromContext(ctx context.Context) (client.Client, error) {
	return given(valuesOf(ctx).localClient, "local client")
}

// ClientFromContext returns the client for the cluster that the component is deployed to, or an error if ctx carries none. It
// acts with the identity of the component.
func ClientFromContext(ctx context.Context) (client.Client, error) {
	return given(valuesOf(ctx).client, "client")
}

// ComponentFromContext returns the component's resource, or an error if ctx carries none. It must not be changed.
func ComponentFromContext(ctx context.Context) (client.Object, error) {
	return given(valuesOf(ctx).component, "component")
}

// ComponentNameFromContext returns the name of the component's resource, or an error if ctx carries none.
func ComponentNameFromContext(ctx context.Context) (string, error) {
	return known(valuesOf(ctx).componentName, "component name")
}

// ComponentNamespaceFromContext returns the namespace of the component's resource, or an error if ctx carries none. It is empty
// for a resource that is in no namespace.
func ComponentNamespaceFromContext(ctx context.Context) (string, error) {
	return known(valuesOf(ctx).componentNamespace, "component namespace")
}

// ComponentDigestFromContext returns the digest of the component, or an error if ctx carries none.
func ComponentDigestFromContext(ctx context.Context) (string, error) {
	return known(valuesOf(ctx).componentDigest, "component digest")
}

// ComponentRevisionFromContext returns the revision of the component, or an error if ctx carries none.
func ComponentRevisionFromContext(ctx context.Context) (int64, error) {
	return known(valuesOf(ctx).componentRevision, "component revision")
}

func known[T any](value *T, what string) (T, error) {
	if value == nil {
		var none T
		return none, notFound(what)
	}
	return *value, nil
}

func given[I comparable](value I, what string) (I, error) {
	var none I
	if value == none {
		return none, notFound(what)
	}
	return value, nil
}

func notFound(what string) error {
	return fmt.Errorf("%s not found in context", what)
}

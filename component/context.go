package component

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Context is the context of a [Generator]. Besides the values of the context that it was made from, it contains facts
// about the component. A reconciler makes one for each request. To call a generator without a reconciler, such as in a
// test, make one with [NewContext].
//
// Each With method returns another Context with the value, and leaves the receiver as it is. The functions whose names
// end in FromContext return the values from any context derived from it.
type Context struct {
	context.Context
}

// NewContext returns a Context made from ctx, with the values that ctx already contains.
func NewContext(ctx context.Context) Context {
	return Context{Context: ctx}
}

// contextKey is the key of a value, and its name in errors.
type contextKey string

const (
	keyReconcilerName     contextKey = "reconciler name"
	keyLocalClient        contextKey = "local client"
	keyClient             contextKey = "client"
	keyComponent          contextKey = "component"
	keyComponentName      contextKey = "component name"
	keyComponentNamespace contextKey = "component namespace"
	keyComponentDigest    contextKey = "component digest"
	keyComponentRevision  contextKey = "component revision"
)

func (c Context) with(key contextKey, value any) Context {
	return Context{Context: context.WithValue(c.Context, key, value)}
}

func fromContext[T any](ctx context.Context, key contextKey) (T, error) {
	value, ok := ctx.Value(key).(T)
	if !ok {
		return value, fmt.Errorf("%s not found in context", key)
	}
	return value, nil
}

// WithReconcilerName adds the name of the reconciler, which is the prefix of its annotations.
func (c Context) WithReconcilerName(name string) Context {
	return c.with(keyReconcilerName, name)
}

// WithLocalClient adds the client for the cluster of the component's resource.
func (c Context) WithLocalClient(local client.Client) Context {
	return c.with(keyLocalClient, local)
}

// WithClient adds the client for the cluster that the component is deployed to.
func (c Context) WithClient(target client.Client) Context {
	return c.with(keyClient, target)
}

// WithComponent adds the component's resource.
func (c Context) WithComponent(component client.Object) Context {
	return c.with(keyComponent, component)
}

// WithComponentName adds the name of the component's resource.
func (c Context) WithComponentName(name string) Context {
	return c.with(keyComponentName, name)
}

// WithComponentNamespace adds the namespace of the component's resource, which may be empty.
func (c Context) WithComponentNamespace(namespace string) Context {
	return c.with(keyComponentNamespace, namespace)
}

// WithComponentDigest adds the digest of the component, see [ComponentDigest].
func (c Context) WithComponentDigest(digest string) Context {
	return c.with(keyComponentDigest, digest)
}

// WithComponentRevision adds the revision of the component, which is 1 for the first roll-out.
func (c Context) WithComponentRevision(revision int64) Context {
	return c.with(keyComponentRevision, revision)
}

// ReconcilerNameFromContext returns the name of the reconciler, or an error if ctx contains none.
func ReconcilerNameFromContext(ctx context.Context) (string, error) {
	return fromContext[string](ctx, keyReconcilerName)
}

// LocalClientFromContext returns the client for the cluster of the component's resource, or an error if ctx contains
// none. It acts with the identity of the component.
func LocalClientFromContext(ctx context.Context) (client.Client, error) {
	return fromContext[client.Client](ctx, keyLocalClient)
}

// ClientFromContext returns the client for the cluster that the component is deployed to, or an error if ctx contains
// none. It acts with the identity of the component.
func ClientFromContext(ctx context.Context) (client.Client, error) {
	return fromContext[client.Client](ctx, keyClient)
}

// ComponentFromContext returns the component's resource, or an error if ctx contains none. It must not be changed.
func ComponentFromContext(ctx context.Context) (client.Object, error) {
	return fromContext[client.Object](ctx, keyComponent)
}

// ComponentNameFromContext returns the name of the component's resource, or an error if ctx contains none.
func ComponentNameFromContext(ctx context.Context) (string, error) {
	return fromContext[string](ctx, keyComponentName)
}

// ComponentNamespaceFromContext returns the namespace of the component's resource, or an error if ctx contains none. It
// is empty for a resource without namespace.
func ComponentNamespaceFromContext(ctx context.Context) (string, error) {
	return fromContext[string](ctx, keyComponentNamespace)
}

// ComponentDigestFromContext returns the digest of the component, or an error if ctx contains none.
func ComponentDigestFromContext(ctx context.Context) (string, error) {
	return fromContext[string](ctx, keyComponentDigest)
}

// ComponentRevisionFromContext returns the revision of the component, or an error if ctx contains none.
func ComponentRevisionFromContext(ctx context.Context) (int64, error) {
	return fromContext[int64](ctx, keyComponentRevision)
}

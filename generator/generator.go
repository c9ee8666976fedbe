package generator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Generator makes the objects of a component. It must be safe for concurrent use.
type Generator interface {
	// Generate returns the desired objects, in any order. An object may be typed or unstructured. The scheme must know
	// the type of a typed object without apiVersion and kind, see [SchemeExtender].
	//
	// namespace and name say where and under which name the component is deployed. parameters are usually the spec of
	// the resource. A generator that knows the type of the spec may assert it. They are never nil, and must not be
	// changed. ctx contains further facts, see [Context].
	//
	// The caller may change the objects. Therefore the generator must not keep them, nor return them again.
	//
	// After an error nothing of the component is changed, and nothing is deleted. Return a [RetriableError] if
	// something does not exist yet. No objects and no error mean that all objects of the component are to be deleted.
	Generate(ctx context.Context, namespace, name string, parameters Unstructurable) ([]client.Object, error)
}

// GeneratorFunc is a function that is a [Generator].
type GeneratorFunc func(ctx context.Context, namespace, name string, parameters Unstructurable) ([]client.Object, error)

// Generate calls f. A nil f is an error.
func (f GeneratorFunc) Generate(
	ctx context.Context, namespace, name string, parameters Unstructurable,
) ([]client.Object, error) {
	if f == nil {
		return nil, errNoGenerator
	}
	return f(ctx, namespace, name, parameters)
}

var errNoGenerator = errors.New("there is no generator")

// Deterministic is implemented by a [Generator] or a transformer whose output depends only on the following:
//
//   - the namespace, the name, and the map that ToUnstructured of the parameters returns;
//   - the name of the reconciler, the component digest and the revision, which are in the context;
//   - the name, the namespace, the UID and the spec of the resource in the context, and its annotations under the name
//     of the reconciler.
//
// The reconciler then keeps the objects in memory, and does not call the generator again while all of these stay the
// same.
//
// The output is not deterministic if it depends on anything else: on labels or the status of the resource, on other
// values of the context, on a cluster, on the clock, or on random numbers. References of the reconciler are part of the
// component digest. Without the interface, nothing is assumed, and the generator is called in each request.
type Deterministic interface {
	// Deterministic reports whether the output is deterministic.
	Deterministic() bool
}

// IsDeterministic reports whether v is [Deterministic].
func IsDeterministic(v any) bool {
	d, ok := v.(Deterministic)
	return ok && d.Deterministic()
}

// InputReporter is implemented by a [Deterministic] generator whose output depends on more than [Deterministic] lists,
// such as on the kinds that a cluster serves, or on objects that it looks up.
type InputReporter interface {
	// Inputs returns an identity of what else the output depends on. The reconciler calls it once in each request that
	// rolls out, and calls the generator again if the identity is another one than before. That starts no other
	// revision. The identity stays in memory. ctx is as for Generate. An error counts as one of Generate.
	//
	// A request that finds everything as it was calls nothing else of the generator, so Inputs should make no request
	// if it can do without.
	Inputs(ctx context.Context, namespace, name string) (string, error)
}

// ContentDigester is implemented by a [Generator] or a transformer that makes objects from content that comes with the
// operator or from a [Source], such as a chart.
type ContentDigester interface {
	// ContentDigest returns a digest of the content, or nothing if there is none. It must not contain anything from
	// which a secret can be guessed, because it is stored in the status. When it is another one than in the last
	// roll-out, another revision starts, as when the resource is changed. A component that was rolled out before there
	// was a digest takes the first one without another revision. ctx is as for Generate, but for the revision. An error
	// counts as one of Generate.
	ContentDigest(ctx context.Context) (string, error)
}

// ReportsInputs reports whether v is an [InputReporter] or, for a [TransformableGenerator], whether the wrapped
// generator or a transformer is one.
func ReportsInputs(v any) bool {
	reports := false
	if g, ok := v.(*TransformableGenerator); ok {
		if g == nil {
			return false
		}
		_ = g.each(func(part any) error { // never fails
			reports = reports || ReportsInputs(part)
			return nil
		})
		return reports
	}
	_, reports = v.(InputReporter)
	return reports
}

// SchemeExtender is implemented by a [Generator] whose objects have Go types that the operator's scheme may not know.
type SchemeExtender interface {
	// AddToScheme registers the types. It is called once, before the generator is used: by SetupWithManager or, without
	// that, by the first request.
	AddToScheme(scheme *runtime.Scheme) error
}

// Unstructurable is a value that can be written as a map of JSON values. A spec implements it to be the parameters of a
// [Generator].
type Unstructurable interface {
	// ToUnstructured returns the value as a map. The caller owns the map and may change it at any depth.
	ToUnstructured() map[string]any
}

// UnstructurableMap is a map that is [Unstructurable].
type UnstructurableMap map[string]any

// ToUnstructured returns a deep copy of m, which is never nil. Maps and slices of any type are copied. Values behind
// pointers are shared.
func (m UnstructurableMap) ToUnstructured() map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return copyMap(m)
}

func copyMap(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for key, value := range out {
		out[key] = deepCopy(value)
	}
	return out
}

// deepCopy does what runtime.DeepCopyJSONValue does, for values of all types. Maps that are written in Go may contain
// an int32 or a []string, with which that function panics.
func deepCopy(value any) any {
	switch v := value.(type) {
	case nil, string, bool, int, int32, int64, float64:
		return v
	case map[string]any:
		return copyMap(v)
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = deepCopy(out[i])
		}
		return out
	default:
		return reflectCopy(reflect.ValueOf(value)).Interface()
	}
}

func reflectCopy(v reflect.Value) reflect.Value {
	switch kind := v.Kind(); {
	case kind != reflect.Map && kind != reflect.Slice && kind != reflect.Interface, v.IsNil():
		return v
	case kind == reflect.Map:
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for iter := v.MapRange(); iter.Next(); {
			out.SetMapIndex(iter.Key(), reflectCopy(iter.Value()))
		}
		return out
	case kind == reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(reflectCopy(v.Index(i)))
		}
		return out
	default:
		return reflectCopy(v.Elem())
	}
}

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
	keyDiscovery          contextKey = "discovery client"
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

// WithDiscovery adds the discovery client for the cluster that the component is deployed to.
func (c Context) WithDiscovery(target discovery.DiscoveryInterface) Context {
	return c.with(keyDiscovery, target)
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

// DiscoveryFromContext returns the discovery client for the cluster that the component is deployed to, or an error if
// ctx contains none. It acts with the identity of the component, and makes a request each time.
func DiscoveryFromContext(ctx context.Context) (discovery.DiscoveryInterface, error) {
	return fromContext[discovery.DiscoveryInterface](ctx, keyDiscovery)
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

package component

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// referenceMemory is what a node remembers of what the spec of a resource refers to.
type referenceMemory struct {
	// user identifies as whom it was read.
	user string
	read map[referencedObject]referencedContent
	// values are those that the spec refers to, merged, for the component digest valuesFor.
	values    map[string]any
	valuesFor string
}

type referencedObject struct{ kind, name string }

// referencedContent is what an object had when it was read.
type referencedContent struct {
	content *generator.Referenced
	// seen is the version that the watch showed before, and found the one that was read. The watch may be late.
	seen, found version
}

type version struct {
	uid             types.UID
	resourceVersion string
}

func versionOf(object client.Object) version {
	return version{object.GetUID(), object.GetResourceVersion()}
}

// loadReferences loads what the spec refers to, with the identity of the component. Nothing is loaded for a resource
// that is being deleted and has no hooks, and an error does not stop its deletion.
func (r *request[T]) loadReferences(ctx context.Context) error {
	hooks := len(r.Hooks.PostRead) + len(r.Hooks.PreDelete) + len(r.Hooks.PostDelete)
	if !generator.HasReferences(r.resource) || r.facts.leaving() && (hooks == 0 || r.dryRun) {
		return nil
	}
	local, reader, err := r.localClient(ctx)
	if err != nil {
		return err
	}
	memory := &r.state.references
	identity := r.localIdentity()
	user := fmt.Sprintf("%q", append([]string{identity.User}, identity.Groups...))
	if memory.user != user {
		*memory = referenceMemory{user: user}
	}
	before := memory.read
	memory.read = map[referencedObject]referencedContent{}
	source := generator.ReferenceSource{
		Client: local,
		Read: func(ctx context.Context, object client.Object) (*generator.Referenced, error) {
			return r.referenced(ctx, reader, object, before)
		},
	}
	if r.references, err = source.Load(ctx, r.resource); err != nil && !r.facts.leaving() {
		return fmt.Errorf("unable to load what the spec refers to: %w", err)
	}
	return nil
}

// referenced returns the content of a ConfigMap or Secret, and tracks the object. The operator watches the metadata of
// such objects. The content is read with the identity of the component, when the object is missing or has changed
// since.
func (r *request[T]) referenced(
	ctx context.Context, reader client.Reader, object client.Object, before map[referencedObject]referencedContent,
) (*generator.Referenced, error) {
	kind, err := r.config.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	key := referencedObject{kind.Kind, object.GetName()}
	if known, ok := r.state.references.read[key]; ok {
		return known.content, nil
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(kind)
	err = r.trackAndGet(ctx, client.ObjectKeyFromObject(object), metadata)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	seen := versionOf(metadata)
	known, ok := before[key]
	// Whether an object is missing, only who may read it is told.
	if !ok || err != nil || seen != known.seen && seen != known.found {
		if err := reader.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return nil, err
		}
		content, err := generator.NewReferenced(object)
		if err != nil {
			return nil, err
		}
		known = referencedContent{content: content, seen: seen, found: versionOf(object)}
	}
	r.state.references.read[key] = known
	return known.content, nil
}

// trackAndGet reads an object of a type that the node watches, and tracks it, but for a plan.
func (r *request[T]) trackAndGet(ctx context.Context, key types.NamespacedName, object client.Object) error {
	config := r.config
	if home := config.Cluster(); home != nil && home.GetCache() != nil {
		// The manager may be told that its client reads Secrets past the cache. That would be a request each time.
		config.Client = cachedClient{config.Client, home.GetCache()}
	}
	if r.dryRun {
		return config.Get(ctx, key, object)
	}
	return config.TrackAndGet(ctx, key, object)
}

// cachedClient reads single objects from a cache, whatever the client does.
type cachedClient struct {
	client.Client

	cache client.Reader
}

func (c cachedClient) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	return c.cache.Get(ctx, key, object, options...)
}

// withValues merges the parameters over the values that the spec refers to.
func (r *request[T]) withValues(parameters generator.Unstructurable) (generator.Unstructurable, error) {
	memory := &r.state.references
	if memory.valuesFor != r.digest {
		values, err := generator.ValuesOf(r.resource)
		if err != nil {
			return nil, fmt.Errorf("unable to merge values: %w", err)
		}
		memory.values, memory.valuesFor = values, r.digest
	}
	return generator.WithValues(memory.values, parameters), nil
}

// watchReferenced watches what the spec of resources of the type of sample can refer to.
func watchReferenced(ctx context.Context, bldr *reconcilers.Builder, sample client.Object) error {
	for _, kind := range generator.ReferencedKinds(sample) {
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(kind)
		if err := reconcilers.WatchTracked(ctx, bldr, metadata); err != nil {
			return err
		}
	}
	return nil
}

// usesOfReferences are the permissions for what the spec of resources of the type of sample can refer to.
func usesOfReferences(sample any) []reconcilers.Access {
	var uses []reconcilers.Access
	for _, kind := range generator.ReferencedKinds(sample) {
		var object client.Object = &corev1.ConfigMap{}
		if kind.Kind == "Secret" {
			object = &corev1.Secret{}
		}
		uses = append(uses, reconcilers.Access{Object: object, Verbs: []string{"get", "list", "watch"}})
	}
	return uses
}

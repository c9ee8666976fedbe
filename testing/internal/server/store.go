package server

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// eventTTL is how long events are kept, which is the default of an API server.
const eventTTL = uint64(time.Hour / time.Second)

// restOptions says how a resource is stored.
func restOptions(
	resource schema.GroupResource, codec runtime.Codec, version runtime.GroupVersioner,
	decorator generic.StorageDecorator,
) generic.RESTOptions {
	prefix := resource.Resource
	if resource.Group != "" {
		prefix = resource.Group + "/" + resource.Resource
	}
	config := storagebackend.Config{Codec: codec, EncodeVersioner: version}
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(resource),
		Decorator:               decorator,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          prefix,
	}
}

// newStore returns the store of the objects of a kind.
func newStore(k kind, decorator generic.StorageDecorator, identities identifier) (*genericregistry.Store, error) {
	resource := schema.GroupResource{Group: k.Kind.Group, Resource: k.Resource}
	s := newStrategy(k, "", identities)
	store := &genericregistry.Store{}
	s.others = func(ctx context.Context, but *corev1.Service) []corev1.Service { return services(ctx, store, but) }
	*store = genericregistry.Store{
		NewFunc: k.object, NewListFunc: k.list,
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: schema.GroupResource{Group: k.Kind.Group, Resource: strings.ToLower(k.Kind.Kind)},
		CreateStrategy:            s, UpdateStrategy: s, DeleteStrategy: s,
		ResetFieldsStrategy: s,
		TableConvertor:      tables{k.object()},
		ReturnDeletedObject: returnsDeleted[k.Kind],
	}
	if k.Kind.Kind == "Event" {
		store.TTLFunc = func(runtime.Object, uint64, bool) (uint64, error) { return eventTTL, nil }
	}
	// A strategy may write the UID to other fields, so it is there before. A name without a key is refused later.
	store.BeginCreate = func(
		ctx context.Context, obj runtime.Object, options *metav1.CreateOptions,
	) (genericregistry.FinishFunc, error) {
		object := obj.(client.Object)
		if key, err := store.KeyFunc(ctx, object.GetName()); err == nil {
			identities.begin(ctx, key, object, dryrun.IsDryRun(options.DryRun))
		}
		return func(context.Context, bool) {}, nil
	}
	hub := k.hub().GroupVersion()
	return store, store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: restOptions(resource, codecs().LegacyCodec(hub), hub, decorator),
		AttrFunc:    k.attributes(),
	})
}

// services returns all Services in a store but one.
func services(ctx context.Context, store *genericregistry.Store, but *corev1.Service) []corev1.Service {
	list, err := store.ListPredicate(request.WithNamespace(ctx, ""), storage.Everything, nil)
	if err != nil {
		return nil // what asked is about to fail, too
	}
	return slices.DeleteFunc(list.(*corev1.ServiceList).Items, func(s corev1.Service) bool {
		return s.Namespace == but.Namespace && s.Name == but.Name
	})
}

// returnsDeleted are the kinds of which a delete is answered with the object, see the Kubernetes API reference.
var returnsDeleted = map[schema.GroupKind]bool{
	{Kind: "Pod"}: true, {Kind: "PersistentVolume"}: true, {Kind: "PersistentVolumeClaim"}: true,
	{Kind: "PodTemplate"}: true, {Kind: "ResourceQuota"}: true, {Kind: "ServiceAccount"}: true, {Kind: "Service"}: true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}: true, {Group: "storage.k8s.io", Kind: "CSINode"}: true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}: true, {Group: "storage.k8s.io", Kind: "VolumeAttachment"}: true,
}

// statusREST serves a subresource that is a part of the object, such as the status.
type statusREST struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = statusREST{}
	_ rest.ResetFieldsStrategy = statusREST{}
)

// newStatus returns the subresource of the objects in a store.
func newStatus(store *genericregistry.Store, subresource string) statusREST {
	s := store.UpdateStrategy.(strategy)
	s.subresource = subresource
	part := *store
	part.CreateStrategy, part.UpdateStrategy, part.ResetFieldsStrategy = nil, s, s
	return statusREST{&part}
}

// New implements [rest.Storage].
func (s statusREST) New() runtime.Object { return s.store.New() }

// Destroy implements [rest.Storage]. The storage is that of the whole objects.
func (s statusREST) Destroy() {}

// Get implements [rest.Getter].
func (s statusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update implements [rest.Updater]. It creates nothing.
func (s statusREST) Update(
	ctx context.Context, name string, obj rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, obj, create, update, false, options)
}

// GetResetFields implements [rest.ResetFieldsStrategy].
func (s statusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable implements [rest.TableConvertor].
func (s statusREST) ConvertToTable(
	ctx context.Context, object runtime.Object, options runtime.Object,
) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}

// noStorage is the decorator of stores that nobody uses.
func noStorage(
	*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
	func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	return nil, func() {}, nil
}

package reconcilers

import (
	"context"
	"errors"
	"net/http"

	"github.com/espalier-dev/espalier/internal/conditionlog"
	"github.com/espalier-dev/espalier/internal/gotype"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// treeContext is a context with everything that the nodes of one request share. It is one value and not many context
// values, because every request makes it and every node reads it, so it decides what an idle request costs.
//
// A treeContext never changes. A node that replaces a part of it derives a new one for the nodes below.
type treeContext struct {
	context.Context

	request   Request
	config    Config
	hasConfig bool
	// comparable is true if the client of config can be the key of a map. It is computed once for all nodes.
	comparable           bool
	originalConfig       Config
	hasOriginalConfig    bool
	additionalConfigs    map[string]Config
	resourceType         client.Object
	originalResourceType client.Object
	// item is the item of the innermost [ForEach] with a Key, or nil.
	item *item
	// list is the run of the innermost list that has one.
	list *listRun
	// casts are the objects that stand for the resource, innermost first.
	casts *castFrame

	admissionRequest  *admission.Request
	admissionResponse *admission.Response
	httpRequest       *http.Request

	// state is the state of the request, nil unless a root made the context.
	state *requestState
	// watches are those of the controller, nil unless a root that was set up made the context.
	watches *watches
	// claims are the claims of the nodes that were set up so far, by path; nil unless a root's set-up made the context.
	claims map[any]string
	// optionalType is an object of the type that an object manager is set up for, if the cluster may not serve it.
	optionalType client.Object
	// beforeSetup is true while a root validates its tree before the set-up of the tree.
	beforeSetup bool
}

func (s *treeContext) setConfig(config Config) {
	s.config, s.hasConfig = config, true
	s.comparable = config.Client != nil && gotype.Comparable(config.Client)
}

type treeContextKey struct{}

func (s *treeContext) Value(key any) any {
	switch key {
	case treeContextKey{}:
		return s
	case conditionlog.Key{}:
		if s.item != nil {
			return &s.item.conditions
		}
		if s.state != nil {
			return &s.state.conditions
		}
	}
	return s.Context.Value(key)
}

// contextOf returns the innermost treeContext of ctx. Without one it returns an empty treeContext, so that callers need
// no check.
func contextOf(ctx context.Context) *treeContext {
	if s, ok := ctx.Value(treeContextKey{}).(*treeContext); ok {
		return s
	}
	return &emptyTreeContext
}

var emptyTreeContext treeContext

// derive returns a copy of the innermost treeContext of ctx, as changed by change.
func derive(ctx context.Context, change func(*treeContext)) context.Context {
	s := *contextOf(ctx)
	s.Context = ctx
	change(&s)
	return &s
}

var (
	errNoConfig = errors.New("config must exist on the context. " +
		"Check that the context is from a ResourceReconciler or WithConfig")
	errNoOriginalConfig = errors.New("resource config must exist on the context. " +
		"Check that the context is from a ResourceReconciler")
	errNoResourceType = errors.New("there is no resource on the context to wake. " +
		"Check that the context is from a ResourceReconciler")
)

// StashRequest returns a context in which request is the one being reconciled.
func StashRequest(ctx context.Context, request Request) context.Context {
	return derive(ctx, func(s *treeContext) { s.request = request })
}

// RetrieveRequest returns the request being reconciled, or an empty one.
func RetrieveRequest(ctx context.Context) Request {
	return contextOf(ctx).request
}

// StashConfig returns a context in which config is the current one. A root sets it; [RetrieveConfig] reads it. In a dry
// run (see [IsDryRun]) its client makes dry-run requests only.
func StashConfig(ctx context.Context, config Config) context.Context {
	return derive(ctx, func(s *treeContext) { s.setConfig(s.nodeConfig(config)) })
}

// RetrieveConfig returns the current config: the config of the root, or of the innermost node that replaced it.
// Children are read and written with it.
func RetrieveConfig(ctx context.Context) (Config, error) {
	s := contextOf(ctx)
	if !s.hasConfig {
		return Config{}, errNoConfig
	}
	return s.config, nil
}

// RetrieveConfigOrDie is [RetrieveConfig] for nodes, which always run below a root: it panics when there is no config.
func RetrieveConfigOrDie(ctx context.Context) Config {
	config, err := RetrieveConfig(ctx)
	if err != nil {
		panic(err)
	}
	return config
}

// StashOriginalConfig returns a context in which config is the one that the resource was loaded with. In a dry run (see
// [IsDryRun]) its client makes dry-run requests only.
func StashOriginalConfig(ctx context.Context, config Config) context.Context {
	return derive(ctx, func(s *treeContext) { s.originalConfig, s.hasOriginalConfig = s.nodeConfig(config), true })
}

// RetrieveOriginalConfig returns the config that the resource was loaded with, even if a node has replaced the current
// config. The status, the finalizers and the events of the resource are written with it.
func RetrieveOriginalConfig(ctx context.Context) (Config, error) {
	s := contextOf(ctx)
	if !s.hasOriginalConfig {
		return Config{}, errNoOriginalConfig
	}
	return s.originalConfig, nil
}

// RetrieveOriginalConfigOrDie is [RetrieveOriginalConfig] for nodes, which always run below a root: it panics when
// there is no config.
func RetrieveOriginalConfigOrDie(ctx context.Context) Config {
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		panic(err)
	}
	return config
}

// StashResourceType returns a context in which resources have the type of resourceType.
func StashResourceType(ctx context.Context, resourceType client.Object) context.Context {
	return derive(ctx, func(s *treeContext) { s.resourceType = resourceType })
}

// RetrieveResourceType returns an object of the type that the current nodes reconcile, or nil. It is for reading only.
func RetrieveResourceType(ctx context.Context) client.Object {
	return contextOf(ctx).resourceType
}

// StashOriginalResourceType returns a context in which the root reconciles resources of the type of resourceType.
func StashOriginalResourceType(ctx context.Context, resourceType client.Object) context.Context {
	return derive(ctx, func(s *treeContext) { s.originalResourceType = resourceType })
}

// RetrieveOriginalResourceType returns an object of the type that the root reconciles, or nil. The nodes below a
// [CastResource] see the resource as another type. The object is for reading only.
func RetrieveOriginalResourceType(ctx context.Context) client.Object {
	return contextOf(ctx).originalResourceType
}

// wokenType returns an object of the type to wake. It is the type of the root, also below a cast.
func wokenType(ctx context.Context) (client.Object, error) {
	s := contextOf(ctx)
	switch {
	case !gotype.IsNil(s.originalResourceType):
		return s.originalResourceType, nil
	case !gotype.IsNil(s.resourceType):
		return s.resourceType, nil
	default:
		return nil, errNoResourceType
	}
}

// watcherOf returns an object with the type and name of the request's resource, for the tracker to wake.
func watcherOf(ctx context.Context) (client.Object, error) {
	woken, err := wokenType(ctx)
	if err != nil {
		return nil, err
	}
	request := contextOf(ctx).request
	if request.Name == "" {
		return nil, errNoResourceType
	}
	watcher := woken.DeepCopyObject().(client.Object)
	watcher.SetNamespace(request.Namespace)
	watcher.SetName(request.Name)
	return watcher, nil
}

// StashAdditionalConfigs returns a context with configs for other clusters or identities, by name. In a dry run (see
// [IsDryRun]) their clients make dry-run requests only.
func StashAdditionalConfigs(ctx context.Context, configs map[string]Config) context.Context {
	return derive(ctx, func(s *treeContext) {
		s.additionalConfigs = changedConfigs(configs, s.nodeConfig)
	})
}

// RetrieveAdditionalConfigs returns the configs for other clusters or identities, by name; never nil.
func RetrieveAdditionalConfigs(ctx context.Context) map[string]Config {
	if configs := contextOf(ctx).additionalConfigs; configs != nil {
		return configs
	}
	return map[string]Config{}
}

// StashAdmissionRequest returns a context of a webhook that answers request.
func StashAdmissionRequest(ctx context.Context, request admission.Request) context.Context {
	return derive(ctx, func(s *treeContext) { s.admissionRequest = &request })
}

// RetrieveAdmissionRequest returns the admission request being answered, or an empty one outside a webhook.
func RetrieveAdmissionRequest(ctx context.Context) admission.Request {
	if request := contextOf(ctx).admissionRequest; request != nil {
		return *request
	}
	return admission.Request{}
}

// StashAdmissionResponse returns a context of a webhook whose answer is response.
func StashAdmissionResponse(ctx context.Context, response *admission.Response) context.Context {
	return derive(ctx, func(s *treeContext) { s.admissionResponse = response })
}

// RetrieveAdmissionResponse returns the answer of the webhook, to be changed in place, or nil outside a webhook.
func RetrieveAdmissionResponse(ctx context.Context) *admission.Response {
	return contextOf(ctx).admissionResponse
}

// StashHTTPRequest returns a context of a webhook that was called by request.
func StashHTTPRequest(ctx context.Context, request *http.Request) context.Context {
	return derive(ctx, func(s *treeContext) { s.httpRequest = request })
}

// RetrieveHTTPRequest returns the HTTP request that called the webhook, or nil outside a webhook.
func RetrieveHTTPRequest(ctx context.Context) *http.Request {
	return contextOf(ctx).httpRequest
}

// castFrame says that the nodes below see original as object. Both are compared by identity: a copy of object does not
// stand for original.
type castFrame struct {
	object   client.Object
	original client.Object
	outer    *castFrame
}

// withCast returns the context for nodes that see resource, which may be a cast object itself, as cast.
func withCast(ctx context.Context, cast, resource client.Object) context.Context {
	original, _ := resourceBehindCast(ctx, resource)
	return derive(ctx, func(s *treeContext) {
		s.casts = &castFrame{object: cast, original: original, outer: s.casts}
		s.resourceType = cast
	})
}

// resourceBehindCast returns the resource that obj stands for, as the root loaded it, and true if obj is a cast object.
// Any other object stands for itself.
//
// The result is for the kind and the identity of the resource. Its content may be older than the content of obj:
// changes that nodes make to obj reach the resource when the cast ends.
func resourceBehindCast(ctx context.Context, obj client.Object) (client.Object, bool) {
	return contextOf(ctx).behindCast(obj)
}

func (s *treeContext) behindCast(obj client.Object) (client.Object, bool) {
	for c := s.casts; c != nil; c = c.outer {
		if c.object == obj {
			return c.original, true
		}
	}
	return obj, false
}

// kindOfOriginal returns the kind of the resource that obj stands for, or an empty kind if it is not known.
func kindOfOriginal(ctx context.Context, obj client.Object) schema.GroupVersionKind {
	s := contextOf(ctx)
	original, _ := s.behindCast(obj)
	if carried := original.GetObjectKind().GroupVersionKind(); !carried.Empty() {
		return carried
	}
	switch {
	case s.hasOriginalConfig && s.originalConfig.Client != nil:
		return kindOf(s.originalConfig.Client, original)
	case s.hasConfig && s.config.Client != nil:
		return kindOf(s.config.Client, original)
	default:
		return schema.GroupVersionKind{}
	}
}

// IsDryRun reports whether the tree runs for a dry-run admission request, which must have no effect. The configs on the
// context send only dry-run requests and record no events. A node with any other effect has to call IsDryRun and omit
// that effect. Outside a webhook IsDryRun is false.
func IsDryRun(ctx context.Context) bool {
	return contextOf(ctx).dryRun()
}

func (s *treeContext) dryRun() bool {
	return s.admissionRequest != nil && s.admissionRequest.DryRun != nil && *s.admissionRequest.DryRun
}

// nodeConfig returns the config for nodes. In a dry run it has no effects.
func (s *treeContext) nodeConfig(config Config) Config {
	if s.dryRun() {
		return dryRunConfig(config)
	}
	return config
}

// Without a channel, these recorders drop all events.
var (
	dropEvents    = &record.FakeRecorder{}
	dropNewEvents = &events.FakeRecorder{}
)

// dryRunClient marks a client as one that makes only dry-run requests.
type dryRunClient struct {
	client.Client
}

// dryRunConfig returns config without effects. Its client makes only dry-run requests, and its recorders drop events.
func dryRunConfig(config Config) Config {
	if _, already := config.Client.(*dryRunClient); !already && config.Client != nil {
		config.Client = &dryRunClient{Client: client.NewDryRunClient(config.Client)}
	}
	if config.Recorder != nil {
		config.Recorder = dropEvents
	}
	if config.EventRecorder != nil {
		config.EventRecorder = dropNewEvents
	}
	return config
}

// changeConfigs changes all configs of the context.
func (s *treeContext) changeConfigs(change func(Config) Config) {
	s.config, s.originalConfig = change(s.config), change(s.originalConfig)
	s.additionalConfigs = changedConfigs(s.additionalConfigs, change)
}

func changedConfigs(configs map[string]Config, change func(Config) Config) map[string]Config {
	if configs == nil {
		return nil
	}
	changed := make(map[string]Config, len(configs))
	for name, config := range configs {
		changed[name] = change(config)
	}
	return changed
}

package reconcilers

import (
	"context"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// scope is a context that carries all that the nodes of one request share. It is one value, not one context value per
// member, because every request makes it and every node reads it.
//
// A scope is not changed once it is made: whoever wants another config further down derives a new scope.
type scope struct {
	context.Context

	request   Request
	config    Config
	hasConfig bool
	// comparable is true if the client of config can be a key, found out once for all nodes.
	comparable           bool
	originalConfig       Config
	hasOriginalConfig    bool
	additionalConfigs    map[string]Config
	resourceType         client.Object
	originalResourceType client.Object
	// casts are the objects that stand for the resource, innermost first.
	casts *casting

	admissionRequest  *admission.Request
	admissionResponse *admission.Response
	httpRequest       *http.Request

	// pass is the state of the request, nil unless a root made the scope.
	pass *pass
	// watches are those registered so far, nil unless a root's set-up made the scope.
	watches *watches
}

func (s *scope) setConfig(config Config) {
	s.config, s.hasConfig = config, true
	s.comparable = config.Client != nil && isComparable(config.Client)
}

type scopeKey struct{}

func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// scopeOf returns the innermost scope of ctx. Without one it returns an empty scope, so that reading it needs no check.
func scopeOf(ctx context.Context) *scope {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return s
	}
	return &emptyScope
}

var emptyScope scope

// derive returns a scope below ctx with what the innermost scope has, as changed by change.
func derive(ctx context.Context, change func(*scope)) context.Context {
	s := *scopeOf(ctx)
	s.Context = ctx
	change(&s)
	return &s
}

var (
	errNoConfig         = errors.New("config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig")
	errNoOriginalConfig = errors.New("resource config must exist on the context. Check that the context is from a ResourceReconciler")
)

// StashRequest returns a context in which request is the one being reconciled.
func StashRequest(ctx context.Context, request Request) context.Context {
	return derive(ctx, func(s *scope) { s.request = request })
}

// RetrieveRequest returns the request being reconciled, or an empty one.
func RetrieveRequest(ctx context.Context) Request {
	return scopeOf(ctx).request
}

// StashConfig returns a context in which config is the current one. A root sets it; [RetrieveConfig] reads it. In a dry run
// (see [IsDryRun]) its client makes dry-run requests only.
func StashConfig(ctx context.Context, config Config) context.Context {
	return derive(ctx, func(s *scope) { s.setConfig(s.fitting(config)) })
}

// RetrieveConfig returns the current config: the root's, or that of the innermost node that replaced it. Children are
// read and written with it.
func RetrieveConfig(ctx context.Context) (Config, error) {
	s := scopeOf(ctx)
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
	return derive(ctx, func(s *scope) { s.originalConfig, s.hasOriginalConfig = s.fitting(config), true })
}

// RetrieveOriginalConfig returns the config that the resource was loaded with, whatever config is current. The status,
// the finalizers and the events of the resource are written with it.
func RetrieveOriginalConfig(ctx context.Context) (Config, error) {
	s := scopeOf(ctx)
	if !s.hasOriginalConfig {
		return Config{}, errNoOriginalConfig
	}
	return s.originalConfig, nil
}

// RetrieveOriginalConfigOrDie is [RetrieveOriginalConfig] for nodes, which always run below a root: it panics when there
// is no config.
func RetrieveOriginalConfigOrDie(ctx context.Context) Config {
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		panic(err)
	}
	return config
}

// StashResourceType returns a context in which resources have the type of resourceType.
func StashResourceType(ctx context.Context, resourceType client.Object) context.Context {
	return derive(ctx, func(s *scope) { s.resourceType = resourceType })
}

// RetrieveResourceType returns an object of the type that the current nodes reconcile, or nil. It is for reading only.
func RetrieveResourceType(ctx context.Context) client.Object {
	return scopeOf(ctx).resourceType
}

// StashOriginalResourceType returns a context in which the root reconciles resources of the type of resourceType.
func StashOriginalResourceType(ctx context.Context, resourceType client.Object) context.Context {
	return derive(ctx, func(s *scope) { s.originalResourceType = resourceType })
}

// RetrieveOriginalResourceType returns an object of the type that the root reconciles, whatever type the current nodes
// see it as, or nil. It is for reading only.
func RetrieveOriginalResourceType(ctx context.Context) client.Object {
	return scopeOf(ctx).originalResourceType
}

// StashAdditionalConfigs returns a context with configs for other clusters or identities, by name. In a dry run (see
// [IsDryRun]) their clients make dry-run requests only.
func StashAdditionalConfigs(ctx context.Context, configs map[string]Config) context.Context {
	return derive(ctx, func(s *scope) {
		s.additionalConfigs = configs
		if s.dryRun() {
			s.additionalConfigs = dryRunConfigs(configs)
		}
	})
}

// RetrieveAdditionalConfigs returns the configs for other clusters or identities, by name; never nil.
func RetrieveAdditionalConfigs(ctx context.Context) map[string]Config {
	if configs := scopeOf(ctx).additionalConfigs; configs != nil {
		return configs
	}
	return map[string]Config{}
}

// StashAdmissionRequest returns a context of a webhook that answers request.
func StashAdmissionRequest(ctx context.Context, request admission.Request) context.Context {
	return derive(ctx, func(s *scope) { s.admissionRequest = &request })
}

// RetrieveAdmissionRequest returns the admission request being answered, or an empty one outside a webhook.
func RetrieveAdmissionRequest(ctx context.Context) admission.Request {
	if request := scopeOf(ctx).admissionRequest; request != nil {
		return *request
	}
	return admission.Request{}
}

// StashAdmissionResponse returns a context of a webhook whose answer is response.
func StashAdmissionResponse(ctx context.Context, response *admission.Response) context.Context {
	return derive(ctx, func(s *scope) { s.admissionResponse = response })
}

// RetrieveAdmissionResponse returns the answer of the webhook, to be changed in place, or nil outside a webhook.
func RetrieveAdmissionResponse(ctx context.Context) *admission.Response {
	return scopeOf(ctx).admissionResponse
}

// StashHTTPRequest returns a context of a webhook that was called by request.
func StashHTTPRequest(ctx context.Context, request *http.Request) context.Context {
	return derive(ctx, func(s *scope) { s.httpRequest = request })
}

// RetrieveHTTPRequest returns the HTTP request that called the webhook, or nil outside a webhook.
func RetrieveHTTPRequest(ctx context.Context) *http.Request {
	return scopeOf(ctx).httpRequest
}

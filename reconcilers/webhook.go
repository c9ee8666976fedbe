package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/jsonmerge"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/stash"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/validation"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// AdmissionWebhookAdapter is the root of a tree that answers admission requests for resources of one type. The tree
// changes the resource in memory. The webhook answers with a patch of these changes, or it refuses the request.
//
//   - Runs: the tree, for each request, on the new object with its defaults filled in. In a delete request it runs on
//     the object to be deleted. The result of the tree is ignored.
//   - Stops: when the object cannot be decoded or its defaults cannot be filled in.
//   - On error: refuses the request, and answers with the first of these that there is: the result that the response
//     already has; the first error with a status of an API server, such as one of [Deny]; one Invalid status for all
//     field errors, also those of [InvalidFields], with a cause for each; an internal error with the text of the error.
//     A mere [ErrHaltSubReconcilers] allows the request. Errors are logged with the path of the node, except for quiet
//     errors, denials by Deny or InvalidFields, and field errors.
//   - On deletion: runs the tree, see above. A delete request cannot change the object, so no patch is sent. An update
//     request may be for a terminating resource. Nodes then do what they do on deletion.
//
// The patch has only what the tree changed. Fields that the Go type lacks stay as they are, at any depth. Defaults are
// sent only as part of a parent object that the request lacks and the change creates. If the tree has set Patches,
// Patch or PatchType of the response, no patch is added.
//
// Nodes use [Warn], [Deny] and [InvalidFields] for the answer, and [RetrieveOldResource] for the old object.
// [RetrieveAdmissionRequest] and [RetrieveAdmissionResponse] give the whole request and response. In a dry run (see
// [IsDryRun]) the configs on the context send only dry-run requests, and record no events.
type AdmissionWebhookAdapter[Type client.Object] struct {
	// Name identifies the webhook in paths and logs. Default: the kind followed by AdmissionWebhookAdapter.
	Name string

	// Type is an object of the resource's type. It is required if Type is an interface. Default: an empty Type.
	Type Type

	// Reconciler is the tree. Required.
	Reconciler SubReconciler[Type]

	// BeforeHandle is called before the object is decoded, and may change the response. The context that it returns
	// replaces the current one, unless it is nil. Optional.
	BeforeHandle func(ctx context.Context, req admission.Request, resp *admission.Response) context.Context

	// AfterHandle is called last, also after an error, and may change the response. Optional.
	AfterHandle func(ctx context.Context, req admission.Request, resp *admission.Response)

	// Config is the config for the tree. Required only if a node uses it.
	Config Config

	initOnce sync.Once
	observed observedRoot
}

var _ admission.Handler = (*AdmissionWebhookAdapter[client.Object])(nil)

func (r *AdmissionWebhookAdapter[T]) init() {
	r.initOnce.Do(func() {
		r.Type = defaultType(r.Type)
		r.Name = cmp.Or(r.Name, fmt.Sprintf("%sAdmissionWebhookAdapter", typeName(r.Type)))
	})
}

func (r *AdmissionWebhookAdapter[T]) check() error {
	if gotype.IsNil(r.Reconciler) {
		return fmt.Errorf("AdmissionWebhookAdapter %q must define Reconciler", r.Name)
	}
	if gotype.IsNil(r.Type) {
		return fmt.Errorf("AdmissionWebhookAdapter %q must define Type since none can be made of %s",
			r.Name, reflect.TypeFor[T]())
	}
	return nil
}

// Validate checks that the required fields are set and, if recursive, the tree.
func (r *AdmissionWebhookAdapter[T]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	nested := derive(ctx, r.configure)
	return validateField(nested, "AdmissionWebhookAdapter", r.Name, "Reconciler", r.Reconciler)
}

// Describe shows the tree.
func (r *AdmissionWebhookAdapter[T]) Describe() Description {
	r.init()
	return Description{
		Kind:     "AdmissionWebhookAdapter",
		Name:     r.Name,
		Detail:   typeName(r.Type),
		Resource: r.Type,
		Nodes:    []Description{Describe(r.Reconciler)},
	}
}

// Build is [AdmissionWebhookAdapter.BuildWithContext] without a context. It panics if the tree is not valid.
//
// Deprecated: use [AdmissionWebhookAdapter.BuildWithContext].
func (r *AdmissionWebhookAdapter[T]) Build() *admission.Webhook {
	webhook, err := r.BuildWithContext(context.Background())
	if err != nil {
		panic(err)
	}
	return webhook
}

// BuildWithContext validates the whole tree and returns the webhook. Register it with the webhook server of a manager.
func (r *AdmissionWebhookAdapter[T]) BuildWithContext(ctx context.Context) (*admission.Webhook, error) {
	r.init()
	// Validate of a node of another package may need its set-up, and a webhook has none. Such nodes are not validated.
	validating := derive(Enter(r.prepare(ctx), r.Name), func(s *treeContext) { s.beforeSetup = true })
	if err := r.Validate(validation.WithRecursive(validating)); err != nil {
		return nil, err
	}
	if err := checkOrder(r.Describe()); err != nil {
		return nil, fmt.Errorf("AdmissionWebhookAdapter %q %w", r.Name, err)
	}
	return &admission.Webhook{Handler: r, WithContextFunc: r.callContext}, nil
}

// callContext returns the context of a call of the webhook.
func (r *AdmissionWebhookAdapter[T]) callContext(ctx context.Context, call *http.Request) context.Context {
	ctx = StashHTTPRequest(r.prepare(ctx), call)
	return logr.NewContext(ctx, withURLPath(ctx, logr.FromContextOrDiscard(ctx)))
}

// withURLPath returns a logger with the URL path of the call, if it is known.
func withURLPath(ctx context.Context, logger logr.Logger) logr.Logger {
	if call := RetrieveHTTPRequest(ctx); call != nil && call.URL != nil {
		return logger.WithValues("webhook", call.URL.Path)
	}
	return logger
}

// preparedKey is the key of the adapter that a context was prepared for.
type preparedKey struct{}

// prepare returns a context with all values that do not depend on the request.
func (r *AdmissionWebhookAdapter[T]) prepare(ctx context.Context) context.Context {
	ctx = logr.NewContext(ctx, log.FromContext(ctx).WithName("controller-runtime.webhook.webhooks"))
	ctx = stash.WithContext(ctx)
	return context.WithValue(derive(ctx, r.configure), preparedKey{}, r)
}

func (r *AdmissionWebhookAdapter[T]) configure(s *treeContext) {
	// Each process serves webhooks for the resources of all.
	config := r.Config.unfiltered()
	s.setConfig(config)
	s.originalConfig, s.hasOriginalConfig = config, true
	s.resourceType, s.originalResourceType = r.Type, r.Type
}

// requestContext returns the context of a request.
func (r *AdmissionWebhookAdapter[T]) requestContext(
	ctx context.Context, req *admission.Request, resp *admission.Response, p *requestState,
) context.Context {
	if ctx.Value(preparedKey{}) != any(r) {
		// Handle was called directly, not through the webhook that Build returned.
		ctx = r.prepare(ctx)
	}
	ctx = rtime.StashNow(ctx, time.Now())
	ctx = derive(ctx, func(s *treeContext) {
		s.admissionRequest, s.admissionResponse = req, resp
		s.state = p
		if s.dryRun() {
			s.changeConfigs(dryRunConfig)
		}
	})
	// The webhook of controller-runtime replaces the logger that the context was prepared with.
	logger := withURLPath(ctx, logr.FromContextOrDiscard(ctx)).
		WithValues("UID", req.UID, "kind", req.Kind, "resource", req.Resource, "operation", req.Operation)
	return Enter(logr.NewContext(ctx, logger), r.Name)
}

// Handle answers one request, see [AdmissionWebhookAdapter].
func (r *AdmissionWebhookAdapter[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	r.init()
	resp := &admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: req.UID, Allowed: true}}
	// The webhook around the handler recovers from panics, and answers with an error.
	p := &requestState{
		resource: &resourcestate.State{}, lastsForCall: true, leavePanics: true, observers: r.Config.observers,
	}
	ctx = r.requestContext(ctx, &req, resp, p)
	if err := r.check(); err != nil {
		deny(ctx, p, req, resp, err)
		return *resp
	}
	if r.BeforeHandle != nil {
		if replaced := r.BeforeHandle(ctx, req, resp); replaced != nil {
			ctx = replaced
		}
	}
	if err := r.observedHandle(ctx, req, resp, p); err != nil {
		deny(ctx, p, req, resp, err)
	}
	if r.AfterHandle != nil {
		r.AfterHandle(ctx, req, resp)
	}
	return *resp
}

// observedHandle is handle, and tells observers of it, if any listen.
func (r *AdmissionWebhookAdapter[T]) observedHandle(
	ctx context.Context, req admission.Request, resp *admission.Response, p *requestState,
) (err error) {
	ctx = StashRequest(ctx, Request{NamespacedName: types.NamespacedName{Namespace: req.Namespace, Name: req.Name}})
	if p.observers == nil {
		return r.handle(ctx, req, resp, p)
	}
	node := r.observed.get(func() Node {
		return Node{
			Controller: r.Name, Resource: kindOf(r.Config.Client, r.Type),
			Kind: "AdmissionWebhookAdapter", Name: r.Name,
		}
	})
	within, o := startObservation(ctx, p.observers, node, nil)
	returned := false
	defer func() { o.end(within, p.resourceSeen, Result{}, err, returned) }()
	err = r.handle(within, req, resp, p)
	returned = true
	return err
}

// handle runs the tree on the object of the request, and sets the patch.
func (r *AdmissionWebhookAdapter[T]) handle(
	ctx context.Context, req admission.Request, resp *admission.Response, p *requestState,
) error {
	raw := req.Object.Raw
	if req.Operation == admissionv1.Delete {
		raw = req.OldObject.Raw
	}
	resource, err := r.decode(req, raw)
	if err != nil {
		return err
	}
	if err := applyDefaults(ctx, resource); err != nil {
		return err
	}
	p.resourceSeen = resource
	snapshot := copyOf(resource)
	if _, err := ReconcileNested(ctx, r.Reconciler, resource); err != nil && !isOnlyHalt(err) {
		return err
	}
	answered := resp.Patches != nil || resp.Patch != nil || resp.PatchType != nil
	if answered || req.Operation == admissionv1.Delete || equality.Semantic.DeepEqual(snapshot, resource) {
		return nil
	}
	operations, err := jsonmerge.AdmissionPatch(raw, snapshot, resource)
	if err != nil || len(operations) == 0 {
		return err
	}
	log := logr.FromContextOrDiscard(ctx)
	log.Info("mutating resource",
		"object", describeObject(resource), "reason", "the tree changed "+message.List(fieldsOf(operations), maxLogged))
	if log := log.V(detailed); log.Enabled() {
		log.Info("mutating resource", "patch", maskPatch(operations, req, resource))
	}
	resp.Patches = operations
	return nil
}

// decode returns the object of the request.
func (r *AdmissionWebhookAdapter[T]) decode(req admission.Request, raw []byte) (T, error) {
	resource := copyOf(r.Type)
	if len(raw) == 0 && req.Operation == admissionv1.Connect {
		resource.SetNamespace(req.Namespace)
		resource.SetName(req.Name)
		return resource, nil
	}
	return resource, utiljson.Unmarshal(raw, resource)
}

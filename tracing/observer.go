// Package tracing makes OpenTelemetry traces of what the nodes of a tree do, and of the API requests that they make:
//
//	config := ctrl.GetConfigOrDie()
//	mgr, err := ctrl.NewManager(tracing.WrapConfig(config, provider), options)
//	...
//	root := controller.New(espalier.NewConfig(mgr).WithObserver(tracing.New(provider)))
//
// The author makes the provider by the SDK of OpenTelemetry, so this package depends on its API alone.
package tracing

import (
	"context"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope is the name of the instrumentation scope of all spans.
const scope = "github.com/espalier-dev/espalier/tracing"

// New returns an observer that makes a span of each request of a root, and below it one of each node with a name. The
// name of a span is the label of its node, see [reconcilers.Node]. A nil provider makes none.
//
// A request that is not sampled has no spans of its nodes either. The log lines of one that is have the values trace_id
// and span_id, which are those of the span of the request.
//
// These are the attributes. Those that begin with espalier are of this package, the others of OpenTelemetry's semantic
// conventions:
//
//   - k8s.namespace.name: the namespace of the resource, unless it has none.
//   - espalier.controller, espalier.resource.kind, espalier.resource.name: the controller and the resource; of a
//     request.
//   - espalier.causes: what brought the request about, such as "Updated Deployment default/a"; of a request.
//   - espalier.node.kind, espalier.node.path: the node.
//   - espalier.outcome: how the node ended, see [reconcilers.State].
//   - espalier.writes: how many objects the node, and those below it, wrote. It is missing for none.
//   - espalier.requeue_after: the delay in seconds that the node asked for. It is missing for none.
//   - error.type: the class of an error. The status of the span is then an error with the class as its description. The
//     text of an error is not recorded.
//
// An object that is written, or not written to spare the cluster, is an event, "write" or "held", of the span of the
// innermost node with a name: its attributes say which object, why (but for a status, whose reason has texts of
// conditions), and of a write that failed the class of the error.
// A request for a resource whose cache lags behind has the event "lagging".
func New(provider trace.TracerProvider) reconcilers.Observer {
	return observer{tracerOf(provider)}
}

func tracerOf(provider trace.TracerProvider) trace.Tracer {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	return provider.Tracer(scope)
}

type observer struct{ tracer trace.Tracer }

// Start implements [reconcilers.Observer].
func (o observer) Start(ctx context.Context, node *reconcilers.Node) context.Context {
	isRoot := node.Root == node
	if !isRoot && (node.Name == "" || !trace.SpanFromContext(ctx).IsRecording()) {
		return ctx
	}
	ctx, span := o.tracer.Start(ctx, node.Label)
	if !isRoot || !span.IsRecording() {
		return ctx
	}
	request := reconcilers.RetrieveRequest(ctx)
	span.SetAttributes(
		attribute.String("espalier.controller", node.Controller),
		attribute.String("espalier.resource.kind", node.Resource.Kind),
		attribute.String("espalier.resource.name", request.Name))
	if request.Namespace != "" {
		span.SetAttributes(attribute.String("k8s.namespace.name", request.Namespace))
	}
	// Lines of nested nodes have the same values: with those of their own spans, each name would be there many times.
	log := logr.FromContextOrDiscard(ctx)
	return logr.NewContext(ctx, log.WithValues(
		"trace_id", span.SpanContext().TraceID().String(), "span_id", span.SpanContext().SpanID().String()))
}

// End implements [reconcilers.Observer].
func (o observer) End(ctx context.Context, node *reconcilers.Node, outcome reconcilers.Outcome) {
	span := trace.SpanFromContext(ctx)
	if node.Root != node && (node.Name == "" || !span.IsRecording()) {
		return
	}
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String("espalier.node.kind", node.Kind),
		attribute.String("espalier.node.path", node.Path),
		attribute.String("espalier.outcome", string(outcome.State)))
	if outcome.Writes > 0 {
		span.SetAttributes(attribute.Int("espalier.writes", outcome.Writes))
	}
	if after := outcome.Result.RequeueAfter; after > 0 {
		span.SetAttributes(attribute.Float64("espalier.requeue_after", after.Seconds()))
	}
	if outcome.State == reconcilers.StateError {
		span.SetStatus(codes.Error, string(outcome.Class))
		span.SetAttributes(attribute.String("error.type", string(outcome.Class)))
	}
}

// Note implements [reconcilers.Observer].
func (o observer) Note(ctx context.Context, _ *reconcilers.Node, fact any) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	switch fact := fact.(type) {
	case reconcilers.Woken:
		causes := make([]string, len(fact.Causes))
		for i, cause := range fact.Causes {
			causes[i] = string(cause.Kind)
			if cause.Object != "" {
				causes[i] += " " + cause.Object
			}
		}
		span.SetAttributes(attribute.StringSlice("espalier.causes", causes))
	case reconcilers.Write:
		attributes := append(ofObject(fact.Object), attribute.String("espalier.verb", fact.Verb))
		if fact.Subresource != "" {
			attributes = append(attributes, attribute.String("espalier.subresource", fact.Subresource))
		}
		if fact.Reason != "" {
			attributes = append(attributes, attribute.String("espalier.reason", fact.Reason))
		}
		if fact.Err != nil {
			attributes = append(attributes, attribute.String("error.type", string(reconcilers.Classify(fact.Err))))
		}
		span.AddEvent("write", trace.WithAttributes(attributes...))
	case reconcilers.Held:
		span.AddEvent("held", trace.WithAttributes(
			append(ofObject(fact.Object), attribute.String("espalier.reason", string(fact.Kind)))...))
	case reconcilers.Lagging:
		span.AddEvent("lagging")
	}
}

func ofObject(object reconcilers.ObjectRef) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String("espalier.object.kind", object.Kind), attribute.String("espalier.object.name", object.Name),
	}
	if object.Namespace != "" {
		attributes = append(attributes, attribute.String("k8s.namespace.name", object.Namespace))
	}
	return attributes
}

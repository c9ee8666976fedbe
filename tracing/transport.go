package tracing

import (
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
)

// WrapConfig returns a copy of config with which an API request that a node makes is a span below that of the node. The
// name of the span has the method and the kind of object, such as "PATCH configmaps" or "PUT deployments/status". A
// request of no sampled span, such as one of a cache, makes none. With a nil provider none does.
//
// These are the attributes, by OpenTelemetry's semantic conventions: http.request.method, url.template, which has the
// path without names, server.address, http.response.status_code, k8s.namespace.name, and error.type for a status of an
// error, or for no answer. A body is never recorded.
func WrapConfig(config *rest.Config, provider trace.TracerProvider) *rest.Config {
	config = rest.CopyConfig(config)
	tracer, base := tracerOf(provider), baseOf(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport{next: next, tracer: tracer, base: base}
	})
	return config
}

type transport struct {
	next   http.RoundTripper
	tracer trace.Tracer
	base   string
}

// baseOf returns what all paths begin with, if another server stands before the API server.
func baseOf(config *rest.Config) string {
	at, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(at.Path, "/")
}

// WrappedRoundTripper lets client-go find the transport that it has to close.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !trace.SpanFromContext(request.Context()).IsRecording() {
		return t.next.RoundTrip(request)
	}
	to := targetOf(strings.TrimPrefix(request.URL.Path, t.base))
	ctx, span := t.tracer.Start(request.Context(), request.Method+" "+to.name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("http.request.method", request.Method),
			attribute.String("url.template", to.template),
			attribute.String("server.address", request.URL.Hostname())))
	defer span.End()
	if to.namespace != "" {
		span.SetAttributes(attribute.String("k8s.namespace.name", to.namespace))
	}
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		span.SetStatus(codes.Error, "no answer")
		span.SetAttributes(attribute.String("error.type", "no answer"))
		return response, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	if response.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, http.StatusText(response.StatusCode))
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(response.StatusCode)))
	}
	return response, nil
}

// target is what a request is for.
type target struct {
	// name is the plural of the kind, with the subresource; for a path of no kind, the template.
	name string
	// template is the path without the names of objects.
	template string
	// namespace is that of the objects, if the kind has namespaces.
	namespace string
}

// targetOf reads /api/VERSION/... and /apis/GROUP/VERSION/..., which go on with [namespaces/NAMESPACE/]KIND, or that
// with /NAME or /NAME/SUBRESOURCE. Of another path only the first part is known to have no name.
func targetOf(path string) target {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	prefix := 2
	if parts[0] == "apis" {
		prefix = 3
	}
	if parts[0] != "api" && parts[0] != "apis" {
		return target{name: "/" + parts[0], template: "/" + parts[0]}
	}
	if len(parts) <= prefix {
		return target{name: "/" + strings.Join(parts, "/"), template: "/" + strings.Join(parts, "/")}
	}
	rest, t := parts[prefix:], target{template: "/" + strings.Join(parts[:prefix], "/")}
	if rest[0] == "namespaces" && len(rest) > 2 && !(len(rest) == 3 && isOfNamespaces(rest[2])) {
		t.namespace, t.template, rest = rest[1], t.template+"/namespaces/{namespace}", rest[2:]
	}
	t.name = rest[0]
	t.template += "/" + rest[0]
	if len(rest) > 1 {
		t.template += "/{name}"
	}
	if len(rest) > 2 {
		t.name += "/" + rest[2]
		t.template += "/" + rest[2]
	}
	if len(rest) > 3 {
		// What follows a proxy is a path of the object's own.
		t.template += "/{path}"
	}
	return t
}

// isOfNamespaces reports whether a part of a path is a subresource of namespaces, and no kind in them.
func isOfNamespaces(part string) bool { return part == "status" || part == "finalize" }

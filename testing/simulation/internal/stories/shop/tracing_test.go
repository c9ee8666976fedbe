package shop_test

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/tracing"
)

// traces are the spans of two requests, with their attributes and events.
//
//go:embed testdata/traces.txt
var traces string

// TestTraces tells the beginning of a shop, and looks at the spans of the request that creates its objects, and of one
// in which the API server refuses an object. The lines of a request have the identity of its trace once.
func TestTraces(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	options := cluster(t)
	options.Operator = func(ctx context.Context, mgr ctrl.Manager) error {
		config := espalier.NewConfig(mgr).WithObserver(tracing.New(provider))
		return controller.New(config, called{registries.In(ctx)}, time.Minute).SetupWithManager(ctx, mgr)
	}
	options.Manager.NewClient = func(config *rest.Config, o client.Options) (client.Client, error) {
		o.HTTPClient = nil // it was made of the config as it was
		return client.New(tracing.WrapConfig(config, provider), o)
	}
	var mu sync.Mutex
	var logged []string
	options.Manager.Logger = funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, line)
	}, funcr.Options{})
	simulation.Run(t, options, func(w *simulation.World) {
		w.Create(newSettings())
		w.Rest()
		first := newShop("first")
		first.Spec.Workers = first.Spec.Workers[:1]
		w.Create(first)
		w.Rest()
		w.Update(first, func() { first.Spec.Workers[0].Schedule = "never" })
		w.Pass(time.Second)
	})
	var requests []string
	first := ""
	for _, span := range recorder.Ended() {
		if span.Parent().IsValid() {
			continue
		}
		text := strings.Join(tree(recorder.Ended(), span, ""), "\n") + "\n"
		if len(requests) == 0 || len(requests) == 1 && strings.Contains(text, "status_code=422") {
			requests = append(requests, text)
		}
		if first == "" {
			first = fmt.Sprintf(`"trace_id"=%q "span_id"=%q`, span.SpanContext().TraceID(), span.SpanContext().SpanID())
		}
	}
	got := strings.Join(requests, "\n")
	if diff := cmp.Diff(traces, got); diff != "" {
		t.Errorf("the spans differ (-expected, +actual):\n%s\nall:\n%s", diff, got)
	}
	created := 0
	for _, line := range logged {
		if !strings.Contains(line, `"msg"="created"`) {
			continue
		}
		created++
		if strings.Count(line, "trace_id") != 1 || !strings.Contains(line, first) {
			t.Errorf("a line does not have %s once: %s", first, line)
		}
	}
	if created != 4 {
		t.Errorf("%d objects are logged as created, want 4:\n%s", created, strings.Join(logged, "\n"))
	}
}

// tree has a line for a span, its events, and the spans below it in the order of their ends.
func tree(all []sdktrace.ReadOnlySpan, span sdktrace.ReadOnlySpan, indent string) []string {
	line := fmt.Sprintf("%s%s: %s", indent, span.Name(), texts(span.Attributes()))
	if status := span.Status(); status.Description != "" {
		line += fmt.Sprintf(" (%s: %s)", status.Code, status.Description)
	}
	lines := []string{line}
	for _, event := range span.Events() {
		lines = append(lines, fmt.Sprintf("%s  * %s: %s", indent, event.Name, texts(event.Attributes)))
	}
	for _, other := range all {
		if other.Parent().SpanID() == span.SpanContext().SpanID() {
			lines = append(lines, tree(all, other, indent+"  ")...)
		}
	}
	return lines
}

func texts(attributes []attribute.KeyValue) string {
	var texts []string
	for _, a := range attributes {
		name := strings.TrimPrefix(string(a.Key), "espalier.")
		texts = append(texts, name+"="+a.Value.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

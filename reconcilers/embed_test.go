package reconcilers_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestEmbedGivesNodesWhatARootGives(t *testing.T) {
	config := expectWidget().Config()
	var kept reconcilers.ResourceState[*int]
	ran := 0
	nodes := reconcilers.Embed(config, widgetNode(&widgetSync{Name: "Look", Sync: func(ctx context.Context, w *resources.Widget) error {
		ran++
		if got, err := reconcilers.RetrieveConfig(ctx); err != nil || got.Client != config.Client {
			t.Errorf("the config has the client %v (%v), want the one given", got.Client, err)
		}
		if got, err := reconcilers.RetrieveOriginalConfig(ctx); err != nil || got.Client != config.Client {
			t.Errorf("the original config has the client %v (%v), want the one given", got.Client, err)
		}
		if got := reconcilers.RetrieveRequest(ctx); got != widgetRequest {
			t.Errorf("the request is %v, want %v", got, widgetRequest)
		}
		if _, ok := reconcilers.RetrieveResourceType(ctx).(*resources.Widget); !ok {
			t.Errorf("the type is %T, want *resources.Widget", reconcilers.RetrieveResourceType(ctx))
		}
		if _, ok := reconcilers.RetrieveOriginalResourceType(ctx).(*resources.Widget); !ok {
			t.Errorf("the original type is %T, want *resources.Widget", reconcilers.RetrieveOriginalResourceType(ctx))
		}
		if got := rtime.RetrieveNow(ctx); got != rtime.RetrieveNow(ctx) || time.Since(got) > time.Minute {
			t.Errorf("the time is %v, want one and the same, of the last minute", got)
		}
		if got := reconcilers.RetrievePath(ctx); got != "Embedded/Look" {
			t.Errorf("the path is %s, want Embedded/Look", got)
		}
		*kept.Of(ctx, func() *int { return new(int) })++
		if got := *kept.Of(ctx, func() *int { return new(int) }); got != ran {
			t.Errorf("%d requests are remembered, want %d", got, ran)
		}
		if ran > 1 {
			// Only the round of this request counts.
			return nil
		}
		return client.IgnoreNotFound(reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, widgetKey, &corev1.ConfigMap{}))
	}}))
	for i := range 2 {
		if result, err := nodes.Reconcile(t.Context(), widget.Object()); err != nil || result != (reconcilers.Result{}) {
			t.Errorf("it returned %+v and %v, want neither", result, err)
		}
		observers, err := config.Tracker.GetObservers(givenConfigMap.Object())
		if err != nil || len(observers) != 1-i {
			t.Errorf("after request %d, the object is observed by %v (%v), want %d", i, observers, err, 1-i)
		}
	}
	if nodes.Remembered() != 1 || ran != 2 {
		t.Errorf("%d resources are remembered after %d requests, want 1 after 2", nodes.Remembered(), ran)
	}
	nodes.Forget(widgetRequest)
	if nodes.Remembered() != 0 {
		t.Errorf("%d resources are remembered, want none", nodes.Remembered())
	}
}

func TestEmbedReturnsWhatARootReturns(t *testing.T) {
	delay := reconcilers.Result{RequeueAfter: time.Hour}
	for name, test := range map[string]struct {
		result, expected reconcilers.Result
		err              error
		text             string
	}{
		"success": {result: delay, expected: delay},
		"error":   {err: errBoom, text: "Embedded: boom"},
		"quiet":   {err: reconcilers.ErrQuiet, expected: requeue},
		"durable": {result: delay, err: errors.Join(errBoom, reconcilers.ErrDurable), expected: delay},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := reconcilers.Embed(expectWidget().Config(), (&trace{}).step("Look", test.result, test.err))
			result, err := nodes.Reconcile(t.Context(), widget.Object())
			if result != test.expected || (err == nil) != (test.text == "") {
				t.Fatalf("it returned %+v and %v, want %+v and an error with %q, if any", result, err, test.expected,
					test.text)
			}
			if err != nil && (!errors.Is(err, errBoom) || !strings.Contains(err.Error(), test.text)) {
				t.Errorf("the error is %v, want %v with %q", err, errBoom, test.text)
			}
		})
	}
}

func TestEmbedRefusesWhatItCannotRun(t *testing.T) {
	config := expectWidget().Config()
	node := (&trace{}).step("Look", reconcilers.Result{}, nil)
	for text, nodes := range map[string]*reconcilers.Embedded[*resources.Widget]{
		`Embedded "Embedded" must define Reconciler`:          reconcilers.Embed[*resources.Widget](config),
		`Embedded "Embedded" must define Config to reconcile`: reconcilers.Embed(reconcilers.Config{}, node),
		`must be set up with a builder`:                       reconcilers.Embed(config, node),
		`must have a valid Reconciler`:                        reconcilers.Embed(config, widgetNode(&widgetSync{})),
	} {
		if err := nodes.SetupWithManager(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("set-up returned %v, expected %s", err, text)
		}
	}
	if _, err := reconcilers.Embed(config, node).Reconcile(t.Context(), nil); err == nil {
		t.Error("a nil resource is reconciled, want an error")
	}
}

func TestThePageOnEmbeddingShowsTheExample(t *testing.T) {
	page, err := os.ReadFile("../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_embed_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Error("no code is shown, want some")
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(string(example), code) {
			t.Errorf("the example does not have this code, want it there:\n%s", code)
		}
	}
}

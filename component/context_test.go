package component_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/component"
)

type namedClient struct {
	client.Client
	name string
}

type ctxKey struct{}

// getters return what a context carries, as comparable values.
var getters = map[string]func(ctx context.Context) (any, error){
	"reconciler name":     func(ctx context.Context) (any, error) { return component.ReconcilerNameFromContext(ctx) },
	"local client":        func(ctx context.Context) (any, error) { return component.LocalClientFromContext(ctx) },
	"client":              func(ctx context.Context) (any, error) { return component.ClientFromContext(ctx) },
	"component":           func(ctx context.Context) (any, error) { return component.ComponentFromContext(ctx) },
	"component name":      func(ctx context.Context) (any, error) { return component.ComponentNameFromContext(ctx) },
	"component namespace": func(ctx context.Context) (any, error) { return component.ComponentNamespaceFromContext(ctx) },
	"component digest":    func(ctx context.Context) (any, error) { return component.ComponentDigestFromContext(ctx) },
	"component revision":  func(ctx context.Context) (any, error) { return component.ComponentRevisionFromContext(ctx) },
}

func TestContext(t *testing.T) {
	local, target, resource := &namedClient{name: "local"}, &namedClient{name: "target"}, configMap("garden")
	base := context.WithValue(context.Background(), ctxKey{}, "kept")
	full := component.NewContext(base).
		WithReconcilerName("platform.example.com").
		WithLocalClient(local).
		WithClient(target).
		WithComponent(resource).
		WithComponentName("garden").
		WithComponentNamespace("").
		WithComponentDigest("abc").
		WithComponentRevision(0)
	want := map[string]any{
		"reconciler name": "platform.example.com", "local client": client.Client(local), "client": client.Client(target),
		"component": client.Object(resource), "component name": "garden", "component namespace": "", "component digest": "abc",
		"component revision": int64(0),
	}
	derived, cancel := context.WithCancel(full)
	defer cancel()
	for what, get := range getters {
		if got, err := get(derived); err != nil || got != want[what] {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, want[what])
		}
		if _, err := get(base); err == nil || err.Error() != what+" not found in context" {
			t.Errorf("%s: error %v from an empty context", what, err)
		}
		if _, err := get(component.NewContext(base).WithClient(nil).WithLocalClient(nil).WithComponent(nil)); err == nil {
			t.Errorf("%s: nil counts as known", what)
		}
	}
	if full.Value(ctxKey{}) != "kept" {
		t.Error("a value of the context beneath is lost")
	}
}

func TestContextBranches(t *testing.T) {
	trunk := component.NewContext(context.Background()).WithComponentName("trunk")
	left, right := trunk.WithComponentDigest("left"), trunk.WithComponentDigest("right")
	for want, ctx := range map[string]context.Context{"left": left, "right": right} {
		if got, err := component.ComponentDigestFromContext(ctx); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if got, err := component.ComponentNameFromContext(ctx); err != nil || got != "trunk" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if _, err := component.ComponentDigestFromContext(trunk); err == nil {
		t.Error("a branch changed the trunk")
	}
	// A context that is made from another one has what that has.
	if got, err := component.ComponentNameFromContext(component.NewContext(left).WithComponentRevision(1)); err != nil || got != "trunk" {
		t.Errorf("got %q, %v", got, err)
	}
}

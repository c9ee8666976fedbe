package story

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// order creates the platform.
func order(ctx context.Context, w *World) error {
	platform := &v1alpha1.Platform{Spec: v1alpha1.PlatformSpec{Version: controller.Version1}}
	platform.Namespace, platform.Name = namespace, name
	return w.Create(ctx, platform)
}

func (w *World) setVersion(ctx context.Context, version string) error {
	return w.Patch(ctx, &v1alpha1.Platform{}, namespace, name, fmt.Sprintf(`{"spec":{"version":%q}}`, version))
}

// migrate does what a Job would do.
func (w *World) migrate(ctx context.Context, version string) error {
	return w.Patch(ctx, migration(), namespace, controller.MigrationName(name), fmt.Sprintf(`{"data":{%q:%q}}`, controller.Migrated, version))
}

// show does what somebody would do who shows dashboards.
func (w *World) show(ctx context.Context) error {
	dashboard := overview()
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(dashboard), dashboard); err != nil {
		return err
	}
	change := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Shown","message":"","lastTransitionTime":%q}]}}`,
		time.Now().UTC().Format(time.RFC3339))
	return w.Client.Status().Patch(ctx, dashboard, client.RawPatch("application/merge-patch+json", []byte(change)))
}

func (w *World) deletePlatform(ctx context.Context) error {
	platform, err := w.platform(ctx)
	if err != nil {
		return err
	}
	return w.Client.Delete(ctx, platform)
}

// isSteady has the platform reconciled several times by changing nothing about it but an annotation, and holds when the
// operator asks nothing of the API server meanwhile.
func isSteady(ctx context.Context, w *World) error {
	touch := func(ctx context.Context, _ string) error {
		w.touches++
		change := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":%q}}}`, strconv.Itoa(w.touches))
		return w.Patch(ctx, &v1alpha1.Platform{}, namespace, name, change)
	}
	return w.operator.Steady(ctx, w.options.Patience, []string{name}, touch, w.requests)
}

func isRunning(ctx context.Context, w *World) error { return w.operator.Synced(ctx) }

func may(want bool, verb, group, resource string) check {
	return func(ctx context.Context, w *World) error {
		return w.May(ctx, want, OperatorUser, verb, group, resource, storytelling.Everywhere)
	}
}

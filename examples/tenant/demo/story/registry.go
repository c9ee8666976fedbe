package story

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/examples/tenant/controller"
)

// registryLists holds when the list of all tenants has just these.
func registryLists(names ...string) check {
	return func(ctx context.Context, w *World) error {
		registry, err := get[corev1.ConfigMap](ctx, w, platform, controller.RegistryName)
		if err != nil {
			return err
		}
		slices.Sort(names)
		if listed := slices.Sorted(maps.Keys(registry.Data)); !slices.Equal(listed, names) {
			return fmt.Errorf("%q are listed, not %q", listed, names)
		}
		return nil
	}
}

// registrySays holds when the list of all tenants says that about one of them.
func registrySays(tenant, key, value string) check {
	return func(ctx context.Context, w *World) error {
		registry, err := get[corev1.ConfigMap](ctx, w, platform, controller.RegistryName)
		if err != nil {
			return err
		}
		said := map[string]string{}
		if err := json.Unmarshal([]byte(registry.Data[tenant]), &said); err != nil {
			return fmt.Errorf("what the list says of %s cannot be read: %w", tenant, err)
		}
		if said[key] != value {
			return fmt.Errorf("the list says that %s of %s is %q, not %q", key, tenant, said[key], value)
		}
		return nil
	}
}

func eachIsListedAsReady(ctx context.Context, w *World) error {
	for _, name := range tenants {
		if err := registrySays(name, "ready", "True")(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

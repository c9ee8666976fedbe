package story

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// patch changes an object by a merge patch, so that it meets whatever the object has become.
func patch(ctx context.Context, w *World, obj client.Object, namespace, name, change string) error {
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return w.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(change)))
}

func patchTenant(ctx context.Context, w *World, name, change string) error {
	return patch(ctx, w, &v1alpha1.Tenant{}, "", name, change)
}

func setDefault(ctx context.Context, w *World, key, value string) error {
	return patch(ctx, w, &corev1.ConfigMap{}, platform, "defaults", fmt.Sprintf(`{"data":{%q:%q}}`, key, value))
}

func deleteTenant(ctx context.Context, w *World, name string) error {
	tenant := &v1alpha1.Tenant{}
	tenant.Name = name
	return w.client.Delete(ctx, tenant)
}

// rememberParts remembers what a tenant has, for partsAreUntouched.
func rememberParts(ctx context.Context, w *World, tenant string) error {
	for _, part := range partsOf(tenant) {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(part), part); err != nil {
			return err
		}
		w.before[partKey(part)] = part
	}
	return nil
}

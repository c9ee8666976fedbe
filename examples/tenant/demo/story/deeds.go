package story

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

func patchTenant(ctx context.Context, w *World, name, change string) error {
	return w.Patch(ctx, &v1alpha1.Tenant{}, "", name, change)
}

func setDefault(ctx context.Context, w *World, key, value string) error {
	return w.Patch(ctx, &corev1.ConfigMap{}, platform, "defaults", fmt.Sprintf(`{"data":{%q:%q}}`, key, value))
}

func deleteTenant(ctx context.Context, w *World, name string) error {
	tenant := &v1alpha1.Tenant{}
	tenant.Name = name
	return w.Client.Delete(ctx, tenant)
}

// operatorSees returns when an object is in the operator's cache. A cache that has lost its API server fills anew when
// that is back, and never tells of what came and went meanwhile: nobody can expect that the operator hears of it.
func (w *World) operatorSees(ctx context.Context, obj client.Object) error {
	return storytelling.Eventually(ctx, w.options.Patience, func(ctx context.Context) error {
		seen := obj.DeepCopyObject().(client.Object)
		err := w.operator.Cache.Get(ctx, client.ObjectKeyFromObject(obj), seen)
		if err == nil && seen.GetUID() != obj.GetUID() {
			return fmt.Errorf("the operator's cache has another %T %s", obj, obj.GetName())
		}
		return err
	})
}

// setMembers replaces the members of a tenant: each is the kind, the name and, if not that of the tenant, the role.
func setMembers(ctx context.Context, w *World, tenant string, members ...[]string) error {
	spec := make([]v1alpha1.Member, 0, len(members))
	for _, member := range members {
		spec = append(spec, v1alpha1.Member{Kind: member[0], Name: member[1], Role: strings.Join(member[2:], "")})
	}
	change, err := json.Marshal(map[string]any{"spec": map[string]any{"members": spec}})
	if err != nil {
		return err
	}
	return patchTenant(ctx, w, tenant, string(change))
}

// rememberParts remembers what a tenant has, for partsAreUntouched.
func rememberParts(ctx context.Context, w *World, tenant string) error {
	parts, err := w.readParts(ctx, tenant)
	w.parts[tenant] = parts
	return err
}

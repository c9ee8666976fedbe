package write

import (
	"context"
	"slices"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Remnants returns the fields that stay in an object although they are not wanted, because those that made it for the
// resource with that UID wrote them by creates and updates, see [managedfields.Migration.Remnants]. Live is the object
// as the API server has answered. If there may be such fields, a dry run tells which of them are defaults that the API
// server sets again. If that fails, nobody knows, and defaults are among them.
func (w Writer) Remnants(
	ctx context.Context, wanted managedfields.Configuration, live *unstructured.Unstructured, uid types.UID,
) []managedfields.Remnant {
	found := w.Migration.Remnants(wanted, live.Object, live.GetManagedFields(), uid)
	if len(found) == 0 {
		return nil
	}
	rest := &unstructured.Unstructured{Object: managedfields.WithoutRemnants(live.Object, found)}
	owner := client.FieldOwner(w.Migration.Owner.Name)
	if err := w.Client.Patch(ctx, rest, client.MergeFrom(live), client.DryRunAll, owner); err != nil {
		return found
	}
	return slices.DeleteFunc(found, func(remnant managedfields.Remnant) bool {
		return remnant.IsDefault(live.Object, rest.Object)
	})
}

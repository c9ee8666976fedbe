package espalier

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replicasAnnotation is on a suspended object whose number of replicas the author does not desire. Its value is the
// number that the object had, and gets back when it is resumed.
const replicasAnnotation = "espalier.dev/replicas"

// scaler is an object manager that keeps numbers of replicas over a suspension.
type scaler[CT client.Object] struct {
	reconcilers.ObjectManager[CT]
	fieldManager string
}

// Manage creates, updates and deletes, see [reconcilers.ObjectManager].
func (s scaler[CT]) Manage(ctx context.Context, resource client.Object, actual, desired CT) (CT, error) {
	exists := !gotype.IsNil(actual) && actual.GetResourceVersion() != ""
	if !gotype.IsNil(desired) {
		if _, asks := desired.GetAnnotations()[replicasAnnotation]; asks {
			annotateReplicas(desired, actual, exists)
		} else if n := replicasBefore(actual, exists); n > 0 && isUnscaled(desired) {
			var err error
			if actual, err = s.giveBack(ctx, actual, n); err != nil {
				return actual, err
			}
		}
	}
	return s.ObjectManager.Manage(ctx, resource, actual, desired)
}

// Describe describes what writes the objects.
func (s scaler[CT]) Describe() reconcilers.Description { return reconcilers.Describe(s.ObjectManager) }

// giveBack scales an object. The number belongs to a field manager of its own: the API server would take away what the
// node has applied, and does not desire.
func (s scaler[CT]) giveBack(ctx context.Context, actual CT, n int64) (CT, error) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return actual, err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": actual.GetUID(), "resourceVersion": actual.GetResourceVersion(),
			"annotations": map[string]any{replicasAnnotation: nil},
		},
		"spec": map[string]any{"replicas": n},
	})
	if err != nil {
		return actual, err
	}
	scaled := actual.DeepCopyObject().(CT)
	raw, owner := client.RawPatch(types.MergePatchType, patch), client.FieldOwner(s.fieldManager+"-replicas")
	if err := config.Patch(ctx, scaled, raw, owner); err != nil {
		return actual, fmt.Errorf("unable to scale %s as it was before it was suspended: %w", actual.GetName(), err)
	}
	return scaled, nil
}

// askForReplicas has the number of replicas kept, if the author does not desire one.
func askForReplicas(desired client.Object) {
	if isUnscaled(desired) {
		asked := map[string]string{replicasAnnotation: ""}
		desired.SetAnnotations(reconcilers.MergeMaps(desired.GetAnnotations(), asked))
	}
}

// annotateReplicas annotates what is desired with the number of replicas that the object has, or had before it was
// suspended. One is the default, and a rule may suspend an object in another way.
func annotateReplicas(desired, actual client.Object, exists bool) {
	n := replicasBefore(actual, exists)
	if n == 0 && exists {
		if now := replicasOf(actual); now != nil {
			n = *now
		}
	}
	annotations := maps.Clone(desired.GetAnnotations())
	if delete(annotations, replicasAnnotation); n > 1 && replicasOf(desired) != nil {
		annotations[replicasAnnotation] = strconv.FormatInt(n, 10)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	desired.SetAnnotations(annotations)
}

// replicasBefore returns the number of replicas that a suspended object had; zero if that is not known.
func replicasBefore(actual client.Object, exists bool) int64 {
	if !exists || !isScaled(actual) {
		return 0
	}
	if now := replicasOf(actual); now == nil || *now != 0 {
		return 0
	}
	n, err := strconv.ParseInt(actual.GetAnnotations()[replicasAnnotation], 10, 32)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// isScaled reports whether objects of the kind are scaled to zero to suspend them.
func isScaled(object client.Object) bool {
	switch object := object.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.ReplicaSet:
		return true
	case *unstructured.Unstructured:
		switch content.KindOf(object).GroupKind() {
		case kinds.Deployment, kinds.StatefulSet, kinds.ReplicaSet:
			return true
		}
	}
	return false
}

func isUnscaled(desired client.Object) bool { return isScaled(desired) && replicasOf(desired) == nil }

// replicasOf returns the number of replicas in the spec, or nil.
func replicasOf(object client.Object) *int64 {
	var n *int32
	switch object := object.(type) {
	case *appsv1.Deployment:
		n = object.Spec.Replicas
	case *appsv1.StatefulSet:
		n = object.Spec.Replicas
	case *appsv1.ReplicaSet:
		n = object.Spec.Replicas
	case *unstructured.Unstructured:
		if n, ok := content.Field(object, "spec", "replicas").(int64); ok {
			return &n
		}
	}
	if n == nil {
		return nil
	}
	return new(int64(*n))
}

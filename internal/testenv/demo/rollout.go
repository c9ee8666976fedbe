package demo

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RollsOut plays the part of the controllers of Deployments and StatefulSets, where they do not run: all replicas are
// ready. It holds when the objects exist, and that is in their status.
func (s *Scenario) RollsOut(workloads ...client.Object) Condition {
	return func(ctx context.Context) error {
		if s.Controllers {
			return s.Exist(workloads...)(ctx)
		}
		for _, workload := range workloads {
			gvk, err := s.Client.GroupVersionKindFor(workload)
			if err != nil {
				return err
			}
			found := &unstructured.Unstructured{}
			found.SetGroupVersionKind(gvk)
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(workload), found); err != nil {
				return err
			}
			found.Object["status"] = rolledOut(found)
			if err := s.Client.Status().Update(ctx, found); err != nil {
				return err
			}
		}
		return nil
	}
}

// rolledOut returns the status of a workload whose replicas are ready.
func rolledOut(workload *unstructured.Unstructured) map[string]any {
	replicas, found, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}
	status := map[string]any{"observedGeneration": workload.GetGeneration()}
	for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"} {
		status[field] = replicas
	}
	if workload.GetKind() == "StatefulSet" {
		revision := fmt.Sprint(workload.GetGeneration())
		maps.Copy(status, map[string]any{
			"currentReplicas": replicas, "currentRevision": revision, "updateRevision": revision,
		})
		return status
	}
	status["conditions"] = []any{
		map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
		map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
	}
	return status
}

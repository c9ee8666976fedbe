package testing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/testing/internal/apiresources"
)

// MakeReady does to an object what the controllers of a cluster do until it is ready, as kstatus sees it. It is for the
// Complete of a [Rollout]:
//
//   - A Deployment, StatefulSet, DaemonSet or ReplicaSet has all its replicas, and a Pod runs.
//   - A Job has completed.
//   - A PersistentVolumeClaim is bound, a Service of type LoadBalancer has an address, a Namespace is active.
//   - A CustomResourceDefinition is established, an APIService is available.
//   - Any other object has observed its generation, if its status or a status hint speaks of that. The conditions of a
//     status hint, and an existing condition Ready, are True; Reconciling and Stalled are False.
//
// Times are those of RolledOutAt. To complete some objects in another way, call it for the others.
func MakeReady(obj *unstructured.Unstructured) {
	switch obj.GroupVersionKind().GroupKind() {
	case kindDeployment, kindReplicaSet, kindStatefulSet:
		makeReplicasReady(obj)
	case kindDaemonSet:
		observe(obj)
		for _, field := range []string{
			"desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled",
			"numberAvailable", "numberReady",
		} {
			set(obj, int64(1), "status", field)
		}
	case kinds.Job:
		set(obj, count64(obj, 1, "spec", "completions"), "status", "succeeded")
		set(obj, RolledOutAt.Format(time.RFC3339), "status", "startTime")
		set(obj, RolledOutAt.Format(time.RFC3339), "status", "completionTime")
		makeTrue(obj, "SuccessCriteriaMet", "Complete")
	case kindPod:
		set(obj, "Running", "status", "phase")
		makeTrue(obj, "PodScheduled", "Initialized", "ContainersReady", "Ready")
	case kindPersistentVolumeClaim:
		set(obj, "Bound", "status", "phase")
	case kinds.Namespace:
		set(obj, "Active", "status", "phase")
	case kinds.Service:
		makeReachable(obj)
	case kinds.CustomResourceDefinition:
		apiresources.Establish(obj, RolledOutAt)
	case kinds.APIService:
		makeTrue(obj, "Available")
	default:
		makeConditionsGood(obj)
	}
}

// The kinds that are completed, besides those of package kinds.
var (
	kindDeployment            = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	kindReplicaSet            = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	kindStatefulSet           = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	kindDaemonSet             = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	kindPod                   = schema.GroupKind{Kind: "Pod"}
	kindPersistentVolumeClaim = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

func makeReplicasReady(obj *unstructured.Unstructured) {
	observe(obj)
	replicas := count64(obj, 1, "spec", "replicas")
	fields := []string{"replicas", "readyReplicas", "availableReplicas"}
	switch obj.GetKind() {
	case "Deployment":
		fields = append(fields, "updatedReplicas")
		makeTrue(obj, "Available")
		// A roll-out with a deadline is finished only for this reason.
		setCondition(obj, "Progressing", "True", "NewReplicaSetAvailable")
	case "ReplicaSet":
		fields = append(fields, "fullyLabeledReplicas")
	case "StatefulSet":
		fields = append(fields, "currentReplicas", "updatedReplicas")
		set(obj, obj.GetName()+"-1", "status", "currentRevision")
		set(obj, obj.GetName()+"-1", "status", "updateRevision")
	}
	for _, field := range fields {
		set(obj, replicas, "status", field)
	}
}

// makeReachable gives a Service of type LoadBalancer addresses that documentation uses.
func makeReachable(obj *unstructured.Unstructured) {
	if kind, _, _ := unstructured.NestedString(obj.Object, "spec", "type"); kind != "LoadBalancer" {
		return
	}
	if ip, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterIP"); ip == "" {
		set(obj, "192.0.2.1", "spec", "clusterIP")
	}
	set(obj, []any{map[string]any{"ip": "203.0.113.1"}}, "status", "loadBalancer", "ingress")
}

func makeConditionsGood(obj *unstructured.Unstructured) {
	if _, reported, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); reported {
		observe(obj)
	}
	for _, name := range []string{"Ready", "Reconciling", "Stalled"} {
		if conditionAt(conditionsOf(obj), name) >= 0 {
			setCondition(obj, name, map[bool]string{true: "True", false: "False"}[name == "Ready"], "")
		}
	}
	for _, prefix := range hintPrefixes(obj) {
		settings, err := generator.ReadSettings(prefix, obj.GetAnnotations())
		if err != nil {
			continue // the component says so
		}
		if settings.StatusHint.HasObservedGeneration {
			observe(obj)
		}
		if settings.StatusHint.HasReadyCondition {
			makeTrue(obj, "Ready")
		}
		makeTrue(obj, settings.StatusHint.Conditions...)
	}
}

// hintPrefixes returns the prefixes under which an object has status hints, in order.
func hintPrefixes(obj *unstructured.Unstructured) []string {
	var prefixes []string
	for _, key := range slices.Sorted(maps.Keys(obj.GetAnnotations())) {
		if prefix, ok := strings.CutSuffix(key, "/"+generator.AnnotationStatusHint); ok {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

func observe(obj *unstructured.Unstructured) {
	set(obj, obj.GetGeneration(), "status", "observedGeneration")
}

// set sets a field. A parent that is no map stays as it is.
func set(obj *unstructured.Unstructured, value any, path ...string) {
	_ = unstructured.SetNestedField(obj.Object, value, path...)
}

// count64 returns a number, or other if there is none.
func count64(obj *unstructured.Unstructured, other int64, path ...string) int64 {
	if n, found, err := unstructured.NestedInt64(obj.Object, path...); found && err == nil {
		return n
	}
	return other
}

func makeTrue(obj *unstructured.Unstructured, conditions ...string) {
	for _, name := range conditions {
		setCondition(obj, name, "True", "")
	}
}

func conditionsOf(obj *unstructured.Unstructured) []any {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return conditions
}

// conditionAt returns the index of a condition, -1 if there is none.
func conditionAt(conditions []any, name string) int {
	return slices.IndexFunc(conditions, func(condition any) bool {
		fields, ok := condition.(map[string]any)
		return ok && fields["type"] == name
	})
}

func has(condition any, field, value string) bool { return condition.(map[string]any)[field] == value }

// setCondition sets the status of a condition, and its reason, which is the name if it is empty. A condition that has
// the status already, and the reason unless it is empty, stays as it is.
func setCondition(obj *unstructured.Unstructured, name, status, reason string) {
	conditions := conditionsOf(obj)
	condition := map[string]any{
		"type": name, "status": status, "reason": cmp.Or(reason, name), "message": "",
		"lastTransitionTime": RolledOutAt.Format(time.RFC3339),
	}
	switch i := conditionAt(conditions, name); {
	case i < 0:
		conditions = append(conditions, condition)
	case has(conditions[i], "status", status) && (reason == "" || has(conditions[i], "reason", reason)):
		return
	default:
		conditions[i] = condition
	}
	set(obj, conditions, "status", "conditions")
}

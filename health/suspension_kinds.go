package health

import (
	"fmt"

	"github.com/espalier-dev/espalier/internal/content"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// SetField returns a function for [Suspension].Suspend that sets the field at a path to a value, which is as in JSON.
// The function returns an error if the value cannot be written as JSON, or if there is no place for the field.
func SetField(value any, path ...string) func(desired *unstructured.Unstructured) error {
	encoded, err := json.Marshal(value)
	return func(desired *unstructured.Unstructured) error {
		if err != nil {
			return err
		}
		// Each object gets a value of its own.
		var own any
		if err := json.Unmarshal(encoded, &own); err != nil {
			return err
		}
		if len(path) == 0 || desired == nil || desired.Object == nil {
			return fmt.Errorf("there is no field to set")
		}
		return unstructured.SetNestedField(desired.Object, own, path...)
	}
}

// withoutReplicas says whether a workload has no pods any more.
func withoutReplicas(live *unstructured.Unstructured) (bool, string) {
	if !content.Observed(live) {
		return false, "has not been observed yet"
	}
	return waitFor(max(status(live, "replicas"), status(live, "terminatingReplicas")), "replica", "go")
}

// finished reports whether a Job is complete or has failed.
func finished(live *unstructured.Unstructured) bool {
	for _, c := range content.ConditionsOf(live.Object) {
		if c.Status == "True" && (c.Type == "Complete" || c.Type == "Failed") {
			return true
		}
	}
	return false
}

// withoutPods says whether a Job has no pods that run.
func withoutPods(live *unstructured.Unstructured) (bool, string) {
	pods := max(status(live, "active"), status(live, "ready"), status(live, "terminating"))
	return waitFor(pods, "pod", "end")
}

// withoutJobs says whether a CronJob has no Jobs that run.
func withoutJobs(live *unstructured.Unstructured) (bool, string) {
	return waitFor(int64(len(content.List(live, "status", "active"))), "Job", "end")
}

func status(live *unstructured.Unstructured, field string) int64 {
	return content.Number(live, 0, "status", field)
}

// waitFor says that n things have to go first.
func waitFor(n int64, noun, verb string) (done bool, message string) {
	if n <= 0 {
		return true, ""
	}
	return false, waitingFor(n, noun, verb)
}

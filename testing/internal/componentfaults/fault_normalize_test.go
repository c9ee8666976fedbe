package componentfaults_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkForeign checks one object of the namespace: what belongs to others is as it was, and what is ours is recorded.
func (r *faultRun) checkForeign(u *unstructured.Unstructured) {
	for kind, resource := range resourceOfKind {
		if !strings.HasSuffix(u.GetKind(), kind) {
			continue
		}
		key := resource + "/" + u.GetNamespace() + "/" + u.GetName()
		if is, want := string(u.GetUID())+" "+u.GetResourceVersion(), r.foreign[key]; want != "" && is != want {
			r.violated("L4: %s was touched", key)
		}
		if u.GetLabels()[faultPrefix+"/owner-id"] == r.ownerID && !r.stored[key] {
			r.violated("L2: %s is there, and the inventory does not name it", key)
		}
	}
}

var uidText = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// normal is an object without what differs from run to run.
func (r *faultRun) normal(u *unstructured.Unstructured) string {
	metadata := u.Object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp"} {
		if _, ok := metadata[field]; ok && field != "deletionTimestamp" {
			delete(metadata, field)
		} else if ok {
			metadata[field] = "now"
		}
	}
	if strings.HasSuffix(u.GetKind(), "CustomResourceDefinition") {
		// A fence comes and goes.
		delete(metadata, "generation")
	}
	annotations := maps.Clone(u.GetAnnotations())
	delete(annotations, meddled)
	if digest := faultPrefix + "/digest"; annotations[digest] != "" {
		annotations[digest] = "some"
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetAnnotations(annotations)
	if status, ok := u.Object["status"].(map[string]any); ok {
		normalStatus(status)
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		panic(err) // a mistake in a test
	}
	return uidText.ReplaceAllString(r.anonymous(string(text)), "UID")
}

// normalStatus takes out times, and digests of what has names of the run in it.
func normalStatus(status map[string]any) {
	for _, field := range []string{"lastObservedAt", "lastAppliedAt", "processingSince", "processingDigest", "lastProcessingDigest"} {
		if _, ok := status[field]; ok {
			status[field] = "some"
		}
	}
	conditions, _ := status["conditions"].([]any)
	for _, condition := range conditions {
		delete(condition.(map[string]any), "lastTransitionTime")
	}
	inventory, _ := status["inventory"].([]any)
	for _, item := range inventory {
		record := item.(map[string]any)
		if record["kind"] == "CustomResourceDefinition" {
			delete(record, "generation")
		}
		// Another client may be the first to create it.
		delete(record, "adopted")
		// Who creates an object owns more of its fields than who applies it.
		for _, field := range []string{"uid", "digest", "fields"} {
			if _, ok := record[field]; ok {
				record[field] = "some"
			}
		}
	}
}

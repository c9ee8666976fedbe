package write

import (
	"context"
	"maps"

	"github.com/espalier-dev/espalier/internal/managedfields"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Body returns what is written of a manifest, with labels and annotations added. What the API server itself sets is
// left out. What the body shares with content must not be changed; its metadata, labels and annotations are not shared.
func Body(content map[string]any, labels, annotations map[string]string) *unstructured.Unstructured {
	body := maps.Clone(content)
	metadata := cloneMap(body["metadata"])
	for _, name := range managedfields.ServerMetadata {
		delete(metadata, name)
	}
	metadata["labels"] = with(metadata["labels"], labels)
	metadata["annotations"] = with(metadata["annotations"], annotations)
	body["metadata"] = metadata
	return &unstructured.Unstructured{Object: body}
}

// with returns a copy of the texts with more of them.
func with(texts any, more map[string]string) map[string]any {
	all := cloneMap(texts)
	for name, value := range more {
		all[name] = value
	}
	return all
}

// cloneMap returns a shallow copy of v, or an empty map if v is not a map.
func cloneMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	if m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// Strict makes the API server refuse fields that it does not know, as it does in an apply.
const Strict client.FieldValidation = metav1.FieldValidationStrict

// Replace updates live, the object as it was read, to body. Fields that others have set are removed, except for
// finalizers, and for fields that were assigned to live and cannot be set again. Body then is the object as the API
// server has it. It is refused if the object has changed since it was read.
func (w Writer) Replace(ctx context.Context, body, live *unstructured.Unstructured) error {
	body.Object = withAssigned(body.GroupVersionKind().GroupKind(), body.Object, live.Object)
	for _, finalizer := range live.GetFinalizers() {
		controllerutil.AddFinalizer(body, finalizer)
	}
	VersionOf(live).setOn(body)
	return w.Client.Update(ctx, body, client.FieldOwner(w.Migration.Owner.Name), Strict)
}

// assigned are fields that the API server or a controller fills in once, and that it does not let anybody change or
// take away: an update without them would be refused. It is not the list of all such fields. Those of a Service the API
// server fills in again by itself, and a Pod has so many that it cannot be replaced.
var assigned = map[schema.GroupKind][][]string{
	{Kind: "PersistentVolumeClaim"}: {{"spec", "volumeName"}, {"spec", "storageClassName"}},
	{Group: "batch", Kind: "Job"}: {
		{"spec", "selector"},
		{"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"},
		{"spec", "template", "metadata", "labels", "batch.kubernetes.io/job-name"},
		{"spec", "template", "metadata", "labels", "controller-uid"},
		{"spec", "template", "metadata", "labels", "job-name"},
	},
}

// withAssigned returns content with the fields that were assigned to live, where content has none of its own.
func withAssigned(kind schema.GroupKind, content, live map[string]any) map[string]any {
	for _, path := range assigned[kind] {
		if _, found, _ := unstructured.NestedFieldNoCopy(content, path...); !found {
			content = withPath(content, live, path, true)
		}
	}
	return content
}

// finalizers are kept wherever they come from: the API server itself adds some to what is created, and one that goes
// too soon costs data, one that stays only time.
var finalizers = []string{"metadata", "finalizers"}

// assignedOnce are fields that admission plug-ins of the API server set when an object is created, such as the default
// limits of a Pod, and do not set again if they are removed: the API server refuses that, or the object means something
// else from then on. The managed fields do not distinguish them from fields that the creator wanted.
var assignedOnce = map[schema.GroupKind][][]string{
	{Kind: "Pod"}:                                 {{"spec"}},
	{Kind: "PersistentVolumeClaim"}:               {{"spec"}},
	{Group: "networking.k8s.io", Kind: "Ingress"}: {{"spec", "ingressClassName"}},
}

// AssignedOnce returns the fields of a kind that a migration must not take away.
func AssignedOnce(kind schema.GroupKind) [][]string { return assignedOnce[kind] }

// Kept returns the fields that a migration does not take away from an object of that kind, beside those that the caller
// keeps.
func Kept(kind schema.GroupKind, others ...[]string) [][]string {
	return append(append(others, finalizers), assignedOnce[kind]...)
}

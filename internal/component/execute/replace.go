package execute

import (
	"context"

	"github.com/espalier-dev/espalier/internal/component/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// replace updates the object that is there to the content that is desired. Fields that others have set are removed,
// except for finalizers, ignored fields, and fields that cannot be set again.
func (e *Executor) replace(ctx context.Context, result *Result, object *manifest.Object, content map[string]any) error {
	op := result.Operation
	live := e.target(op)
	if err := e.readCurrent(ctx, op, live); err != nil {
		return err
	}
	content = withIgnored(content, live.Object, object.Settings.IgnoreFields, true)
	content = withAssigned(op.Key.GroupKind(), content, live.Object)
	body := e.body(object, content)
	for _, finalizer := range live.GetFinalizers() {
		controllerutil.AddFinalizer(body, finalizer)
	}
	version := live.GetResourceVersion()
	body.SetUID(op.UID)
	body.SetResourceVersion(version)
	if err := e.Client.Update(ctx, body, e.fieldManager(), strict); err != nil {
		return err
	}
	result.Object = body
	result.Unchanged = body.GetResourceVersion() == version
	return nil
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

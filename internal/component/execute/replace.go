package execute

import (
	"context"
	"slices"

	"github.com/espalier-dev/espalier/internal/component/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// replace updates the object that is there to the content that is desired. What others have set goes, but for finalizers, fields that are
// ignored, and those that nobody could set again.
func (e *Executor) replace(ctx context.Context, result *Result, object *manifest.Object, content map[string]any) error {
	op := result.Operation
	live := e.target(op)
	if err := e.readCurrent(ctx, op, live); err != nil {
		return err
	}
	content = withIgnored(content, live.Object, object.Settings.IgnoreFields, true)
	content = withAssigned(op.Key.GroupKind(), content, live.Object)
	body := e.body(object, content)
	if finalizers := union(body.GetFinalizers(), live.GetFinalizers()); len(finalizers) > 0 {
		body.SetFinalizers(finalizers)
	}
	version := live.GetResourceVersion()
	body.SetUID(op.UID)
	body.SetResourceVersion(version)
	if err := e.Client.Update(ctx, body, e.fieldManager()); err != nil {
		return err
	}
	result.Object = body
	result.Unchanged = body.GetResourceVersion() == version
	return nil
}

// union returns the elements of a, and those of b besides.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// assigned are fields that the API server or a controller fills in once, and that it does not let anybody change or take away: an
// update without them would be refused. It is not the list of all such fields. Those of a Service the API server fills in again
// by itself, and those of a Pod are so many that one cannot be replaced.
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
		if have(content, path) {
			continue
		}
		carried := carry(optional{content, true}, optional{live, true}, path, true)
		if m, ok := carried.value.(map[string]any); ok {
			content = m
		}
	}
	return content
}

func have(content map[string]any, path []string) bool {
	v := optional{content, true}
	for _, name := range path {
		v = member(v, name)
	}
	return v.exists
}

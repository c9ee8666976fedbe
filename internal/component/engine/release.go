package engine

import (
	"context"
	"errors"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// noteRefusal keeps the answer of the API server if it refuses to write a desired object.
func (r *run) noteRefusal(result *execute.Result) {
	o := &result.Operation
	var answer apierrs.APIStatus
	if o.Action == plan.ActionPurge || o.Action == plan.ActionOrphan || r.objects[o.Key] == nil {
		return
	}
	if errors.As(result.Err, &answer) {
		r.refused = append(r.refused, plan.Refusal{Key: o.Key, Status: answer.Status()})
	}
}

// lookAgain reports whether there may be more to do than the plan says, once all of that is done.
func (r *run) lookAgain(ctx context.Context, p plan.Plan) (again bool, err error) {
	if r.release(ctx, p) {
		return true, nil
	}
	return r.observeDeleted(ctx)
}

// release finds the dropped objects because of which the API server has refused writes since the last call. It reads
// each object that may be one. The next plan deletes those that are, in the version that was read. It reports whether
// there is another plan to make.
func (r *run) release(ctx context.Context, p plan.Plan) (found bool) {
	refused := r.refused
	r.refused = nil
	if len(refused) == 0 {
		return false
	}
	records, executor := r.planner.Inventory(), r.executor(p)
	for i := range records {
		record := &records[i]
		key := plan.KeyOf(*record)
		if _, failed := r.in.Failed[key]; failed {
			continue
		}
		switch live, err := r.released(ctx, executor, record, refused); {
		case err != nil:
			r.in.Failed[key], found = err.Error(), true
		case live != nil:
			if r.in.Released == nil {
				r.in.Released = map[plan.Key]string{}
			}
			r.in.Released[key], found = live.GetResourceVersion(), true
		}
	}
	return found
}

// released returns the object with this record as it is in the cluster if one of the refusals releases it, and nil
// otherwise. It makes no request for an object that cannot be the cause of any.
func (r *run) released(
	ctx context.Context, executor *execute.Executor, record *apis.InventoryRecord, refused []plan.Refusal,
) (live *unstructured.Unstructured, err error) {
	var unwritten []map[string]any
	for i := range refused {
		if !refused[i].MayRelease(record) {
			continue
		}
		if live == nil {
			if live, err = executor.Read(ctx, record); live == nil || err != nil {
				return nil, err
			}
			if unwritten, err = r.unwrittenMutators(); err != nil {
				return nil, err
			}
		}
		desired, err := r.objects[refused[i].Key].Manifest()
		if err != nil {
			return nil, err
		}
		if refused[i].Releases(record, live, desired.Object, unwritten) {
			return live, nil
		}
	}
	return nil, nil
}

// unwrittenMutators returns the manifests of the mutating webhook configurations that are not written yet.
func (r *run) unwrittenMutators() (manifests []map[string]any, err error) {
	for i := range r.in.Desired {
		key := r.in.Desired[i].Key
		if record, ok := r.planner.Record(key); !ok || !plan.IsUnwrittenMutator(&record) {
			continue
		}
		manifest, err := r.objects[key].Manifest()
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, manifest.Object)
	}
	return manifests, nil
}

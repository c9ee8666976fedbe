package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// goesWithNamespace reports whether an object of a component that is being deleted goes with its namespace. The rights
// of the component may be in that namespace too, and go first. An object that defines types is never left to its
// namespace: others may have instances.
func (r *run) goesWithNamespace(ctx context.Context, key plan.Key) (bool, error) {
	definesTypes := func(record apis.InventoryRecord) bool {
		return plan.KeyOf(record) == key && len(record.ManagedTypes) > 0
	}
	if r.task.NamespaceGoes == nil || key.Namespace == "" || slices.ContainsFunc(r.in.Inventory, definesTypes) {
		return false, nil
	}
	goes, err := r.task.NamespaceGoes(ctx, key.Namespace)
	if err != nil {
		const text = "%s cannot be deleted, and it is not known whether it goes with its namespace: %w"
		return false, fmt.Errorf(text, key, err)
	}
	return goes, nil
}

// leaveUnreadable counts objects that may not be read as gone if they go with their namespace.
func (r *run) leaveUnreadable(ctx context.Context) error {
	for i := range r.in.Inventory {
		key := plan.KeyOf(r.in.Inventory[i])
		if !r.in.Observed[key].Refused {
			continue
		}
		goes, err := r.goesWithNamespace(ctx, key)
		if err != nil {
			return err
		}
		if goes {
			r.in.Observed[key] = plan.Observed{Presence: plan.Absent}
		}
	}
	return nil
}

// leaveUndeletable counts objects that may not be deleted as gone if they go with their namespace. It returns the other
// results.
func (r *run) leaveUndeletable(ctx context.Context, results []execute.Result) []execute.Result {
	var others []execute.Result
	for _, result := range results {
		goes := false
		if apierrs.IsForbidden(result.Err) || apierrs.IsUnauthorized(result.Err) {
			var err error
			if goes, err = r.goesWithNamespace(ctx, result.Operation.Key); err != nil {
				result.Err = errors.Join(result.Err, err)
			}
		}
		if goes {
			r.in.Observed[result.Operation.Key] = plan.Observed{Presence: plan.Absent}
		} else {
			others = append(others, result)
		}
	}
	return others
}

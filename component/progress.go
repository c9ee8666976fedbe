package component

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Progress is the fact how a component is after a request, for observers, see [reconcilers.Observer].
type Progress struct {
	// State, Reason and Message are those of the condition of the component. They are empty once the component is
	// deleted and nothing of it is left.
	State   apis.ComponentState
	Reason  string
	Message string
	// Since is since when a roll-out has been under way; zero if none is.
	Since time.Time
	// Revision is the revision of what is desired.
	Revision int64
	// Inventory has the records of the objects. It is nil if nothing was found out about them. It must not be changed,
	// and is valid until the observer returns.
	Inventory []apis.InventoryRecord
	// Next are the operations that were left for a later request, in canonical order.
	Next []Operation
	// Obstacles say what is waited for, and what failed.
	Obstacles []Obstacle
	// Plan makes a fresh plan, also after the request: of the resource as it is then, with the configs of this request.
	// It calls the generator, reads the objects, and tries some writes in dry runs. What nodes before this one have
	// stored or changed is not there. It is nil for an item of a ForEach, below a CastResource, and where a supervisor
	// has the objects suspended or withdrawn.
	Plan func(ctx context.Context) (*Plan, error)
}

// Obstacle is why an object of a component is not as it is to be.
type Obstacle struct {
	// Object is the kind, namespace and name.
	Object string
	// Kind is waiting, failed, blocked, contested or not ours.
	Kind string
	// Message says more. It has no values of a Secret.
	Message string
}

// Summary returns the state, since when a roll-out has been under way, the number of objects by phase, and the number
// of obstacles by kind. An observer whose package is to be free of this one asks for an interface with the method. The
// phases are nil if nothing was found out about the objects.
func (p Progress) Summary() (
	state apis.ComponentState, since time.Time, phases map[apis.InventoryPhase]int, obstacles map[string]int,
) {
	if p.Inventory != nil {
		phases = map[apis.InventoryPhase]int{}
	}
	for i := range p.Inventory {
		phases[p.Inventory[i].Phase]++
	}
	for i := range p.Obstacles {
		if obstacles == nil {
			obstacles = map[string]int{}
		}
		obstacles[p.Obstacles[i].Kind]++
	}
	return p.State, p.Since, phases, obstacles
}

// Wave returns the order of the wave that a roll-out or a deletion is in: the first one with an object that is not as
// it is to be. There is none if all are, or if nothing was found out about the objects.
func (p Progress) Wave() (order int16, isUnderWay bool) {
	isDeletion := p.State == apis.ComponentDeleting || p.State == apis.ComponentDeletionPending
	for i := range p.Inventory {
		record := &p.Inventory[i]
		if !isDeletion && record.IsDone() {
			continue
		}
		of := record.ApplyOrder
		if isDeletion {
			of = record.DeleteOrder
		}
		if !isUnderWay || of < order {
			order, isUnderWay = of, true
		}
	}
	return order, isUnderWay
}

// Watching is the fact that components of a node begin to watch the types of their objects in a cluster, for observers,
// see [reconcilers.Observer].
type Watching struct {
	size  func() (types, objects int, running bool)
	kinds func() map[schema.GroupKind]int
}

// Size returns how many types the components of the node watch in the cluster now, and of how many objects the metadata
// is kept. Running is false, and stays so, once they watch nothing there. It is quick, and may be called at any time.
func (w Watching) Size() (types, objects int, running bool) { return w.size() }

// Kinds returns of how many objects of each type that is watched in the cluster the metadata is kept now.
func (w Watching) Kinds() map[schema.GroupKind]int { return w.kinds() }

// noteProgress tells observers how the component is.
func (r *request[T]) noteProgress(ctx context.Context, c condition) {
	if !reconcilers.IsObserved(ctx) {
		return
	}
	progress := Progress{
		State: c.state, Reason: c.reason, Message: c.message,
		Revision: r.revision, Inventory: r.status.Inventory, Plan: r.planLater(ctx),
	}
	if r.status.ProcessingSince != nil {
		progress.Since = r.status.ProcessingSince.Time
	}
	if r.report != nil {
		progress.Next = operationsOf(&r.report.Plan.Next)
		for i := range r.report.Plan.Obstacles {
			o := &r.report.Plan.Obstacles[i]
			progress.Obstacles = append(progress.Obstacles, Obstacle{
				Object: o.Key.String(), Kind: string(o.Kind), Message: o.Message,
			})
			if o.Kind == plan.ObstacleContested {
				reconcilers.Note(ctx, reconcilers.Held{Object: refOf(o.Key), Kind: reconcilers.HeldContested})
			}
		}
		if len(progress.Inventory) == 0 {
			progress.Inventory = append([]apis.InventoryRecord{}, r.report.Inventory...)
		}
	}
	reconcilers.Note(ctx, progress)
}

// requestVerb is the verb of the request for an operation.
func requestVerb(action plan.Action) string {
	switch action {
	case plan.ActionCreate:
		return "create"
	case plan.ActionReplace:
		return "update"
	case plan.ActionAdopt, plan.ActionApply:
		return "apply"
	case plan.ActionRelabel, plan.ActionOrphan:
		return "patch"
	}
	return "delete"
}

// refOf names an object for observers. Its version is not known.
func refOf(key plan.Key) reconcilers.ObjectRef {
	return reconcilers.ObjectRef{
		GroupVersionKind: schema.GroupVersionKind{Group: key.Group, Kind: key.Kind},
		Namespace:        key.Namespace, Name: key.Name,
	}
}

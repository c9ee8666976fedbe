package plan_test

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apimachinery/pkg/types"
)

// violationOf says which invariant the plan breaks. It is empty if there is none.
func violationOf(in plan.Input, p plan.Plan) string {
	checks := []func(plan.Input, plan.Plan) string{once, recorded, ours, fenced, kept, complete, waits, held}
	for _, check := range checks {
		if violation := check(in, p); violation != "" {
			return violation
		}
	}
	return ""
}

// once: nothing is done twice, and nothing that failed is done again.
func once(in plan.Input, p plan.Plan) string {
	seen := map[plan.Key]bool{}
	for _, o := range p.Next.Operations {
		if seen[o.Key] {
			return "two operations on " + o.Key.String()
		}
		seen[o.Key] = true
		if _, failed := in.Failed[o.Key]; failed {
			return "an operation that failed is done again: " + o.String()
		}
	}
	return ""
}

// recorded is invariant L2.
func recorded(_ plan.Input, p plan.Plan) string {
	keys := map[plan.Key]bool{}
	for _, r := range p.Inventory {
		if keys[plan.KeyOf(r)] {
			return "two records of " + plan.KeyOf(r).String()
		}
		keys[plan.KeyOf(r)] = true
	}
	for _, o := range p.Next.Operations {
		if o.Pattern < 0 && !keys[o.Key] {
			return "L2: not recorded: " + o.String()
		}
	}
	return ""
}

// ours is invariant L4.
func ours(in plan.Input, p plan.Plan) string {
	desired := desiredBy(in)
	records, planned := recordsBy(in.Inventory), recordsBy(p.Inventory)
	for _, o := range p.Next.Operations {
		if o.Pattern >= 0 {
			continue
		}
		seen := in.Observed[o.Key]
		if o.Action == plan.ActionCreate {
			if seen.Presence != plan.Absent || o.UID != "" {
				return "L4: a create of what may be there: " + o.String()
			}
			continue
		}
		if seen.Presence != plan.Present || o.UID == "" || o.UID != seen.UID {
			return "L4: the UID is not that of what is there: " + o.String()
		}
		if seen.Ownership == plan.Ours {
			continue
		}
		d := desired[o.Key]
		wasOurs := seen.Ownership == plan.Unlabelled && records[o.Key].UID == seen.UID ||
			plan.IsRemnant(o.Key.GroupKind(), seen.Ownership, seen.Claim, records[o.Key].UID)
		switch {
		case d == nil || o.Action != plan.ActionAdopt && o.Action != plan.ActionRelabel && o.Action != plan.ActionRecreate:
			return "L4: not ours: " + o.String()
		case o.Action == plan.ActionAdopt && !planned[o.Key].Adopted:
			return "L2: adopted without a record of that: " + o.String()
		case wasOurs && seen.Ownership != plan.Foreign:
		case seen.Ownership == plan.Foreign && (d.AdoptionPolicy != apis.AdoptAlways || records[o.Key].UID != ""):
			return "L4: taken from its owner: " + o.String()
		case d.AdoptionPolicy == apis.AdoptNever || d.AdoptionPolicy == "":
			return "L4: adopted against its policy: " + o.String()
		}
	}
	return ""
}

// fenced is invariant L5.
func fenced(in plan.Input, p plan.Plan) string {
	records := recordsBy(p.Inventory)
	committed := false
	for _, r := range in.Inventory {
		committed = committed || in.Deleting && r.Digest != "" && (r.Phase == apis.PhaseScheduledForDeletion ||
			r.Phase == apis.PhaseDeleting)
	}
	for _, o := range p.Next.Operations {
		r := records[o.Key]
		// The server behind an APIService keeps the instances.
		defines := (len(r.ManagedTypes) > 0 || r.Kind == "CustomResourceDefinition") && r.Kind != "APIService"
		switch o.Action {
		case plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate:
			if in.Deleting && o.ResourceVersion != in.Observed[o.Key].ResourceVersion {
				return "an object is deleted with the component in any version: " + o.String()
			}
			if (defines || o.Key.GroupKind() == kinds.Namespace) &&
				(!r.IgnoreForeignInstances || o.Action != plan.ActionDelete) {
				return "L5: a type or a namespace is deleted without a check: " + o.String()
			}
		case plan.ActionDeleteType:
			state := in.Uses[o.Key].State
			if state != plan.ForeignNone && (!committed || state != plan.ForeignUnchecked) {
				return "L5: a type may be in use: " + o.String()
			}
		case plan.ActionDeleteNamespace:
			if o.Key.GroupKind() != kinds.Namespace || in.Uses[o.Key].State > plan.ForeignNone {
				return "L5: not a namespace, or one in which others have objects: " + o.String()
			}
		default:
		}
	}
	return ""
}

// kept: a record leaves only when its object is gone, is not ours, or has another record.
func kept(in plan.Input, p plan.Plan) string {
	records := recordsBy(p.Inventory)
	uids := map[types.UID]bool{}
	for _, d := range in.Desired {
		uids[in.Observed[d.Key].UID] = true
	}
	for _, r := range in.Inventory {
		key := plan.KeyOf(r)
		if _, there := records[key]; there {
			continue
		}
		seen := in.Observed[key]
		if seen.Presence == plan.Present && seen.Ownership == plan.Ours && !uids[seen.UID] ||
			seen.Presence == plan.PresenceUnknown {
			return "a record was dropped of " + key.String()
		}
	}
	return ""
}

// complete: each desired object has a record, if it can exist. A plan that is done has no operations, obstacles, or records to delete.
func complete(in plan.Input, p plan.Plan) string {
	records := recordsBy(p.Inventory)
	if !in.Deleting {
		for _, d := range in.Desired {
			if in.Observed[d.Key].Misplaced {
				if records[d.Key].Name != "" || p.Done {
					return "there is a record of what cannot exist, or nothing waits for it: " + d.String()
				}
			} else if records[d.Key].Digest != d.Digest {
				return "no record says what is desired of " + d.String()
			}
		}
	}
	if p.Done && (len(p.Next.Operations) > 0 || len(p.Obstacles) > 0) {
		return "done, and yet not"
	}
	if p.Done && in.Deleting && len(p.Inventory) > 0 {
		return "deleted, and yet there are records"
	}
	return ""
}

// held: an empty set changes nothing that exists, unless that is allowed.
func held(in plan.Input, p plan.Plan) string {
	lost := !in.Deleting && !in.AllowEmpty && len(in.Desired) == 0 && len(in.Leaving) == 0
	var stays []apis.InventoryRecord
	for _, r := range in.Inventory {
		known := func(other apis.InventoryRecord) bool { return plan.KeyOf(other) == plan.KeyOf(r) }
		if !slices.ContainsFunc(stays, known) {
			stays = append(stays, r)
		}
		if exists := r.Phase != apis.PhaseCompleted; exists && lost && !p.Empty {
			return "no object is desired, and the plan goes on"
		}
	}
	if p.Empty && (!lost || p.Done || len(p.Next.Operations) > 0 || !reflect.DeepEqual(p.Inventory, stays)) {
		return "the set is empty, and something is done"
	}
	return ""
}

// waits: a plan that has no operations and is not done says why.
func waits(_ plan.Input, p plan.Plan) string {
	if !p.Done && !p.Empty && len(p.Next.Operations) == 0 && len(p.Obstacles) == 0 {
		return fmt.Sprintf("nothing to do, and no reason: %v", p.Inventory)
	}
	return ""
}

func desiredBy(in plan.Input) map[plan.Key]*plan.Desired {
	desired := map[plan.Key]*plan.Desired{}
	for i := range in.Desired {
		if desired[in.Desired[i].Key] == nil && !in.Deleting {
			desired[in.Desired[i].Key] = &in.Desired[i]
		}
	}
	return desired
}

func recordsBy(inventory []apis.InventoryRecord) map[plan.Key]apis.InventoryRecord {
	records := map[plan.Key]apis.InventoryRecord{}
	for _, r := range inventory {
		if _, twice := records[plan.KeyOf(r)]; !twice {
			records[plan.KeyOf(r)] = r
		}
	}
	return records
}

package takeover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/types"
)

// record is a record of the inventory of the old engine.
type record struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	AdoptionPolicy  string `json:"adoptionPolicy"`
	ReconcilePolicy string `json:"reconcilePolicy"`
	UpdatePolicy    string `json:"updatePolicy"`
	DeletePolicy    string `json:"deletePolicy"`

	ApplyOrder   int                `json:"applyOrder"`
	DeleteOrder  int                `json:"deleteOrder"`
	ManagedTypes []apis.ManagedType `json:"managedTypes,omitempty"`

	Digest string `json:"digest"`
	Phase  string `json:"phase,omitempty"`
	Status string `json:"status,omitempty"`
}

func (r *record) key() plan.Key {
	return plan.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// isApplied reports whether the old engine writes the object by server-side apply.
func (r *record) isApplied() bool {
	return r.UpdatePolicy == "SsaMerge" || r.UpdatePolicy == "SsaOverride"
}

// records reads the inventory of a status of the old engine.
func records(status map[string]any) ([]record, error) {
	content, err := json.Marshal(status["inventory"])
	if err != nil {
		return nil, err
	}
	var all []record
	if err := json.Unmarshal(content, &all); err != nil {
		return nil, fmt.Errorf("status.inventory is not that of the old engine: %w", err)
	}
	return all, nil
}

// isOurs reports whether the inventory of a status is one of ours: the old engine records no UIDs, and keeps none
// elsewhere.
func isOurs(status map[string]any) bool {
	if status["inventoryKind"] != nil {
		return true
	}
	all, _ := status["inventory"].([]any)
	for _, r := range all {
		if r, ok := r.(map[string]any); ok && r["uid"] != nil {
			return true
		}
	}
	return false
}

// hasConverted reports whether a status has another inventory than the old operator has left. It does not go by the
// UIDs of ours: the API server drops them when the definition of the old operator is there again.
func (s *State) hasConverted(status map[string]any) bool {
	return !sameJSON(s.Status["inventory"], status["inventory"])
}

// updatePolicies are our words for those of the old engine.
var updatePolicies = map[string]apis.UpdatePolicy{
	"": "", "Replace": apis.UpdateReplace, "Recreate": apis.UpdateRecreate,
	"SsaMerge": apis.UpdateApply, "SsaOverride": apis.UpdateApplyOverride,
}

// newRecord returns our record of an object with a UID, which is empty if the object does not exist, or belongs to
// others.
//
// The record of an object that was purged says that it was purged for what is desired next, see
// [plan.DigestTakenOver]. Any other digest of the old engine is that of no manifest of ours, so the object is written
// once more, in its wave.
func newRecord(old *record, uid types.UID) (apis.InventoryRecord, error) {
	update, ok := updatePolicies[old.UpdatePolicy]
	if !ok {
		return apis.InventoryRecord{}, fmt.Errorf("%s is recorded with the update policy %q, which is not known",
			old.key(), old.UpdatePolicy)
	}
	if int(int16(old.ApplyOrder)) != old.ApplyOrder || int(int16(old.DeleteOrder)) != old.DeleteOrder {
		return apis.InventoryRecord{}, fmt.Errorf("%s is recorded with the orders %d and %d, of which one is too large",
			old.key(), old.ApplyOrder, old.DeleteOrder)
	}
	r := apis.InventoryRecord{
		Group: old.Group, Version: old.Version, Kind: old.Kind, Namespace: old.Namespace, Name: old.Name, UID: uid,
		AdoptionPolicy:  apis.AdoptionPolicy(old.AdoptionPolicy),
		ReconcilePolicy: apis.ReconcilePolicy(old.ReconcilePolicy),
		UpdatePolicy:    update,
		DeletePolicy:    apis.DeletePolicy(old.DeletePolicy),
		ApplyOrder:      int16(old.ApplyOrder), DeleteOrder: int16(old.DeleteOrder),
		ManagedTypes: old.ManagedTypes,
		Digest:       old.Digest,
		Phase:        apis.InventoryPhase(old.Phase),
		Status:       apis.ObjectStatus(old.Status),
	}
	if r.Phase == apis.PhaseCompleted && r.Digest != plan.DigestOnce {
		r.Digest = plan.DigestTakenOver
	}
	return inventory.Compact(r), nil
}

// newInventory returns our inventory for that of the old engine.
func newInventory(old []record, uids map[plan.Key]types.UID) ([]apis.InventoryRecord, error) {
	all := make([]apis.InventoryRecord, len(old))
	for i := range old {
		var err error
		if all[i], err = newRecord(&old[i], uids[old[i].key()]); err != nil {
			return nil, err
		}
	}
	if err := inventory.Validate(all); err != nil {
		return nil, fmt.Errorf("the inventory of the old engine cannot be taken over: %w", err)
	}
	return all, nil
}

// oldRecord returns the record of the old engine for an object that our operator has made since the takeover. Its
// digest is that of no manifest there, so the object is written once more.
func oldRecord(r *apis.InventoryRecord) record {
	old := record{
		Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
		AdoptionPolicy: "IfUnowned", ReconcilePolicy: "OnObjectChange",
		UpdatePolicy: "SsaMerge", DeletePolicy: "Delete",
		ApplyOrder: int(r.ApplyOrder), DeleteOrder: int(r.DeleteOrder), ManagedTypes: r.ManagedTypes,
		Digest: r.Digest, Phase: string(r.Phase), Status: string(r.Status),
	}
	if r.ReconcilePolicy != "" {
		old.ReconcilePolicy = string(r.ReconcilePolicy)
	}
	if r.DeletePolicy != "" {
		old.DeletePolicy = string(r.DeletePolicy)
	}
	for word, policy := range updatePolicies {
		// A record that was given back has the old word.
		if word != "" && (policy == r.UpdatePolicy || word == string(r.UpdatePolicy)) {
			old.UpdatePolicy = word
		}
	}
	if r.Phase == apis.PhaseRecreating {
		// The old engine has no such phase: it creates what is recorded and gone.
		old.Phase = string(apis.PhaseScheduledForApplication)
	}
	return old
}

// shared are the fields of a status that both engines write.
var shared = []string{
	"observedGeneration", "appliedGeneration", "lastObservedAt", "lastAppliedAt", "processingDigest", "processingSince",
	"lastProcessingDigest", "revision", "conditions", "state", "inventory",
}

// ourOwn are the fields of a status that the old engine does not have.
var ourOwn = []string{"target", "inventoryKind"}

// sharedStatus returns the shared fields of a status.
func sharedStatus(status map[string]any) map[string]any {
	fields := map[string]any{}
	for _, name := range shared {
		if value, ok := status[name]; ok {
			fields[name] = value
		}
	}
	return fields
}

// added returns the records of ours whose objects have no record of the old engine.
func added(old []record, ours []apis.InventoryRecord) []record {
	known := map[plan.Key]bool{}
	for i := range old {
		known[old[i].key()] = true
	}
	var more []record
	for i := range ours {
		if !known[plan.KeyOf(ours[i])] {
			more = append(more, oldRecord(&ours[i]))
		}
	}
	return more
}

// ourRecords reads our inventory from a status.
func ourRecords(status map[string]any) ([]apis.InventoryRecord, error) {
	content, err := json.Marshal(status["inventory"])
	if err != nil {
		return nil, err
	}
	var all []apis.InventoryRecord
	if err := json.Unmarshal(content, &all); err != nil {
		return nil, fmt.Errorf("status.inventory cannot be understood: %w", err)
	}
	return all, nil
}

// statusBack returns the status that the old operator has left, with records of what ours has made since.
func statusBack(status map[string]any, made []record) map[string]any {
	if len(made) == 0 {
		return status
	}
	back := maps.Clone(status)
	before, _ := status["inventory"].([]any)
	all := slices.Clone(before)
	for i := range made {
		all = append(all, made[i])
	}
	back["inventory"] = all
	return back
}

// statusOperations returns what makes a status have the fields of the other one, and no others that the engines write.
func statusOperations(status, wanted map[string]any) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for _, name := range slices.Concat(shared, ourOwn) {
		want, ok := wanted[name]
		have, is := status[name]
		switch {
		case ok && !(is && sameJSON(want, have)):
			operations = append(operations, jsonpatch.NewOperation("add", "/status/"+name, want))
		case !ok && is:
			operations = append(operations, jsonpatch.NewOperation("remove", "/status/"+name, nil))
		}
	}
	return operations
}

func sameJSON(a, b any) bool {
	one, err := json.Marshal(a)
	other, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && bytes.Equal(one, other)
}

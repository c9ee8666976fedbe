package plan

import (
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Key identifies an object of a component.
type Key struct {
	Group, Kind     string
	Namespace, Name string
}

// GroupKind is the type of the object.
func (k Key) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.Group, Kind: k.Kind}
}

// String names the object for people: kind, namespace and name. A key without a name is the key of a pattern, and
// names types.
func (k Key) String() string {
	switch {
	case k.Name == "" && k.Namespace == "":
		group := k.Group
		if group == "" {
			group = "the core group"
		}
		return "types " + k.Kind + " of " + group
	case k.Namespace == "":
		return k.Kind + " " + k.Name
	default:
		return k.Kind + " " + k.Namespace + "/" + k.Name
	}
}

// KeyOf returns the key of a record.
func KeyOf(r apis.InventoryRecord) Key {
	return Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// DigestOnce is the digest of an object that is written once.
const DigestOnce = "__once__"

// DigestTakenOver is the digest of an object that another engine has purged. It stands for what is desired next: the
// object is not created for that, but when its manifest changes.
const DigestTakenOver = "__taken_over__"

// SuspendedDigest returns the digest of an object in the form in which it is suspended, of which form is a digest.
func SuspendedDigest(digest, form string) string { return digest + suspendedMark + form }

const suspendedMark = "~"

// sameOrigin reports whether two digests are of the same desired object, suspended or not.
func sameOrigin(a, b string) bool {
	a, _, _ = strings.Cut(a, suspendedMark)
	b, _, _ = strings.Cut(b, suspendedMark)
	return a == b
}

// FieldsNone is the Fields of a record after a write whose answer had no field sets: the API server keeps none for
// the type. Changes by others are then found by the digest only.
const FieldsNone = "none"

// Desired is what the plan has to know of a desired object. Policies that are empty mean the default.
type Desired struct {
	Key
	Version string
	// Digest identifies the content. It is never empty.
	Digest string

	AdoptionPolicy  apis.AdoptionPolicy
	ReconcilePolicy apis.ReconcilePolicy
	UpdatePolicy    apis.UpdatePolicy
	DeletePolicy    apis.DeletePolicy
	PrunePolicy     apis.PrunePolicy

	ApplyOrder, DeleteOrder int16
	// PurgeOrder is nil for never.
	PurgeOrder *int16
	// ReapplyInterval is 0 for never.
	ReapplyInterval time.Duration
	// ManagedTypes are the types that the object defines.
	ManagedTypes []apis.ManagedType
	// IgnoreForeignInstances reports whether the object is deleted even if others have instances of these types. For a
	// namespace: even if others have objects in it.
	IgnoreForeignInstances bool
	// Auxiliary reports whether the component does without the object: nothing waits for it, whatever is wrong with it.
	Auxiliary bool
	// Unchecked reports whether the object counts as ready as soon as it is written.
	Unchecked bool
	// ReadOnly reports whether the object is only read. It has no record, and the plan no operation on it. With
	// IgnoreAbsence, it need not exist.
	ReadOnly, IgnoreAbsence bool
	// Expires reports whether the object is a Job that is deleted some time after it finished.
	Expires bool
	// Owners names the owner references of the manifest. It is empty if there are none.
	Owners string
}

// Presence says whether an object exists.
type Presence int

const (
	// PresenceUnknown means that it was not looked for yet, or could not be. The plan waits until it is known. An
	// object that cannot have been written yet is better passed as Absent, since a create fails if the object exists.
	PresenceUnknown Presence = iota
	Absent
	Present
)

// Content says whether an object with confidential content has the desired content. No digest is kept of such content.
type Content int

const (
	// ContentUnknown means that the object is not confidential, and has a digest.
	ContentUnknown Content = iota
	ContentSame
	ContentDifferent
)

// Ending says how a Job ended.
type Ending int8

const (
	// EndingUnknown means that it is not known, or that the object is not a Job.
	EndingUnknown Ending = iota
	// EndingCompleted means that the Job completed with success.
	EndingCompleted
	// EndingFailed means that the Job failed, and is deleted since its time to live is over.
	EndingFailed
	// EndingInterrupted means that the Job did not complete, and was not deleted by its time to live.
	EndingInterrupted
)

// Observed is what was observed of an object.
type Observed struct {
	Presence Presence
	// TypeMissing reports whether the API server does not serve the type. The object is then Absent.
	TypeMissing bool
	// Misplaced reports whether the key has a namespace although the type has none, or the other way round. There
	// cannot be such an object, so it is Absent and has no record.
	Misplaced bool
	// Ending is set for a Job that is terminating, and for one that is Absent and was seen as it was deleted.
	Ending Ending
	// UID and the fields below are zero unless the object is Present. Exception: with an Ending there is a Digest.
	UID types.UID
	// ResourceVersion may be older than the object is.
	ResourceVersion string
	Generation      int64
	Terminating     bool
	// Deletion says in words that follow "it" what a terminating object waits for. It may be empty.
	Deletion  string
	Ownership Ownership
	// Claim says in words that follow "it" whose the object is, or who wrote it. It is empty if the object is ours, and
	// if nothing is known. See [Marks.Ownership].
	Claim string
	// FormerMarks reports whether the object has marks that we do not write any more, see [Marks.Former].
	FormerMarks bool
	// Digest is the digest of the desired object at our last write, as the annotation of the object has it.
	Digest string
	// Fields identifies the set of fields that we own. It is empty if it is not known.
	Fields string
	// Content is for confidential objects.
	Content Content
	// Status and Message say how ready the object is. An empty status means that this version of the object was not
	// assessed yet. It then does not count as ready.
	Status  apis.ObjectStatus
	Message string
	// Refused reports whether the API server does not allow to read the object. Its Presence is then PresenceUnknown.
	Refused bool
	// Fenced reports whether the object defines types, and a removal that was begun prevents that instances are
	// created.
	Fenced bool
	// IgnoreForeignInstances reports whether the object defines types and says, as it is in the cluster, that it may be
	// deleted while others have instances of them.
	IgnoreForeignInstances bool
	// Volatile reports whether the object waits for an object of its own wave or a later one, so no wave waits for it.
	// An example is a PersistentVolumeClaim that is bound when its first consumer exists.
	Volatile bool
}

// deletion says what a terminating object waits for.
func (o *Observed) deletion() string {
	if o.Deletion == "" {
		return messageTerminating
	}
	return "it " + o.Deletion
}

// ForeignState says what is known of the instances that others have of a type.
type ForeignState int

const (
	// ForeignUnchecked means that it was not checked. The plan asks for that (ActionCheck).
	ForeignUnchecked ForeignState = iota
	// ForeignFenced means that there were none, and that none can be created any more. Creations that began before have
	// until the time of the use to end. Then it is to be checked again.
	ForeignFenced
	// ForeignNone means that there are none. If the component is being deleted, none can be created, as far as that can
	// be prevented.
	ForeignNone
	// ForeignBlocking means that others have instances.
	ForeignBlocking
	// ForeignUnknown means that it could not be found out. This blocks too.
	ForeignUnknown
)

// Use is what is known of how others use the type of one CustomResourceDefinition, one additional managed type, or a
// namespace. The instances of a namespace are the objects in it.
type Use struct {
	State ForeignState
	// Instances names some of the instances that block, sorted.
	Instances []string
	// More is how many other instances there are. It is -1 if there are others that were not counted.
	More int
	// Reason says why the use is not known. With instances that block, it says what could not be read besides.
	Reason string
	// Unfenced reports whether the reason is that creation cannot be fenced off.
	Unfenced bool
	// Until is for ForeignFenced.
	Until time.Time
}

// Input is what a plan is made from. Make does not change it.
type Input struct {
	// Deleting reports whether the component is being deleted. Desired is then ignored.
	Deleting bool
	// Orphan reports whether all objects stay when the component is deleted, whatever the records say.
	Orphan bool
	// Desired has the desired objects in the order in which they were generated. Keys are unique.
	Desired []Desired
	// Leaving has what becomes of objects that are not desired, in place of the delete policies in their records, by
	// key: they are orphaned or deleted.
	Leaving map[Key]apis.DeletePolicy
	// AllowEmpty reports whether all objects go if none is desired. Otherwise the plan is then to leave all as it is.
	AllowEmpty bool
	// Suspended reports whether the desired objects are to be suspended. What exists is then written or deleted at
	// once, and waits for no wave. An object that is gone for good stays so.
	Suspended bool
	// Inventory has the stored records, with the outcomes since folded in.
	Inventory []apis.InventoryRecord
	// Observed has an entry for each key of Desired and Inventory. A missing one counts as the zero value.
	Observed map[Key]Observed
	// Failed has the keys of operations that failed in this request, with the errors as text. They are not tried again
	// in this request. Exception: a create that found an existing object did not fail if Observed has that object. The
	// next plan decides what to do about it.
	Failed map[Key]string
	// Released has the resource versions of dropped objects because of which the API server refuses to write desired
	// ones, see [Refusal]. They are deleted at once, in that version only.
	Released map[Key]string
	// Uses has, by the key of the object that defines types or is a namespace, what was found out in this request about
	// the use.
	Uses map[Key]Use
	// Patterns are additional managed types.
	Patterns []Pattern
	// PatternUses has what is known of the use of Patterns, by index.
	PatternUses map[int]Use
	// Corrections has what is known of earlier corrections of objects.
	Corrections map[Key]Corrections
	// Recheck is when an object is to be observed again although nothing shows a change of it; zero for never.
	Recheck time.Time
	// Now is the time of the request.
	Now time.Time
}

// Pattern is an additional managed type: group and kind, each "*" for all. A group may start with "*.".
type Pattern struct {
	Group, Kind string
}

// Action is what is to be done about an object.
type Action string

const (
	// ActionCreate creates an object that does not exist.
	ActionCreate Action = "create"
	// ActionAdopt makes an existing object ours and writes the desired state.
	ActionAdopt Action = "adopt"
	// ActionRelabel does the same for an object that was ours and has lost its label, or that [IsRemnant] is about.
	ActionRelabel Action = "relabel"
	// ActionApply writes the desired state, by the update policy Apply or ApplyOverride.
	ActionApply Action = "apply"
	// ActionReplace writes the desired state, by an update.
	ActionReplace Action = "replace"
	// ActionRecreate deletes an object that is created again afterwards.
	ActionRecreate Action = "recreate"
	// ActionOrphan removes our labels and annotations from an object.
	ActionOrphan Action = "orphan"
	// ActionDelete deletes an object.
	ActionDelete Action = "delete"
	// ActionPurge deletes an object whose purge order is reached.
	ActionPurge Action = "purge"
	// ActionDeleteType deletes an object that defines types, by the fence protocol.
	ActionDeleteType Action = "delete type"
	// ActionDeleteNamespace deletes a namespace, if no objects of others are in it.
	ActionDeleteNamespace Action = "delete if unused"
	// ActionCheck finds out whether others use the types of an object or a pattern. If the component is being
	// deleted, it also prevents that instances are created.
	ActionCheck Action = "check"
)

// Operation is one thing to do.
type Operation struct {
	Action Action
	Key    Key
	// Version is the version of the type to use.
	Version string
	// UID is the UID of the object. It is empty for a create.
	UID types.UID
	// ResourceVersion is that of the object as it was observed, for a deletion with the component. If it has changed
	// since, it is looked at before it is deleted. Empty for any.
	ResourceVersion string
	// Exact reports whether the operation fails if the object has another resource version by now.
	Exact bool
	// Reason says why, in a stable text.
	Reason string
	// Override reports whether the fields of certain other managers are taken over.
	Override bool
	// Pattern is the index of the pattern to check. It is -1 if the operation is about the object with the Key. The Key
	// of a pattern has its group and kind, and no name.
	Pattern int
	// Stamp reports whether the record keeps the time of the write, since the object is rewritten periodically.
	Stamp bool
	// Undoes identifies what another client has done to the object, if the write is a correction of that. It is empty
	// for any other operation.
	Undoes string
}

// Stage has operations that may run at the same time, in canonical order.
type Stage struct {
	// Title names the wave, and the part of it.
	Title string
	// Wave names the wave if objects are applied in it; else it is empty.
	Wave       string
	Operations []Operation
}

// Obstacle is an object that keeps the component from being done.
type Obstacle struct {
	Key  Key
	Kind ObstacleKind
	// Message says what is waited for or what failed, without the object. It is stable.
	Message string
	// Auxiliary reports whether the component is done all the same.
	Auxiliary bool
	// Kept reports whether it is an object to prune that waits for others.
	Kept bool
}

// ObstacleKind says why an object is an obstacle.
type ObstacleKind string

const (
	// ObstacleWaiting means that it is not ready yet, or not gone yet.
	ObstacleWaiting ObstacleKind = "waiting"
	// ObstacleFailed means that it can never become ready, or could not be written.
	ObstacleFailed ObstacleKind = "failed"
	// ObstacleBlocked means that others use the type that it defines, or have objects in the namespace that it is.
	ObstacleBlocked ObstacleKind = "blocked"
	// ObstacleContested means that another client keeps changing it, so it is corrected after a delay only.
	ObstacleContested ObstacleKind = "contested"
	// ObstacleNotOurs means that it may not be written, because of its owner or its adoption policy.
	ObstacleNotOurs ObstacleKind = "not ours"
)

// Progress is how far the component is.
type Progress struct {
	// Wave is the number of the current wave, counted from 1, or 0 if there is none. Waves is how many waves there are.
	// When deleting, it is how many are left, and the current one is the first of them.
	Wave, Waves int
	// Ready of Total objects of the current wave are ready. When deleting, Ready of them are gone since the last plan.
	Ready, Total int
}

// Plan is what a component needs next.
type Plan struct {
	// Deleting is the Deleting of the input.
	Deleting bool
	// Inventory has a record of each desired object, and no record of an object that is gone, in canonical order for
	// deletion. If it has keys that the stored inventory lacks, it has to be stored before an operation of Next is
	// done.
	Inventory []apis.InventoryRecord
	// Next is what may be done now. It has no operations if everything has to wait.
	Next Stage
	// Obstacles are the objects that are waited for or failed, in canonical order.
	Obstacles []Obstacle
	// Progress says how far the current wave is.
	Progress Progress
	// Reapply is when the next object is rewritten without a known change. It is zero if none is.
	Reapply time.Time
	// Recheck is the Recheck of the input or, if that is earlier, when the next contested object is to be corrected, or
	// is not contested any more. It is zero if there is neither.
	Recheck time.Time
	// Done reports whether there is nothing to do and nothing to wait for. When deleting, the inventory is then empty.
	Done bool
	// Left are objects whose records the plan drops although they exist and would have to go: they are not ours any
	// more.
	Left []Obstacle
	// Empty reports whether no object is desired although there are some, so that all is left as it is.
	Empty bool
}

// Outcome is the result of an operation.
type Outcome struct {
	Operation Operation
	// Err says why it could not be done. It is nil on success.
	Err error
	// Observed is the object in the answer of the API server. Its Presence is PresenceUnknown if the answer has no
	// object, as after a delete.
	Observed Observed
	// Use is the outcome of a check, and of a deletion of a type or a namespace.
	Use Use
}

// isPurging reports whether the purge of an object has begun and not ended.
func isPurging(phase apis.InventoryPhase) bool {
	return phase == apis.PhaseScheduledForCompletion || phase == apis.PhaseCompleting
}

// isLeaving reports whether the deletion of an object was planned, by pruning or with the component.
func isLeaving(phase apis.InventoryPhase) bool {
	return phase == apis.PhaseScheduledForDeletion || phase == apis.PhaseDeleting
}

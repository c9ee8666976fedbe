package plan

import (
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

// KeyOf returns the key of a record.
func KeyOf(r apis.InventoryRecord) Key {
	return Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// GroupKind is the type of the object.
func (k Key) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.Group, Kind: k.Kind}
}

// String names the object for people: kind, and namespace and name. A key without a name is that of a pattern, and names types.
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

// DigestOnce is the digest of an object that is written once.
const DigestOnce = "__once__"

// FieldsNone is what a record holds as fields after a write whose answer did not tell them: the API server keeps no field
// sets for the type. Somebody else's changes then remain unseen; the digest alone tells.
const FieldsNone = "none"

// Desired is what the plan has to know of an object that is desired. All policies are in force: defaults are filled in.
type Desired struct {
	Key
	Version string
	// Digest identifies the content; never empty.
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
	// ManagedTypes are those that the object brings.
	ManagedTypes []apis.ManagedType
	// IgnoreForeignInstances: instances that others have of these types do not keep the object from being deleted.
	IgnoreForeignInstances bool
}

// Presence tells whether an object is there.
type Presence int

const (
	// PresenceUnknown: nobody has looked yet, or could. The plan waits until somebody has. An object that nobody can have written
	// yet is better passed as Absent, since a create fails where there is one.
	PresenceUnknown Presence = iota
	Absent
	Present
)

// Ownership tells whose an object is.
type Ownership int

const (
	// Unowned: no component of our prefix owns it.
	Unowned Ownership = iota
	Ours
	// Predecessor: it belongs to a component of the same kind, namespace and name with another UID, which is therefore gone. It
	// counts as unowned.
	Predecessor
	// Foreign: another component owns it.
	Foreign
)

// Content tells of an object with confidential content, of which no digest is kept, whether it holds what is desired.
type Content int

const (
	// ContentUnknown: the object is not confidential; its digest tells.
	ContentUnknown Content = iota
	ContentSame
	ContentDifferent
)

// Observed is what was seen of an object.
type Observed struct {
	Presence Presence
	// TypeMissing: the API server does not serve the type. The object is then Absent.
	TypeMissing bool
	// UID, Generation and so on are zero unless Present.
	UID         types.UID
	Generation  int64
	Terminating bool
	Ownership   Ownership
	// Owner is the owner in clear text; empty if not known.
	Owner string
	// Digest is the one that the object was last written for by us, as its annotation says.
	Digest string
	// Fields identifies the set of fields that we own. Empty if not known.
	Fields string
	// Content is for confidential objects.
	Content Content
	// Status and Message are how ready it is. Empty if nobody has looked at this version of the object yet; it then does
	// not count as ready.
	Status  apis.ObjectStatus
	Message string
	// Fenced: it defines types, and says that the creation of their instances is fenced off, for a removal that was begun.
	Fenced bool
	// Volatile: it waits for an object of the same or of a later wave to appear, and therefore holds up no wave: a claim whose
	// volume is bound when its first consumer comes.
	Volatile bool
}

// ForeignState tells what is known of the instances that others have of a type.
type ForeignState int

const (
	// ForeignUnchecked: nobody has looked. The plan asks for it (ActionCheck).
	ForeignUnchecked ForeignState = iota
	// ForeignNone: there are none, and, for the deletion of the component, creation is fenced off as far as can be.
	ForeignNone
	// ForeignBlocking: others have instances.
	ForeignBlocking
	// ForeignUnknown: it could not be found out. It blocks, and says so.
	ForeignUnknown
)

// Use is what is known of how others use the types of one object (a CustomResourceDefinition or an APIService), or of one
// additional managed type.
type Use struct {
	State ForeignState
	// Instances are some of those that block, in words, sorted.
	Instances []string
	// More is how many there are besides; -1 if there are more, and nobody counted.
	More int
	// Reason says why it is not known.
	Reason string
}

// Input is what a plan is made from. Make changes none of it.
type Input struct {
	// Deleting: the component is going. Desired is then ignored.
	Deleting bool
	// Desired in the order in which it was generated. Keys are unique.
	Desired []Desired
	// Inventory as it is stored, with what was folded in since.
	Inventory []apis.InventoryRecord
	// Observed of each key of Desired and Inventory; a missing one is the zero value.
	Observed map[Key]Observed
	// Failed are the keys of operations that failed in this pass, with the error in words. They are not tried again in this
	// pass. A create that found an object there is none of them, if Observed has that object: what to do about it is for the next plan.
	Failed map[Key]string
	// Uses are, by the key of the object that defines types, what was found out in this pass about the use of these.
	Uses map[Key]Use
	// Patterns are additional managed types.
	Patterns []Pattern
	// PatternUses are what is known of the use of Patterns, by index.
	PatternUses map[int]Use
	// Now is the time of the request.
	Now time.Time
}

// Pattern is an additional managed type: group and kind, each "*" for all; a group may start with "*.".
type Pattern struct {
	Group, Kind string
}

// Action is what is to be done about an object.
type Action string

const (
	// ActionCreate creates an object that does not exist.
	ActionCreate Action = "create"
	// ActionAdopt makes an existing object ours and writes what is desired.
	ActionAdopt Action = "adopt"
	// ActionApply writes what is desired, by the update policy Apply or ApplyOverride.
	ActionApply Action = "apply"
	// ActionReplace writes what is desired, by an update.
	ActionReplace Action = "replace"
	// ActionRecreate deletes an object that is to be created anew.
	ActionRecreate Action = "recreate"
	// ActionOrphan takes our marks off an object.
	ActionOrphan Action = "orphan"
	// ActionDelete deletes an object.
	ActionDelete Action = "delete"
	// ActionPurge deletes an object that was only needed for a while.
	ActionPurge Action = "purge"
	// ActionDeleteType deletes an object that defines types, by the fence protocol.
	ActionDeleteType Action = "delete type"
	// ActionCheck finds out whether others use the types of an object, or of a pattern, and fences off their creation, if the
	// component is being deleted.
	ActionCheck Action = "check"
)

// Operation is one thing to do.
type Operation struct {
	Action Action
	Key    Key
	// Version is that of the type to use.
	Version string
	// UID is that of the object meant; empty for a create.
	UID types.UID
	// Reason says why, in stable words.
	Reason string
	// Override: the fields of certain managers are taken.
	Override bool
	// Pattern is the index of the pattern to check, -1 if Key is what is meant. The Key of a pattern has its group and kind, and no
	// name.
	Pattern int
	// Stamp: the record is to remember when the object was written, since it is to be rewritten periodically.
	Stamp bool
}

// Stage is operations that may be carried out at the same time, in canonical order.
type Stage struct {
	// Title says which wave it belongs to, and what part of it.
	Title      string
	Operations []Operation
}

// Obstacle is an object that keeps the component from being done.
type Obstacle struct {
	Key Key
	// Kind tells waiting from failure from being blocked by others.
	Kind ObstacleKind
	// Message says what is waited for or what failed, without the object. It is stable.
	Message string
}

// ObstacleKind tells obstacles apart.
type ObstacleKind string

const (
	// ObstacleWaiting: it is not ready, or not gone, yet.
	ObstacleWaiting ObstacleKind = "waiting"
	// ObstacleFailed: it is ready never, or could not be written.
	ObstacleFailed ObstacleKind = "failed"
	// ObstacleBlocked: others use the type that it defines.
	ObstacleBlocked ObstacleKind = "blocked"
	// ObstacleNotOurs: it belongs to somebody else.
	ObstacleNotOurs ObstacleKind = "not ours"
)

// Progress is how far the component is.
type Progress struct {
	// Wave is the number of the wave under way, counted from 1; 0 if there is none. Waves is how many there are; when deleting,
	// how many are left, of which the first is under way.
	Wave, Waves int
	// Ready of Total objects of that wave are ready; when deleting, gone since the last plan.
	Ready, Total int
}

// Plan is what a component needs next.
type Plan struct {
	// Deleting is the input's.
	Deleting bool
	// Inventory is the input's, with what was seen folded in: it has a record for all that is desired, and none for what is
	// gone. It has to be durable, as far as it has keys that the stored one has not, before anything of Next is done. It
	// is in canonical order for deletion.
	Inventory []apis.InventoryRecord
	// Next is what may be done now; without operations if nothing may.
	Next Stage
	// Obstacles are what is waited for or failed, in canonical order.
	Obstacles []Obstacle
	// Progress says how far the wave is that is under way.
	Progress Progress
	// Reapply is when the next object is to be rewritten although nothing seems to have changed; zero if none is.
	Reapply time.Time
	// Done: there is nothing to do and nothing to wait for. When deleting, the inventory is empty.
	Done bool
}

// Outcome is what became of an operation.
type Outcome struct {
	Operation Operation
	// Err is why it could not be done; nil if it was.
	Err error
	// Observed is the object as the answer of the API server shows it. Presence is PresenceUnknown if there is none to be had: after a delete.
	Observed Observed
	// Use is the outcome of a check, and of a deletion of a type that is in use.
	Use Use
}

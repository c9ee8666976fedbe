package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ComponentState is the state of a component in one word.
// +kubebuilder:validation:Enum=Ready;Pending;Processing;DeletionPending;Deleting;Error
type ComponentState string

const (
	// ComponentReady means that all desired objects exist and are ready.
	ComponentReady ComponentState = "Ready"
	// ComponentPending means that no work is done at the moment. The component is new, suspended, or waits for
	// something that it needs before it can start.
	ComponentPending ComponentState = "Pending"
	// ComponentProcessing means that work is in progress, or the component waits for the cluster.
	ComponentProcessing ComponentState = "Processing"
	// ComponentDeletionPending means that the deletion waits for something that it needs to start or to continue.
	ComponentDeletionPending ComponentState = "DeletionPending"
	// ComponentDeleting means that the deletion is in progress, or blocked.
	ComponentDeleting ComponentState = "Deleting"
	// ComponentError means that something failed, or took longer than the timeout.
	ComponentError ComponentState = "Error"
)

// ComponentStatus is the status of a component. A resource that is one component embeds it in its status with
// `json:",inline"`, in place of [Status], which it contains. A resource that has several components has a field for
// each.
//
// +kubebuilder:object:generate=true
type ComponentStatus struct {
	Status `json:",inline"`

	// AppliedGeneration is the generation of the resource that was last rolled out completely.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`

	// EmptiedGeneration is the generation of the resource for which the annotation allow-empty has counted, and does
	// not count again.
	// +optional
	EmptiedGeneration int64 `json:"emptiedGeneration,omitempty"`

	// LastObservedAt is when the status last differed from the one that was written before. It does not move while
	// nothing changes.
	// +optional
	LastObservedAt *metav1.Time `json:"lastObservedAt,omitempty"`

	// LastAppliedAt is when the component was last rolled out in full: when it became ready.
	// +optional
	LastAppliedAt *metav1.Time `json:"lastAppliedAt,omitempty"`

	// ProcessingDigest identifies the roll-out that is in progress, or the last one.
	// +optional
	ProcessingDigest string `json:"processingDigest,omitempty"`

	// ProcessingSince is when the roll-out in progress began. The timeout counts from here.
	// +optional
	ProcessingSince *metav1.Time `json:"processingSince,omitempty"`

	// LastProcessingDigest is the ProcessingDigest for which Revision was last increased. If the objects are made from
	// content that comes with the operator, such as a chart, a slash and its digest follow.
	// +optional
	LastProcessingDigest string `json:"lastProcessingDigest,omitempty"`

	// Revision is the number of different roll-outs, starting with 1.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// State is the state of the component in one word. The condition has the details.
	// +optional
	State ComponentState `json:"state,omitempty"`

	// Target identifies the API server that the objects are deployed to. It is empty for the API server of the
	// resource.
	// +optional
	Target string `json:"target,omitempty"`

	// InventoryKind is the kind of the objects that contain the inventory, if it is not in this status.
	// +optional
	InventoryKind string `json:"inventoryKind,omitempty"`

	// Inventory names the objects that belong to the component, from before they exist until they are gone. It is empty
	// if the inventory is kept elsewhere.
	// +optional
	// +listType=atomic
	Inventory []InventoryRecord `json:"inventory,omitempty"`
}

// Operators of the release before may read a new field: package inventory says when its format needs another version.

// InventoryRecord describes one object of a component. Fields with default values are omitted. The group, kind,
// namespace and name identify the record.
//
// +kubebuilder:object:generate=true
type InventoryRecord struct {
	// +optional
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// UID is the UID of the object as last written or seen. It is empty until the object exists.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// Adopted reports whether the object existed before the component took it over. An object that the component has
	// created again is not adopted. Without a delete policy, an adopted object is orphaned.
	// +optional
	Adopted bool `json:"adopted,omitempty"`

	// The policies that counted when the object was last desired. Empty means the default.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
	// +optional
	ReconcilePolicy ReconcilePolicy `json:"reconcilePolicy,omitempty"`
	// +optional
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`
	// +optional
	DeletePolicy DeletePolicy `json:"deletePolicy,omitempty"`
	// +optional
	PrunePolicy PrunePolicy `json:"prunePolicy,omitempty"`

	// ApplyOrder is the wave in which the object is applied.
	// +optional
	ApplyOrder int16 `json:"applyOrder,omitempty"`
	// PurgeOrder is the wave after which the object is removed again, or nil if it stays.
	// +optional
	PurgeOrder *int16 `json:"purgeOrder,omitempty"`
	// DeleteOrder is the wave in which the object is deleted.
	// +optional
	DeleteOrder int16 `json:"deleteOrder,omitempty"`

	// ManagedTypes are the types that the object brings into the cluster.
	// +optional
	// +listType=atomic
	ManagedTypes []ManagedType `json:"managedTypes,omitempty"`
	// IgnoreForeignInstances allows deleting the object while other owners have instances of these types, or objects in
	// the namespace.
	// +optional
	IgnoreForeignInstances bool `json:"ignoreForeignInstances,omitempty"`

	// Digest identifies the desired object. Empty means that the object is no longer desired.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Fields identifies the set of fields that the component owned after its last write. If it differs, the object was
	// changed by others.
	// +optional
	Fields string `json:"fields,omitempty"`

	// Generation is the generation of the object after the last write. The object is not ready before its status is
	// about this generation.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Phase is the phase of the object.
	// +optional
	Phase InventoryPhase `json:"phase,omitempty"`

	// Status is the readiness of the object. Empty means Current in the phase Ready, and unknown in all others.
	// +optional
	Status ObjectStatus `json:"status,omitempty"`

	// Message says what the object waits for, or why it could not be written or deleted. Its length is limited.
	// +optional
	Message string `json:"message,omitempty"`

	// LastAppliedAt is when the object was last written. It is kept only for objects that are to be rewritten
	// periodically.
	// +optional
	LastAppliedAt *metav1.Time `json:"lastAppliedAt,omitempty"`
}

// IsDone reports whether nothing is left to do to apply the object: it is ready, or was purged after its wave.
func (r *InventoryRecord) IsDone() bool {
	isCurrent := r.Status == "" || r.Status == ObjectCurrent
	return r.Phase == PhaseReady && isCurrent || r.Phase == PhaseCompleted
}

// ManagedType is a type that an object brings into the cluster. Version or Kind may be "*" for all.
type ManagedType struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// InventoryPhase is the phase of an object of a component.
type InventoryPhase string

const (
	// PhaseScheduledForApplication means that the object is new, or its desired content has changed, and it is not
	// written yet.
	PhaseScheduledForApplication InventoryPhase = "ScheduledForApplication"
	// PhaseScheduledForDeletion means that the object is no longer desired, and not deleted yet.
	PhaseScheduledForDeletion InventoryPhase = "ScheduledForDeletion"
	// PhaseScheduledForCompletion means that the object is due to be purged.
	PhaseScheduledForCompletion InventoryPhase = "ScheduledForCompletion"
	// PhaseCreating means that the component has created the object, and it is not ready yet.
	PhaseCreating InventoryPhase = "Creating"
	// PhaseUpdating means that the component has changed the object, and it is not ready yet.
	PhaseUpdating InventoryPhase = "Updating"
	// PhaseRecreating means that the component has deleted the object to create it again, and it is not gone yet.
	PhaseRecreating InventoryPhase = "Recreating"
	// PhaseDeleting means that the component has deleted the object, and it is not gone yet.
	PhaseDeleting InventoryPhase = "Deleting"
	// PhaseCompleting means that the component has purged the object, and it is not gone yet.
	PhaseCompleting InventoryPhase = "Completing"
	// PhaseReady means that the object was ready at least once since it was last written.
	PhaseReady InventoryPhase = "Ready"
	// PhaseCompleted means that the object was there, is gone, and is not created again: it was purged, it was to be
	// written once, or it is a Job that was deleted after its time to live. The record stays.
	PhaseCompleted InventoryPhase = "Completed"
)

// ObjectStatus is the readiness of an object, in the words of kstatus.
type ObjectStatus string

const (
	ObjectInProgress  ObjectStatus = "InProgress"
	ObjectFailed      ObjectStatus = "Failed"
	ObjectCurrent     ObjectStatus = "Current"
	ObjectTerminating ObjectStatus = "Terminating"
	ObjectNotFound    ObjectStatus = "NotFound"
	ObjectUnknown     ObjectStatus = "Unknown"
)

// AdoptionPolicy says what happens to an object that exists before it is desired. What the component adopts is orphaned
// later, not deleted, unless a delete policy says otherwise.
// +kubebuilder:validation:Enum=Never;IfUnowned;Always
type AdoptionPolicy string

const (
	// AdoptNever means that the object is left alone, and the component waits until it is gone. This is the default.
	AdoptNever AdoptionPolicy = "Never"
	// AdoptIfUnowned means that the object is taken over if nobody is known to own it: it has no controller, and no
	// marks of another component or of a tool such as Helm, Argo CD or Flux.
	AdoptIfUnowned AdoptionPolicy = "IfUnowned"
	// AdoptAlways means that the object is taken over, even from its owner.
	AdoptAlways AdoptionPolicy = "Always"
)

// ReconcilePolicy says when an object is written again.
// +kubebuilder:validation:Enum=OnObjectChange;OnObjectOrComponentChange;Once
type ReconcilePolicy string

const (
	// ReconcileOnObjectChange writes the object when its desired content changes, or when others have changed it. This
	// is the default.
	ReconcileOnObjectChange ReconcilePolicy = "OnObjectChange"
	// ReconcileOnObjectOrComponentChange writes the object also when the component changes.
	ReconcileOnObjectOrComponentChange ReconcilePolicy = "OnObjectOrComponentChange"
	// ReconcileOnce never writes the object again once it exists, and never creates it again once it has existed. An
	// object that was written under another policy is written one last time.
	ReconcileOnce ReconcilePolicy = "Once"
)

// UpdatePolicy says how an object is written again.
// +kubebuilder:validation:Enum=Apply;ApplyOverride;Replace;Recreate
type UpdatePolicy string

const (
	// UpdateApply writes the object by server-side apply. Fields of other field managers stay. This is the default.
	UpdateApply UpdatePolicy = "Apply"
	// UpdateApplyOverride writes the object by server-side apply, after taking over the fields of certain field
	// managers, such as kubectl. Fields that these have set, and that are not desired, are removed.
	UpdateApplyOverride UpdatePolicy = "ApplyOverride"
	// UpdateReplace writes the object by an update that removes all fields that are not desired. Finalizers stay.
	UpdateReplace UpdatePolicy = "Replace"
	// UpdateRecreate deletes the object and, once it is gone, creates it again, but only if its desired content has
	// changed. Changes by others are reverted by server-side apply.
	UpdateRecreate UpdatePolicy = "Recreate"
)

// DeletePolicy says what happens to an object that is no longer desired.
// +kubebuilder:validation:Enum=Delete;Orphan;OrphanOnApply;OrphanOnDelete
type DeletePolicy string

const (
	// DeleteDelete means that the object is deleted. This is the default, except for adopted objects.
	DeleteDelete DeletePolicy = "Delete"
	// DeleteOrphan means that the object stays, and no longer belongs to the component. This is the default for adopted
	// objects.
	DeleteOrphan DeletePolicy = "Orphan"
	// DeleteOrphanOnApply means that it stays if the component drops it, and is deleted with the component.
	DeleteOrphanOnApply DeletePolicy = "OrphanOnApply"
	// DeleteOrphanOnDelete means that it is deleted if the component drops it, and stays when the component is deleted.
	DeleteOrphanOnDelete DeletePolicy = "OrphanOnDelete"
)

// PrunePolicy says when an object is removed that the component drops. The wave is the one in which the object was
// applied.
// +kubebuilder:validation:Enum=Before;With;After
type PrunePolicy string

const (
	// PruneBefore removes the object before anything of the wave is written. This suits an object that is in the way of
	// its successor.
	PruneBefore PrunePolicy = "Before"
	// PruneWith removes the object when all required objects of the wave are written and ours, whether or not the wave
	// is ready. If nothing of the wave has changed, it removes the object at once. This is the default, but for objects
	// that hold data: without a policy, they wait until all required objects of the component are ready.
	PruneWith PrunePolicy = "With"
	// PruneAfter removes the object when the wave is ready. This suits an object that serves until its successor does.
	PruneAfter PrunePolicy = "After"
)

// MissingNamespacesPolicy says what happens if an object's namespace neither exists nor belongs to the component.
// +kubebuilder:validation:Enum=Create;DoNotCreate
type MissingNamespacesPolicy string

const (
	// MissingNamespacesCreate means that the namespace is created, and stays when the component is deleted. This is the
	// default.
	MissingNamespacesCreate MissingNamespacesPolicy = "Create"
	// MissingNamespacesDoNotCreate means that the objects in it cannot be created.
	MissingNamespacesDoNotCreate MissingNamespacesPolicy = "DoNotCreate"
)

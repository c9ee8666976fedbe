package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ComponentState says in a word how a component is.
// +kubebuilder:validation:Enum=Ready;Pending;Processing;DeletionPending;Deleting;Error
type ComponentState string

const (
	// ComponentReady: all that is desired is there and ready.
	ComponentReady ComponentState = "Ready"
	// ComponentPending: nothing is done at the moment: the component was just seen, is suspended, or waits for something that
	// it needs to begin.
	ComponentPending ComponentState = "Pending"
	// ComponentProcessing: work is under way, or the cluster is waited for.
	ComponentProcessing ComponentState = "Processing"
	// ComponentDeletionPending: deletion waits for something that it needs to begin or to go on.
	ComponentDeletionPending ComponentState = "DeletionPending"
	// ComponentDeleting: deletion is under way, or blocked.
	ComponentDeleting ComponentState = "Deleting"
	// ComponentError: something failed, or took longer than the timeout.
	ComponentError ComponentState = "Error"
)

// ComponentStatus is the part of a status that a component has. A resource that is one component embeds it in its own status
// with `json:",inline"`, in place of [Status], which is a part of it; a resource that has several has a field for each.
//
// +kubebuilder:object:generate=true
type ComponentStatus struct {
	Status `json:",inline"`

	// AppliedGeneration is the generation of the resource that was last rolled out in full.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`

	// LastObservedAt is when the status was last found to differ from what was written before. It does not move while
	// nothing changes.
	// +optional
	LastObservedAt *metav1.Time `json:"lastObservedAt,omitempty"`

	// LastAppliedAt is when the component was last rolled out in full: when it became ready.
	// +optional
	LastAppliedAt *metav1.Time `json:"lastAppliedAt,omitempty"`

	// ProcessingDigest identifies what is being rolled out, or was last.
	// +optional
	ProcessingDigest string `json:"processingDigest,omitempty"`

	// ProcessingSince is when the roll-out under way began. The timeout counts from here.
	// +optional
	ProcessingSince *metav1.Time `json:"processingSince,omitempty"`

	// LastProcessingDigest is the ProcessingDigest that Revision was counted up for.
	// +optional
	LastProcessingDigest string `json:"lastProcessingDigest,omitempty"`

	// Revision counts the different things that were rolled out, starting with 1.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// State says in a word how the component is. Details are in the condition.
	// +optional
	State ComponentState `json:"state,omitempty"`

	// Target identifies the API server that the objects are deployed to; empty for that of the resource.
	// +optional
	Target string `json:"target,omitempty"`

	// InventoryKind is the kind of the objects that keep the inventory if it is not here.
	// +optional
	InventoryKind string `json:"inventoryKind,omitempty"`

	// Inventory names the objects that the component is responsible for, before they exist and until they are gone. It is empty
	// if the inventory is kept elsewhere.
	// +optional
	// +listType=atomic
	Inventory []InventoryRecord `json:"inventory,omitempty"`
}

// InventoryRecord is what a component remembers of one object that it is responsible for. Whatever is as by default is
// omitted. The group, kind, namespace and name identify the record.
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

	// UID is that of the object as last written or seen; empty until it exists.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// The policies in force when the object was last part of the component. Empty means the default.
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
	// PurgeOrder is the wave after which the object is removed again; nil for never.
	// +optional
	PurgeOrder *int16 `json:"purgeOrder,omitempty"`
	// DeleteOrder is the wave in which the object is deleted.
	// +optional
	DeleteOrder int16 `json:"deleteOrder,omitempty"`

	// ManagedTypes are the types that the object brings into the cluster.
	// +optional
	// +listType=atomic
	ManagedTypes []ManagedType `json:"managedTypes,omitempty"`
	// IgnoreForeignInstances: instances that others have of these types do not keep the object from being deleted.
	// +optional
	IgnoreForeignInstances bool `json:"ignoreForeignInstances,omitempty"`

	// Digest identifies what is desired of the object. Empty means that the object is no longer desired.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Fields identifies the set of fields that the component owned after its last write. Another set means that somebody
	// changed one of them.
	// +optional
	Fields string `json:"fields,omitempty"`

	// Generation is the one that the last write returned. Readiness counts from it.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Phase is where the object is on its way.
	// +optional
	Phase InventoryPhase `json:"phase,omitempty"`

	// Status is how ready the object is. Empty means Current in the phase Ready, and not known in any other.
	// +optional
	Status ObjectStatus `json:"status,omitempty"`

	// Message says what the object waits for, or what could not be done about it. It has a limited length.
	// +optional
	Message string `json:"message,omitempty"`

	// LastAppliedAt is when the object was last written. It is kept only for objects that are to be rewritten periodically.
	// +optional
	LastAppliedAt *metav1.Time `json:"lastAppliedAt,omitempty"`
}

// ManagedType is a type that an object brings into the cluster. Version or Kind may be "*" for all.
type ManagedType struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// InventoryPhase is where an object of a component is on its way.
type InventoryPhase string

const (
	// PhaseScheduledForApplication: it is new, or another content is desired of it, and it is not written yet.
	PhaseScheduledForApplication InventoryPhase = "ScheduledForApplication"
	// PhaseScheduledForDeletion: it is not desired any more, and not deleted yet.
	PhaseScheduledForDeletion InventoryPhase = "ScheduledForDeletion"
	// PhaseScheduledForCompletion: it is due to be purged.
	PhaseScheduledForCompletion InventoryPhase = "ScheduledForCompletion"
	// PhaseCreating: we created it, and it is not ready yet.
	PhaseCreating InventoryPhase = "Creating"
	// PhaseUpdating: we changed it, and it is not ready yet.
	PhaseUpdating InventoryPhase = "Updating"
	// PhaseRecreating: we deleted it to create it anew, and it is not gone yet.
	PhaseRecreating InventoryPhase = "Recreating"
	// PhaseDeleting: we deleted it, and it is not gone yet.
	PhaseDeleting InventoryPhase = "Deleting"
	// PhaseCompleting: we purged it, and it is not gone yet.
	PhaseCompleting InventoryPhase = "Completing"
	// PhaseReady: it was ready at least once since our last write.
	PhaseReady InventoryPhase = "Ready"
	// PhaseCompleted: it was purged and is gone. The record stays.
	PhaseCompleted InventoryPhase = "Completed"
)

// ObjectStatus is how ready an object is, in the words of kstatus.
type ObjectStatus string

const (
	ObjectInProgress  ObjectStatus = "InProgress"
	ObjectFailed      ObjectStatus = "Failed"
	ObjectCurrent     ObjectStatus = "Current"
	ObjectTerminating ObjectStatus = "Terminating"
	ObjectNotFound    ObjectStatus = "NotFound"
	ObjectUnknown     ObjectStatus = "Unknown"
)

// AdoptionPolicy says what becomes of an object that exists already when it is desired for the first time.
// +kubebuilder:validation:Enum=Never;IfUnowned;Always
type AdoptionPolicy string

const (
	// AdoptNever: it is an error.
	AdoptNever AdoptionPolicy = "Never"
	// AdoptIfUnowned: it is taken over if no component owns it. This is the default.
	AdoptIfUnowned AdoptionPolicy = "IfUnowned"
	// AdoptAlways: it is taken over, from another component too.
	AdoptAlways AdoptionPolicy = "Always"
)

// ReconcilePolicy says when an object is written again.
// +kubebuilder:validation:Enum=OnObjectChange;OnObjectOrComponentChange;Once
type ReconcilePolicy string

const (
	// ReconcileOnObjectChange: when what is desired of it changes, or somebody changed it. This is the default.
	ReconcileOnObjectChange ReconcilePolicy = "OnObjectChange"
	// ReconcileOnObjectOrComponentChange: when the component changes, too.
	ReconcileOnObjectOrComponentChange ReconcilePolicy = "OnObjectOrComponentChange"
	// ReconcileOnce: never, once it exists. An object that was written under another policy is written a last time.
	ReconcileOnce ReconcilePolicy = "Once"
)

// UpdatePolicy says how an object is written again.
// +kubebuilder:validation:Enum=Apply;ApplyOverride;Replace;Recreate
type UpdatePolicy string

const (
	// UpdateApply: by server-side apply, which leaves the fields of others alone. This is the default.
	UpdateApply UpdatePolicy = "Apply"
	// UpdateApplyOverride: by server-side apply, after taking the fields of certain other managers, such as kubectl. What
	// they set, and is not desired, goes.
	UpdateApplyOverride UpdatePolicy = "ApplyOverride"
	// UpdateReplace: by an update that drops whatever others have set, but for finalizers.
	UpdateReplace UpdatePolicy = "Replace"
	// UpdateRecreate: it is deleted and, once gone, created anew; but only if something else is desired of it. What somebody
	// changed is put right by server-side apply.
	UpdateRecreate UpdatePolicy = "Recreate"
)

// DeletePolicy says what becomes of an object that is not desired any more.
// +kubebuilder:validation:Enum=Delete;Orphan;OrphanOnApply;OrphanOnDelete
type DeletePolicy string

const (
	// DeleteDelete: it is deleted. This is the default.
	DeleteDelete DeletePolicy = "Delete"
	// DeleteOrphan: it stays, and does not belong to the component any more.
	DeleteOrphan DeletePolicy = "Orphan"
	// DeleteOrphanOnApply: it stays if the component drops it, and is deleted with the component.
	DeleteOrphanOnApply DeletePolicy = "OrphanOnApply"
	// DeleteOrphanOnDelete: it is deleted if the component drops it, and stays when the component is deleted.
	DeleteOrphanOnDelete DeletePolicy = "OrphanOnDelete"
)

// PrunePolicy says when an object goes that the component drops. The wave meant is that in which it was applied.
// +kubebuilder:validation:Enum=Before;With;After
type PrunePolicy string

const (
	// PruneBefore: before anything of the wave is written, for an object that is in the way of its successor.
	PruneBefore PrunePolicy = "Before"
	// PruneWith: once nothing of the wave is left to be written, whether or not it is ready, or could be written; at once if
	// nothing of it has changed. This is the default.
	PruneWith PrunePolicy = "With"
	// PruneAfter: once the wave is ready, for an object that has to serve until its successor does.
	PruneAfter PrunePolicy = "After"
)

// MissingNamespacesPolicy says what becomes of namespaces that objects are in, and the component does not have.
// +kubebuilder:validation:Enum=Create;DoNotCreate
type MissingNamespacesPolicy string

const (
	// MissingNamespacesCreate: they are created where they are missing, and stay. This is the default.
	MissingNamespacesCreate MissingNamespacesPolicy = "Create"
	// MissingNamespacesDoNotCreate: the objects in them cannot be created.
	MissingNamespacesDoNotCreate MissingNamespacesPolicy = "DoNotCreate"
)

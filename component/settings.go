package component

import (
	"time"
)

// SharedPrefix is the prefix under which every component reads the annotations of an object, beside its own.
const SharedPrefix = "espalier.dev"

// The annotations of an object, each after a prefix and a slash. Where an object has one under the prefix of the component and
// under the shared one, the former counts.
const (
	AnnotationAdoptionPolicy  = "adoption-policy"
	AnnotationReconcilePolicy = "reconcile-policy"
	AnnotationUpdatePolicy    = "update-policy"
	AnnotationDeletePolicy    = "delete-policy"
	AnnotationPrunePolicy     = "prune-policy"
	AnnotationApplyOrder      = "apply-order"
	AnnotationPurgeOrder      = "purge-order"
	AnnotationDeleteOrder     = "delete-order"
	AnnotationReapplyInterval = "reapply-interval"
	AnnotationStatusHint      = "status-hint"
	AnnotationReadyWhen       = "ready-when"
	AnnotationIgnoreFields    = "ignore-fields"
	// AnnotationForeignInstances on a CustomResourceDefinition or APIService is "block" (default) or "ignore": whether instances
	// that the component does not own keep the type from being deleted.
	AnnotationForeignInstances = "foreign-instances"
)

// The keys that the reconciler itself writes to objects, each after the prefix of the component and a slash.
const (
	// LabelOwnerID and AnnotationOwnerID tell which component an object belongs to: as a digest that can be selected by, and
	// in clear text.
	LabelOwnerID      = "owner-id"
	AnnotationOwnerID = "owner-id"
	// AnnotationDigest identifies what the object was last written for.
	AnnotationDigest = "digest"
)

// Settings are what the annotations of an object ask for.
type Settings struct {
	// The policies; empty where the object has no annotation: the component's then counts.
	AdoptionPolicy  AdoptionPolicy
	ReconcilePolicy ReconcilePolicy
	UpdatePolicy    UpdatePolicy
	DeletePolicy    DeletePolicy
	PrunePolicy     PrunePolicy
	// ApplyOrder and DeleteOrder are waves. Default: 0.
	ApplyOrder, DeleteOrder int16
	// PurgeOrder is the wave after which the object is removed again; nil for never.
	PurgeOrder *int16
	// ReapplyInterval is how often the object is written although nothing seems to have changed; nil where the object does not
	// say, 0 for never.
	ReapplyInterval *time.Duration
	// StatusHint helps to tell whether the object is ready.
	StatusHint StatusHint
	// ReadyWhen is a CEL expression over the variable object that is true once the object is ready; empty for none.
	ReadyWhen string
	// IgnoreFields are fields that are written when the object is created, and left to others from then on, as JSON
	// pointers: "/spec/replicas".
	IgnoreFields []string
	// IgnoreForeignInstances: instances of others do not keep the type that the object defines from being deleted.
	IgnoreForeignInstances bool
}

// StatusHint says of an object what its status will have although it does not have it yet.
type StatusHint struct {
	// HasObservedGeneration: status.observedGeneration. Without it, the object is not ready.
	HasObservedGeneration bool
	// HasReadyCondition: a condition Ready.
	HasReadyCondition bool
	// Conditions have to be True besides.
	Conditions []string
}

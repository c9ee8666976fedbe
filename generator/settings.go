package generator

import (
	"time"

	"github.com/espalier-dev/espalier/internal/ownership"
)

// SharedPrefix is the prefix under which every component reads the annotations of an object, in addition to its own.
const SharedPrefix = "espalier.dev"

// An object of a component says by annotations how the component treats it. The key of an annotation is a prefix, a
// slash and one of the names below. The prefix is the component's own (ComponentReconciler.Prefix) or the shared one,
// espalier.dev, which every component reads. If an object has an annotation under both, the one under the prefix of the
// component counts, even if its value is the default.
//
// A value that is not valid is an error, which names the annotation, and the component then changes nothing.
//
// # Unknown names
//
// An unknown name under espalier.dev is an error. Under the prefix of the component, other annotations may be yours, or
// those of another tool. Only a name that is nearly one of those below, such as apply-ordr, is an error, which gives
// the nearest. All others are left as they are.
//
// # Spelling
//
// A word such as if-unowned may also be written ifUnowned or IfUnowned.
//
// # Order
//
// A wave is all objects with the same order. Orders are numbers, and waves need not be consecutive.
//
// Waves of apply-order are applied from the lowest number to the highest. A wave starts when all objects of the waves
// before it are ready. Within a wave, the component applies in this order:
//
//  1. Namespaces, CustomResourceDefinitions, roles and classes, ConfigMaps, Secrets and role bindings, then all other
//     kinds but those that follow, then webhook configurations.
//  2. APIServices, when all of these are ready.
//  3. Instances of types that the component brings, when all but the APIServices are ready. Instances of a type that an
//     APIService brings also wait until that one is ready.
//
// A webhook thus refuses nothing of its own wave that its server needs, and it sees the instances. It does not wait
// until its server is ready: the server may wait for it, for instance to write its certificate into it. Give it a
// higher apply-order if it has to wait.
//
// Waves of delete-order are deleted from the lowest number to the highest. A wave starts when all objects of the waves
// before it are gone. Within a wave, webhook configurations and instances of types that the component brings go first.
// A Namespace and an object
// that defines types go last, when the objects that depend on them are gone.
//
// An instance must not have a lower apply-order than the object of the component that defines its type, nor a higher
// delete-order. The same holds for an object and its Namespace.
const (
	// AnnotationAdoptionPolicy says what happens if the object exists before the component desires it.
	//
	//   - never: the object is left alone. The condition says whose it is, and the component waits until it is gone.
	//   - if-unowned: the component takes the object over if nobody is known to own it.
	//   - always: the component takes the object over, even from its owner.
	//
	// An object has an owner if it has a controller among its owner references, or the marks of another component, a
	// Helm release, an Argo CD application, a Flux Kustomization or HelmRelease, a kapp application, an inventory of
	// cli-utils (kpt, Config Sync), an ApplySet of kubectl, OLM, Rancher Fleet or the addon manager. The label
	// app.kubernetes.io/managed-by is no such mark. What belonged to a former resource of the same kind and name has no
	// owner. An object of the component that has only lost its owner label needs no policy.
	//
	// An object that was adopted is orphaned when it is no longer desired, and when the component is deleted, unless
	// the object or the component has a delete policy. What the component creates again, since the object was deleted
	// or for the update policy recreate, counts as created by the component.
	//
	// Default: the adoption policy of the component, or never.
	//
	//	espalier.dev/adoption-policy: if-unowned
	AnnotationAdoptionPolicy = "adoption-policy"

	// AnnotationReconcilePolicy says when the component writes the object again.
	//
	//   - on-object-change: when its manifest changes, or when the object in the cluster was changed.
	//   - on-object-or-component-change: also when the component changes.
	//   - once: never. The object is not created again either if it is gone after the component has created it.
	//
	// Default: on-object-change.
	//
	//	espalier.dev/reconcile-policy: once
	AnnotationReconcilePolicy = "reconcile-policy"

	// AnnotationUpdatePolicy says how the component writes the object again.
	//
	//   - apply: by server-side apply. The fields of other field managers stay.
	//   - apply-override: by server-side apply, after taking over the fields of certain field managers, such as
	//     kubectl. Fields that these have set, and that are not desired, are removed.
	//   - replace: by an update, which removes all fields that are not desired, such as a port to which others changed
	//     one. Finalizers stay.
	//   - recreate: the object is deleted and created again, but only if its manifest has changed. A change that others
	//     made to the object is reverted by server-side apply.
	//   - ssa-merge: the same as apply.
	//   - ssa-override: the same as apply-override.
	//   - default: as if there were no annotation.
	//
	// Default: the update policy of the component, or apply.
	//
	//	espalier.dev/update-policy: recreate
	AnnotationUpdatePolicy = "update-policy"

	// AnnotationDeletePolicy says what happens to the object when it is no longer desired.
	//
	//   - delete: it is deleted.
	//   - orphan: it stays, and no longer belongs to the component.
	//   - orphan-on-apply: it stays if the component drops it, and is deleted with the component.
	//   - orphan-on-delete: it is deleted if the component drops it, and stays when the component is deleted.
	//   - default: as if there were no annotation.
	//
	// A Namespace that was adopted is never deleted, whatever the policy.
	//
	// Default: the delete policy of the component, or else orphan for an object that was adopted and delete for others.
	//
	//	espalier.dev/delete-policy: orphan-on-delete
	AnnotationDeletePolicy = "delete-policy"

	// AnnotationPrunePolicy says when an object is removed that the component drops, relative to the wave in which the
	// object was applied.
	//
	//   - before: before anything of the wave is written. This suits an object that is in the way of its successor.
	//   - with: when all required objects of the wave are written and ours, ready or not.
	//   - after: when the wave is ready. This suits an object that serves until its successor does.
	//
	// An object because of which the API server refuses to write a new one may go at once, whatever the policy.
	//
	// Without a policy, an object that holds data waits until all required objects of the component are ready: a
	// PersistentVolumeClaim, a StatefulSet, a Namespace, a CustomResourceDefinition, and a Secret with the reconcile
	// policy once.
	//
	// Default: the prune policy of the component, or with, but for an object that holds data.
	//
	//	espalier.dev/prune-policy: after
	AnnotationPrunePolicy = "prune-policy"

	// AnnotationApplyOrder is the wave in which the object is applied.
	//
	//   - a number from -32768 to 32767
	//
	// Default: 0.
	//
	//	espalier.dev/apply-order: "-1"
	AnnotationApplyOrder = "apply-order"

	// AnnotationPurgeOrder is the wave of apply-order after which the object is removed again. It is removed when that
	// wave is ready, or the last one before it if there is no such wave, but never before its own wave is ready. It
	// suits a Job that is needed only for the roll-out. A Namespace, a CustomResourceDefinition or an APIService cannot
	// have a purge-order.
	//
	//   - a number from -32768 to 32767
	//
	// Default: the object stays.
	//
	//	espalier.dev/purge-order: "2"
	AnnotationPurgeOrder = "purge-order"

	// AnnotationDeleteOrder is the wave in which the object is deleted.
	//
	//   - a number from -32768 to 32767
	//
	// Default: 0.
	//
	//	espalier.dev/delete-order: "10"
	AnnotationDeleteOrder = "delete-order"

	// AnnotationReapplyInterval is how often the object is written although nothing seems to have changed.
	//
	//   - a duration such as 1h30m: units are ns, us, ms, s, m and h. 0 is never. A negative one is refused.
	//
	// Default: the interval of the component, or never.
	//
	//	espalier.dev/reapply-interval: 1h30m
	AnnotationReapplyInterval = "reapply-interval"

	// AnnotationStatusHint says what the status of the object will have, although it does not have it yet. Without a
	// hint, a custom resource that its controller has not seen yet counts as ready. The value is a list, separated by
	// commas.
	//
	//   - has-observed-generation: the object is not ready while status.observedGeneration is missing.
	//   - has-ready-condition: the object is not ready while the condition Ready is missing.
	//   - conditions=A;B: the object is not ready until each of these conditions is True. Names are separated by
	//     semicolons.
	//
	// Default: no hint.
	//
	//	espalier.dev/status-hint: has-observed-generation,has-ready-condition
	//	espalier.dev/status-hint: conditions=Accepted;Programmed
	AnnotationStatusHint = "status-hint"

	// AnnotationReadyWhen is an expression that is true when the object is ready. It is evaluated if the object is
	// ready by all other rules. While it is false, or refers to a field that is missing, the object is not ready.
	//
	//   - a CEL expression over the variable object: it has at most 4096 bytes, and its result is true or false. The
	//     extensions for strings, sets and optional values are available, without format, join and replace.
	//
	// Default: no expression.
	//
	//	espalier.dev/ready-when: object.status.phase == 'Bound'
	//	espalier.dev/ready-when: object.?status.?readyReplicas.orValue(0) >= 2
	AnnotationReadyWhen = "ready-when"

	// AnnotationIgnoreFields names fields that are written when the object is created, and that other field managers
	// may set from then on. It ends a fight with another client that keeps changing a field, which the condition of the
	// component reports as Contested. The rules of an aggregated ClusterRole, and a caBundle that is a placeholder or
	// that an annotation has injected, are known to be set by others. They are never written.
	//
	//   - JSON pointers, separated by commas: a slash in a name is written ~1, a tilde ~0. A single label or annotation
	//     can be ignored. The rest of the metadata, the kind and the apiVersion cannot.
	//
	// Default: no field.
	//
	//	espalier.dev/ignore-fields: /spec/replicas,/metadata/annotations/example.com~1checksum
	AnnotationIgnoreFields = "ignore-fields"

	// AnnotationForeignInstances says whether instances that the component does not own keep a type from being deleted.
	// It is for a CustomResourceDefinition, and for a Namespace, whose instances are the objects in it. An APIService
	// needs none: the server behind it keeps the instances.
	//
	//   - block: the type or the namespace stays while such instances exist, or could not be looked for.
	//   - ignore: it is deleted, and the instances of a CustomResourceDefinition or a Namespace with it.
	//
	// A namespace is looked at when the objects of the component in it are gone. Objects without our owner label count,
	// unless they go with their owners, such as Pods, or are in every namespace. Claims that a StatefulSet keeps count,
	// and so do Secrets that a program of the component has created without an owner reference.
	//
	// The annotation also counts on the object as it is in the cluster. So it can be set when the component is being
	// deleted already, and its deletion is blocked.
	//
	// Default: block.
	//
	//	espalier.dev/foreign-instances: ignore
	AnnotationForeignInstances = "foreign-instances"

	// AnnotationParticipation says what the object means to the component.
	//
	//   - required: the component is ready when the object is, and its wave waits for it.
	//   - auxiliary: the component does without the object. Neither its errors nor its health stop a wave, make the
	//     component not ready, or fail the request. An error is in the inventory and in the log, and is tried again.
	//   - unchecked: the health of the object does not count. Errors do.
	//
	// It counts as long as the object is desired. An object that cannot be deleted always counts.
	//
	// Default: required.
	//
	//	espalier.dev/participation: auxiliary
	AnnotationParticipation = "participation"

	// AnnotationPresence says whether the component has the object.
	//
	//   - managed: the object is written and deleted as the other annotations say. An object with the delete policy
	//     orphan-on-delete is written and not deleted with the component; one with the reconcile policy once is only
	//     created.
	//   - absent: the object is not written. If it belongs to the component, it is deleted, whatever its delete policy.
	//     Exception: a Namespace that was adopted stays.
	//   - orphaned: the object is not written. If it belongs to the component, it stays in the cluster, and no longer
	//     belongs to the component. To be managed again, it has to be adopted.
	//   - read-only: the object is never written or deleted, and does not belong to the component. The component reads
	//     and watches it, and its wave waits until it is ready.
	//
	// An object that is absent or orphaned has no participation. One that is read-only has no annotation that says how
	// it is written: adoption-policy, reconcile-policy, update-policy, purge-order, reapply-interval, ignore-fields.
	//
	// Default: managed.
	//
	//	espalier.dev/presence: read-only
	AnnotationPresence = "presence"

	// AnnotationIfAbsent says what happens if an object with the presence read-only does not exist.
	//
	//   - wait: its wave waits, and the condition names the object.
	//   - ignore: the wave goes on.
	//
	// Default: wait.
	//
	//	espalier.dev/if-absent: ignore
	AnnotationIfAbsent = "if-absent"
)

// AnnotationAbandon is an annotation under the prefix of the component, on a resource whose component is being deleted.
// It gives up the objects of the component that cannot be deleted: their kubeconfig does not exist or cannot be used,
// their cluster does not answer or rejects the credentials or is another one than before, the user of the component
// lacks a permission there, others use them, or no write of the deletion has succeeded for ten minutes. All objects
// that are left stay as they are, except that the fences of types are taken off, and the resource goes. The condition
// and an event say which were given up, and in which cluster.
//
// Its value is the UID of the resource. So no manifest can have it by accident, and a resource that is created again
// does not have it. It can be set while the resource is being deleted, and has no effect before. It has no effect
// either as long as the objects can be deleted.
//
//	shop.example.com/abandon: 6c1d5f2e-53d8-4d8a-9f3b-0a5a0f1d2c3b
const AnnotationAbandon = "abandon"

// AnnotationAllowEmpty is an annotation under the prefix of the component, on its resource. With it, all objects of the
// component are deleted when its generator returns none. By default, they are left as they are then, and the condition
// has the reason EmptySet.
//
// Its value is the generation of the resource that it counts for. It counts once: not any more when the objects are
// gone, or others were rolled out.
//
//	shop.example.com/allow-empty: "7"
const AnnotationAllowEmpty = "allow-empty"

// The component itself writes the following keys, under its own prefix. In a manifest they are ignored.
const (
	// LabelOwnerID is the label with a digest of the component that owns the object. Objects can be selected by it.
	LabelOwnerID = ownership.LabelOwnerID

	// AnnotationOwnerID is the annotation with the name of the component that owns the object.
	AnnotationOwnerID = ownership.AnnotationOwnerID

	// AnnotationDigest is the annotation with a digest of the manifest that the object was last written for.
	AnnotationDigest = ownership.AnnotationDigest

	// AnnotationFence is the annotation that says how far the deletion of a type is, on an object that defines types:
	// the fence is the validation rule that refuses to create instances meanwhile.
	AnnotationFence = "fence"
)

// Settings are what the annotations of an object ask for. The constants describe each.
type Settings struct {
	// The policies are empty if the object has no annotation, and those of the component count.
	AdoptionPolicy  AdoptionPolicy
	ReconcilePolicy ReconcilePolicy
	UpdatePolicy    UpdatePolicy
	DeletePolicy    DeletePolicy
	PrunePolicy     PrunePolicy
	// ApplyOrder and DeleteOrder are waves. Default: 0.
	ApplyOrder, DeleteOrder int16
	// PurgeOrder is nil if the object stays.
	PurgeOrder *int16
	// ReapplyInterval is nil if the interval of the component counts, and 0 for never.
	ReapplyInterval *time.Duration
	// StatusHint says what the status will have.
	StatusHint StatusHint
	// ReadyWhen is a CEL expression, or empty.
	ReadyWhen string
	// IgnoreFields are JSON pointers, such as "/spec/replicas".
	IgnoreFields []string
	// IgnoreForeignInstances allows deleting the type that the object defines while others have instances of it, or the
	// namespace while others have objects in it.
	IgnoreForeignInstances bool
	// Participation says what the object means to the component. Default: it is required.
	Participation Participation
	// Presence says whether the component has the object. Default: it is managed.
	Presence Presence
	// IgnoreAbsence says that the wave of an object that is only read does not wait until it exists.
	IgnoreAbsence bool
}

// Participation says what an object means to its component. The zero value means that it is required.
type Participation string

// The words for each are those of [AnnotationParticipation].
const (
	ParticipationAuxiliary Participation = "Auxiliary"
	ParticipationUnchecked Participation = "Unchecked"
)

// Presence says whether a component has an object. The zero value means that it is managed.
type Presence string

// The words for each are those of [AnnotationPresence].
const (
	PresenceAbsent   Presence = "Absent"
	PresenceOrphaned Presence = "Orphaned"
	PresenceReadOnly Presence = "ReadOnly"
)

// StatusHint says what the status of an object will have, although it does not have it yet.
type StatusHint struct {
	// HasObservedGeneration says that there will be status.observedGeneration. The object is not ready without it.
	HasObservedGeneration bool
	// HasReadyCondition says that there will be a condition Ready. The object is not ready without it.
	HasReadyCondition bool
	// Conditions are further conditions that have to be True.
	Conditions []string
}

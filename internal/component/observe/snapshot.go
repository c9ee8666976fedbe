package observe

import (
	"slices"
	"unique"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/secretdata"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/message"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// snapshot is what is kept of one version of an object, in about 300 bytes. It never changes.
type snapshot struct {
	uid         types.UID
	version     string
	generation  int64
	terminating bool
	// deletion says what a terminating object waits for.
	deletion string
	// marks say who owns the object.
	marks plan.Marks
	// digest is the value of the annotation.
	digest string
	// fenced is the result of [foreign.Fenced].
	fenced bool
	// ignoresForeign is the result of [foreign.IgnoresForeign].
	ignoresForeign bool
	// ending is how a Job ended if this is the last version of it.
	ending plan.Ending
	// tracked reports whether the object has managed fields, of any manager.
	tracked bool
	// entries are the managed fields of our manager, without subresources.
	entries []ownEntry
	// data stands for the data of a Secret.
	data []secretdata.Fingerprint
}

// ownEntry is an entry of the managed fields. Objects that were made alike have the same fields, which are kept once.
type ownEntry struct {
	operation  metav1.ManagedFieldsOperationType
	apiVersion unique.Handle[string]
	fields     unique.Handle[string]
	// time is in seconds, as in managed fields; 0 for none.
	time int64
}

// extractor makes snapshots of objects.
type extractor struct {
	prefix string
	// label, digest, fence and foreign are keys.
	label, digest, fence, foreign string

	manager string
}

func newExtractor(prefix, manager string) extractor {
	return extractor{
		prefix:  prefix,
		label:   prefix + "/" + generator.LabelOwnerID,
		digest:  prefix + "/" + generator.AnnotationDigest,
		fence:   prefix + "/" + foreign.AnnotationFence,
		foreign: prefix + "/" + generator.AnnotationForeignInstances,
		manager: manager,
	}
}

// snapshot returns the snapshot of an object. It wipes the data of a typed Secret, which no one else holds.
func (x extractor) snapshot(object metav1.Object) *snapshot {
	annotations := object.GetAnnotations()
	entries := object.GetManagedFields()
	s := &snapshot{
		uid:         object.GetUID(),
		version:     object.GetResourceVersion(),
		generation:  object.GetGeneration(),
		terminating: object.GetDeletionTimestamp() != nil,
		marks:       plan.MarksOf(object, x.prefix),
		digest:      annotations[x.digest],
		fenced:      annotations[x.fence] != "" && foreign.Fenced(object, x.fence),
		tracked:     len(entries) > 0,

		ignoresForeign: foreign.IgnoresForeign(annotations, x.foreign),
	}
	if s.terminating {
		s.deletion = message.Deletion(object.GetFinalizers())
	}
	s.marks.Label, s.marks.Owner = unique.Make(s.marks.Label).Value(), unique.Make(s.marks.Owner).Value()
	for i := range entries {
		entry := &entries[i]
		if entry.Manager != x.manager || entry.Subresource != "" {
			continue
		}
		own := ownEntry{
			operation:  entry.Operation,
			apiVersion: unique.Make(entry.APIVersion),
			fields:     unique.Make(entry.FieldsV1.GetRawString()),
		}
		if entry.Time != nil {
			own.time = entry.Time.Unix()
		}
		s.entries = append(s.entries, own)
	}
	s.entries = slices.Clip(s.entries)
	switch o := object.(type) {
	case *corev1.Secret:
		s.data = takeFingerprints(o.Data)
		o.Data = nil
	case *unstructured.Unstructured:
		switch o.GroupVersionKind().GroupKind() {
		case kinds.Secret:
			s.data = takeFingerprints(dataOf(o))
		case kinds.Job:
			s.ending = endingOf(o)
		}
	}
	return s
}

// managedFields returns the managed fields of our manager.
func (s *snapshot) managedFields(manager string) []metav1.ManagedFieldsEntry {
	if s == nil {
		return nil
	}
	var entries []metav1.ManagedFieldsEntry
	for _, own := range s.entries {
		entry := metav1.ManagedFieldsEntry{
			Manager:    manager,
			Operation:  own.operation,
			APIVersion: own.apiVersion.Value(),
			FieldsType: "FieldsV1",
		}
		if fields := own.fields.Value(); fields != "" {
			entry.FieldsV1 = metav1.NewFieldsV1(fields)
		}
		if own.time != 0 {
			entry.Time = new(metav1.Unix(own.time, 0))
		}
		entries = append(entries, entry)
	}
	return entries
}

// fieldsDigest is [managedfields.Digest] of the object.
func (s *snapshot) fieldsDigest(ignore []string) string {
	if !s.tracked {
		return ""
	}
	sets := make([]string, len(s.entries))
	for i, own := range s.entries {
		sets[i] = own.fields.Value()
	}
	return managedfields.Digest(sets, ignore)
}

// observed returns what a snapshot alone says about the object.
func (s *snapshot) observed(c *Component) plan.Observed {
	ownership, claim := s.marks.Ownership(c.OwnerID, c.Owner, len(s.entries) > 0)
	o := plan.Observed{
		Presence:   plan.Present,
		UID:        s.uid,
		Generation: s.generation,

		ResourceVersion: s.version,

		Terminating: s.terminating,
		Deletion:    s.deletion,
		Ownership:   ownership,
		Claim:       claim,
		FormerMarks: s.marks.Former(c.Owner),
		Digest:      s.digest,
		Fenced:      s.fenced,

		IgnoreForeignInstances: s.ignoresForeign,
	}
	if s.terminating {
		o.Ending = s.ending
	}
	return o
}

// alike reports whether two snapshots of an object differ in nothing but the resource version and the times.
func (s *snapshot) alike(other *snapshot) bool {
	return s.uid == other.uid && s.generation == other.generation && s.terminating == other.terminating &&
		s.deletion == other.deletion &&
		s.marks.Equal(&other.marks) && s.digest == other.digest && s.fenced == other.fenced &&
		s.ignoresForeign == other.ignoresForeign && s.tracked == other.tracked &&
		slices.EqualFunc(s.entries, other.entries, func(a, b ownEntry) bool {
			return a.operation == b.operation && a.apiVersion == b.apiVersion && a.fields == b.fields
		}) && slices.Equal(s.data, other.data)
}

// older reports whether one resource version is known to be older than another. It is false if they cannot be compared.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

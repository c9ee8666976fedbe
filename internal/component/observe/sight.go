package observe

import (
	"encoding/base64"
	"slices"
	"unique"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// sight is what is kept of one version of an object. It never changes.
type sight struct {
	uid         types.UID
	version     string
	generation  int64
	terminating bool
	// label and owner are the value of the owner label and of the owner annotation, digest that of the digest annotation.
	label, owner, digest string
	// fenced: the object says that it is fenced, see [foreign.Fenced].
	fenced bool
	// tracked: the object has managed fields, whoever's.
	tracked bool
	// shares are the managed fields of ours without subresources.
	shares []share
	// data stands for the data of a Secret.
	data []fingerprint
}

// share is a managed fields entry. Objects that were made alike have alike fields, which are kept once.
type share struct {
	operation  metav1.ManagedFieldsOperationType
	apiVersion unique.Handle[string]
	fields     unique.Handle[string]
	// time is in seconds, as managed fields have it; 0 for none.
	time int64
}

// lens makes sights of objects.
type lens struct {
	// label, owner and digest are keys.
	label, owner, digest string
	prefix, manager      string
}

func newLens(prefix, manager string) lens {
	return lens{
		label:   prefix + "/" + component.LabelOwnerID,
		owner:   prefix + "/" + component.AnnotationOwnerID,
		digest:  prefix + "/" + component.AnnotationDigest,
		prefix:  prefix,
		manager: manager,
	}
}

// metadata returns the sight of an object but for its data.
func (l lens) metadata(object metav1.Object) *sight {
	annotations := object.GetAnnotations()
	entries := object.GetManagedFields()
	s := &sight{
		uid:         object.GetUID(),
		version:     object.GetResourceVersion(),
		generation:  object.GetGeneration(),
		terminating: object.GetDeletionTimestamp() != nil,
		label:       unique.Make(object.GetLabels()[l.label]).Value(),
		owner:       unique.Make(annotations[l.owner]).Value(),
		digest:      annotations[l.digest],
		fenced:      foreign.Fenced(object, l.prefix),
		tracked:     len(entries) > 0,
	}
	for _, entry := range managedfields.Entries(entries, l.manager) {
		made := share{
			operation:  entry.Operation,
			apiVersion: unique.Make(entry.APIVersion),
			fields:     unique.Make(entry.FieldsV1.GetRawString()),
		}
		if entry.Time != nil {
			made.time = entry.Time.Unix()
		}
		s.shares = append(s.shares, made)
	}
	s.shares = slices.Clip(s.shares)
	return s
}

// secret returns the sight of a Secret and wipes its data.
func (l lens) secret(secret *corev1.Secret) *sight {
	s := l.metadata(secret)
	s.data = takeFingerprints(secret.Data)
	secret.Data = nil
	return s
}

// object returns the sight of an object in full. confidential is for a Secret.
func (l lens) object(object *unstructured.Unstructured, confidential bool) *sight {
	s := l.metadata(object)
	if confidential {
		s.data = takeFingerprints(dataOf(object))
	}
	return s
}

// dataOf returns the data of a Secret, in memory of its own.
func dataOf(secret *unstructured.Unstructured) map[string][]byte {
	data := map[string][]byte{}
	encoded, _ := secret.Object["data"].(map[string]any)
	for key, value := range encoded {
		text, _ := value.(string)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue
		}
		data[key] = decoded
	}
	// An API server answers without stringData; what stands in for one in tests may not.
	plain, _ := secret.Object["stringData"].(map[string]any)
	for key, value := range plain {
		if text, ok := value.(string); ok {
			data[key] = []byte(text)
		}
	}
	return data
}

// entries returns the managed fields of ours.
func (s *sight) entries(manager string) []metav1.ManagedFieldsEntry {
	if s == nil {
		return nil
	}
	var entries []metav1.ManagedFieldsEntry
	for _, share := range s.shares {
		entry := metav1.ManagedFieldsEntry{
			Manager:    manager,
			Operation:  share.operation,
			APIVersion: share.apiVersion.Value(),
			FieldsType: "FieldsV1",
		}
		if fields := share.fields.Value(); fields != "" {
			entry.FieldsV1 = metav1.NewFieldsV1(fields)
		}
		if share.time != 0 {
			entry.Time = new(metav1.Unix(share.time, 0))
		}
		entries = append(entries, entry)
	}
	return entries
}

// fieldsDigest is [Fields] of the object.
func (s *sight) fieldsDigest(ignore []string) string {
	if !s.tracked {
		return ""
	}
	sets := make([]string, len(s.shares))
	for i, share := range s.shares {
		sets[i] = share.fields.Value()
	}
	return managedfields.Digest(sets, ignore)
}

// observed returns what a sight shows by itself.
func (s *sight) observed(id, owner string) plan.Observed {
	o := plan.Observed{
		Presence:    plan.Present,
		UID:         s.uid,
		Generation:  s.generation,
		Terminating: s.terminating,
		Ownership:   OwnershipOf(s.label, s.owner, id, owner),
		Digest:      s.digest,
		Fenced:      s.fenced,
	}
	if o.Ownership != plan.Unowned {
		o.Owner = s.owner
	}
	return o
}

// alike tells whether two sights of an object differ in nothing but the resource version.
func (s *sight) alike(other *sight) bool {
	return s.uid == other.uid && s.generation == other.generation && s.terminating == other.terminating &&
		s.label == other.label && s.owner == other.owner && s.digest == other.digest && s.fenced == other.fenced && s.tracked == other.tracked &&
		slices.EqualFunc(s.shares, other.shares, func(a, b share) bool {
			return a.operation == b.operation && a.apiVersion == b.apiVersion && a.fields == b.fields
		}) && slices.Equal(s.data, other.data)
}

// compareVersions orders two resource versions; ok is false if they cannot be compared.
func compareVersions(a, b string) (order int, ok bool) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// older tells whether one resource version is known to be older than another. Versions that cannot be compared tell nothing.
func older(version, than string) bool {
	order, ok := compareVersions(version, than)
	return ok && order < 0
}

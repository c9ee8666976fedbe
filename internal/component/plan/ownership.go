package plan

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/message"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Ownership says who owns an object.
type Ownership int

const (
	// Unowned means that nobody is known to own it.
	Unowned Ownership = iota
	Ours
	// Predecessor means that the owner is a component of the same kind, namespace and name with another UID, which is
	// therefore gone. The object counts as unowned.
	Predecessor
	// Foreign means that another component, a controller or another manager owns it.
	Foreign
)

// Marks are what the metadata of an object say about its owner.
type Marks struct {
	// Label is the value of the owner label, and Owner that of the owner annotation. Both are under our prefix.
	Label, Owner string
	// Others is what else the metadata say. It is nil if that is nothing, as for most objects with an owner label.
	Others *OtherMarks
}

// OtherMarks are the marks of others than the components with our prefix.
type OtherMarks struct {
	// Manager says which controller or other manager owns the object, such as "is controlled by ReplicaSet web". It is
	// empty if there is none.
	Manager string
	// Component is the value of an owner annotation under another prefix. It is empty if there is none.
	Component string
	// Writers says who wrote the object. It is empty if that is not known, and if the object has an owner label.
	Writers string
}

// MarksOf reads the marks of an object. The prefix is that of our owner label.
func MarksOf(object metav1.Object, prefix string) Marks {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	m := Marks{
		Label: labels[prefix+"/"+component.LabelOwnerID],
		Owner: annotations[prefix+"/"+component.AnnotationOwnerID],
	}
	manager, other, writers := managerOf(object, labels, annotations), componentOf(annotations, prefix), ""
	if m.Label == "" {
		writers = writersOf(object.GetManagedFields())
	}
	if manager != "" || other != "" || writers != "" {
		m.Others = &OtherMarks{Manager: manager, Component: other, Writers: writers}
	}
	return m
}

// Equal reports whether both say the same.
func (m *Marks) Equal(other *Marks) bool {
	if m.Label != other.Label || m.Owner != other.Owner || m.Others == nil || other.Others == nil {
		return *m == *other
	}
	return *m.Others == *other.Others
}

// managerOf says which controller or manager other than a component owns an object. It reads what these managers write
// on each of their objects. The label app.kubernetes.io/managed-by says nothing: charts have it, whoever installs them.
func managerOf(object metav1.Object, labels, annotations map[string]string) string {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return "is controlled by " + shown(owner.Kind+" "+owner.Name)
	}
	if len(labels) == 0 && len(annotations) == 0 {
		return ""
	}
	application, _, _ := strings.Cut(annotations["argocd.argoproj.io/tracking-id"], ":")
	if application == "" {
		application = labels["argocd.argoproj.io/instance"]
	}
	const kustomize, helm = "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/"
	for _, manager := range []Key{
		{Kind: "Flux HelmRelease", Namespace: labels[helm+"namespace"], Name: labels[helm+"name"]},
		{Kind: "Flux Kustomization", Namespace: labels[kustomize+"namespace"], Name: labels[kustomize+"name"]},
		{Kind: "Argo CD application", Name: application},
		{Kind: "Helm release", Namespace: annotations["meta.helm.sh/release-namespace"],
			Name: annotations["meta.helm.sh/release-name"]},
		{Kind: "kapp application", Name: labels["kapp.k14s.io/app"]},
	} {
		if manager.Name != "" {
			return "belongs to the " + shown(manager.String())
		}
	}
	return ""
}

// componentOf returns the first owner annotation of a component with another prefix.
func componentOf(annotations map[string]string, prefix string) string {
	found, first := "", ""
	for key, value := range annotations {
		other, ok := strings.CutSuffix(key, "/"+component.AnnotationOwnerID)
		if ok && other != prefix && isOwnerText(value) && (first == "" || key < first) {
			found, first = value, key
		}
	}
	return found
}

// isOwnerText reports whether a text has the form in which a component names its owner: kind, namespace, name and UID.
func isOwnerText(text string) bool {
	parts := strings.Split(text, "/")
	return len(parts) == 4 && parts[0] != "" && parts[2] != "" && parts[3] != ""
}

const wereWriters = "was written by "

// namedWriters is how many field managers are named.
const namedWriters = 3

// writersOf names the field managers that wrote more than a subresource.
func writersOf(entries []metav1.ManagedFieldsEntry) string {
	writers := map[string]bool{}
	for i := range entries {
		if entries[i].Subresource == "" && entries[i].Manager != "" {
			writers[shown(entries[i].Manager)] = true
		}
	}
	if len(writers) == 0 {
		return ""
	}
	return wereWriters + message.List(slices.Sorted(maps.Keys(writers)), namedWriters)
}

// shown returns what others wrote as a part of a message.
func shown(text string) string {
	return message.Truncate(strings.Join(strings.Fields(text), " "), recordMessageLimit/2)
}

// Ownership returns who owns an object with these marks, from the point of view of the component with that id and that
// owner in clear text. The claim says it in words that follow "it", such as "belongs to Shop north/corner". It is empty
// if the object is ours, and if nothing is known.
//
// Our label alone makes an object ours. An owner annotation that is ours but for the UID makes it a predecessor's.
// Without our label, an owner annotation that names another component counts too.
func (m Marks) Ownership(id, owner string) (ownership Ownership, claim string) {
	var others OtherMarks
	if m.Others != nil {
		others = *m.Others
	}
	former := isFormer(m.Owner, owner)
	switch {
	case m.Label != "" && m.Label == id:
		return Ours, ""
	case m.Label != "" && !former, isOwnerText(m.Owner) && !former && m.Owner != owner:
		return Foreign, "belongs to " + ownerName(m.Owner)
	case others.Manager != "":
		return Foreign, others.Manager
	case others.Component != "" && others.Component != owner && !isFormer(others.Component, owner):
		return Foreign, "belongs to " + ownerName(others.Component)
	case m.Label != "":
		return Predecessor, "belongs to a former " + ownerName(m.Owner)
	}
	return Unowned, others.Writers
}

// isFormer reports whether two owners in clear text differ in the UID alone.
func isFormer(theirs, ours string) bool {
	// The clear text of an owner ends with its UID; the rest stays when the owner is created again.
	theirName, theirUID := path.Split(theirs)
	ourName, ourUID := path.Split(ours)
	return theirName != "" && theirName == ourName && theirUID != "" && ourUID != "" && theirUID != ourUID
}

// ownerName names an owner for people: without the UID.
func ownerName(owner string) string {
	if owner == "" {
		return "another component"
	}
	name := owner
	if parts := strings.Split(owner, "/"); len(parts) == 4 && parts[2] != "" {
		name = Key{Kind: parts[0], Namespace: parts[1], Name: parts[2]}.String()
	}
	return shown(name)
}

// MayTakeOver reports whether an object that is not ours, or not any more, may be made ours. recorded is the UID in the
// record of the object: if the object has it, the component created or adopted the object, which has only lost its
// label. What others took over stays theirs, with any policy.
func MayTakeOver(policy apis.AdoptionPolicy, ownership Ownership, recorded, uid types.UID) bool {
	switch {
	case ownership == Ours:
		return true
	case ownership == Foreign:
		return policy == apis.AdoptAlways && recorded == ""
	case recorded != "" && recorded == uid:
		return true
	}
	return policy == apis.AdoptIfUnowned || policy == apis.AdoptAlways
}

var clusterRole = schema.GroupKind{Group: groupRBAC, Kind: "ClusterRole"}

// aggregator fills aggregated ClusterRoles. It may see the deletion of such a role late, and then creates a role that
// has nothing but rules, or nothing at all.
const aggregator = "clusterrole-aggregation-controller"

// IsRemnant reports whether an object is only there because a controller wrote it once more after it was deleted. It
// may then be taken over whatever the policy, and counts as created by the component. recorded is the UID in the record
// of the object: without one, the component never had it. The claim is that of [Marks.Ownership].
func IsRemnant(kind schema.GroupKind, ownership Ownership, claim string, recorded types.UID) bool {
	return kind == clusterRole && ownership == Unowned &&
		(claim == wereWriters+aggregator || claim == "" && recorded != "")
}

package plan

import (
	"path"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/ownership"

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
	// Unlabelled means that nobody is known to own it, and it shows that we wrote it: it has our owner annotation, or
	// fields of our field manager. The object counts as unowned, unless it is the one in our record.
	Unlabelled
)

// Marks are what the metadata of an object say about its owner.
type Marks struct {
	// Label is the value of the owner label, and Owner that of the owner annotation. Both are under our prefix.
	Label, Owner string
	// Others are the marks of others than the components with our prefix. It is nil if there are none, as for most
	// objects with an owner label. Who wrote an object with an owner label is not among them.
	Others *ownership.Marks
}

// MarksOf reads the marks of an object. The prefix is that of our owner label.
func MarksOf(object metav1.Object, prefix string) Marks {
	m := Marks{
		Label: object.GetLabels()[prefix+"/"+generator.LabelOwnerID],
		Owner: object.GetAnnotations()[prefix+"/"+generator.AnnotationOwnerID],
	}
	others := ownership.MarksOf(object, prefix)
	if m.Label == "" {
		others.ReadWriters(object)
	}
	if others != (ownership.Marks{}) {
		m.Others = &others
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

// Ownership returns who owns an object with these marks, from the point of view of the component with that id and that
// owner in clear text. The claim says it in words that follow "it", such as "belongs to Shop north/corner". It is empty
// if the object is ours, and if nothing is known.
//
// Our label alone makes an object ours. So does our owner annotation if it has another owner label and no other
// manager: others changed the label. An annotation that is ours but for our cluster does too, see [Marks.Former]. One
// that is ours but for the UID makes the object a predecessor's. Without our label, an owner annotation that names
// another component counts too. written reports whether our field manager has fields of the object.
func (m Marks) Ownership(id, owner string, written bool) (who Ownership, claim string) {
	var others ownership.Marks
	if m.Others != nil {
		others = *m.Others
	}
	former, named := isFormer(m.Owner, owner), m.Owner != "" && m.Owner == owner
	switch {
	case m.Label != "" && (m.Label == id || named && others.Manager == ""), m.Former(owner):
		return Ours, ""
	case m.Label != "" && !former && !named, ownership.IsOwner(m.Owner) && !former && m.Owner != owner:
		return Foreign, ownership.BelongsTo(m.Owner)
	case others.Manager != "":
		return Foreign, others.Manager
	case others.Component != "" && others.Component != owner && !isFormer(others.Component, owner):
		return Foreign, ownership.BelongsTo(others.Component)
	case m.Label != "":
		return Predecessor, "belongs to a former " + ownership.Name(m.Owner)
	case named || written:
		return Unlabelled, others.Writers
	}
	return Unowned, others.Writers
}

// Former reports whether the marks are those that we wrote when owners had no cluster. They have our UID, so they are
// nobody else's.
func (m Marks) Former(owner string) bool {
	return m.Label != "" && ownership.IsWithoutCluster(m.Owner, owner)
}

// isFormer reports whether two owners in clear text differ in the UID alone.
func isFormer(theirs, ours string) bool {
	// The clear text of an owner ends with its UID; the rest stays when the owner is created again.
	theirName, theirUID := path.Split(theirs)
	ourName, ourUID := path.Split(ours)
	return theirName != "" && theirName == ourName && theirUID != "" && ourUID != "" && theirUID != ourUID
}

// MayTakeOver reports whether an object that is not ours, or not any more, may be made ours. recorded is the UID in the
// record of the object: if an object that we wrote has it, the object has only lost its label. The record alone proves
// nothing: others may write it. What others took over stays theirs, with any policy.
func MayTakeOver(policy apis.AdoptionPolicy, who Ownership, recorded, uid types.UID) bool {
	switch {
	case who == Ours:
		return true
	case who == Foreign:
		return policy == apis.AdoptAlways && recorded == ""
	case who == Unlabelled && recorded == uid:
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
func IsRemnant(kind schema.GroupKind, who Ownership, claim string, recorded types.UID) bool {
	return kind == clusterRole && who == Unowned &&
		(claim == ownership.WrittenBy(aggregator) || claim == "" && recorded != "")
}

package reconcilers

import (
	"fmt"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/kinds"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Renaming says what a [ChildReconciler] does if the desired child has another namespace or name than the child that
// exists.
type Renaming string

const (
	// IgnoreName writes what is desired to the child that exists. Its name counts only when it is created. It is the
	// zero value.
	IgnoreName Renaming = ""
	// ByKind makes a new object of a new name, or refuses the name if the child may hold data.
	//
	// A child may hold data if it is of a kind that does (PersistentVolumeClaim, StatefulSet, Namespace,
	// CustomResourceDefinition) or of a kind that is not one of Kubernetes itself, or if it is only created and never
	// changed, and is not a Job. Nothing is created then as long as there is a child. What is desired is written to the
	// child under the name that it has, and a [NameError] is reflected. If there is a child of the desired name too,
	// that one counts, and the others are neither written nor deleted; they go with the resource.
	//
	// Of all other kinds, the new child is created, and the old one is deleted when the new one is ready. The old one
	// is not written meanwhile. If another name is desired before that, only the child that was ready last is kept
	// until the newest is ready. On [Suspend] the old child is deleted as soon as the new one exists, because that does
	// not become ready.
	//
	// An object of the desired name is never deleted, and a desired child without a name is the one that was made of
	// the same generateName. If there is no desired child, the objects of all names are deleted. Nothing is created or
	// deleted if the name changes in two requests in a row although the generation of the resource stays the same. A
	// [NameError] is reflected then, until a name is desired twice.
	ByKind Renaming = "ByKind"
)

// mayHoldData reports whether something could be lost with a child of a kind. Once is true if it is only created.
func mayHoldData(kind schema.GroupKind, once bool) bool {
	return kinds.HoldsData(kind) || !kinds.IsBuiltIn(kind.Group) || once && kind != kinds.Job
}

// NameError says why a child does not have the name that is desired, see [Renaming]. It is reflected together with the
// child that there is, and is not returned.
type NameError struct {
	// Reason is NameChanged or NameNotStable.
	Reason metav1.StatusReason
	// Desired is the kind, namespace and name of what is desired, and Child that of what there is. If the reason is
	// NameNotStable, Desired is the kind alone, and Child is empty.
	Desired, Child string
	// Err says why the child is not as desired but for its name. It is nil if it is.
	Err error
}

const (
	nameChanged   metav1.StatusReason = "NameChanged"
	nameNotStable metav1.StatusReason = "NameNotStable"
)

func (e *NameError) Error() string {
	text := fmt.Sprintf("%s is not created, since %s exists, may hold data, and would be lost: return the old name, "+
		"or use OwnsEach with one member, where a new name is a new object", e.Desired, e.Child)
	if e.Reason == nameNotStable {
		text = fmt.Sprintf("nothing is created or deleted, since the desired name of the %s changes from request to "+
			"request although the resource stays the same: it must not depend on time, chance or the order of a map",
			e.Desired)
	}
	if e.Err != nil {
		text += fmt.Sprintf("; moreover: %v", e.Err)
	}
	return text
}

func (e *NameError) Unwrap() error { return e.Err }

// Status implements [apierrs.APIStatus].
func (e *NameError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: e.Reason, Message: e.Error()}
}

var _ apierrs.APIStatus = (*NameError)(nil)

// namedChild is what counts of an object when it is decided what becomes of the objects of several names.
type namedChild struct {
	// desired is true if it has the desired name.
	desired            bool
	ready, terminating bool
	created            time.Time
}

// names is what becomes of the objects of several names, by their indexes.
type names struct {
	// child is the object that counts as the child; -1 if what is desired is created.
	child int
	// waits is true if nothing is written because the child is another one that has to go first.
	waits bool
	// refused is true if the child keeps its name, which is another one.
	refused bool
	// first are deleted before the child is written, and last when it is ready.
	first, last []int
}

// decideNames decides what becomes of the objects of several names. Refuses is true if a new name is refused as long as
// there is an object.
func decideNames(refuses bool, objects []namedChild) names {
	var same, others, leaving []int
	for i, object := range objects {
		switch {
		case object.desired:
			same = append(same, i)
		case object.terminating:
			leaving = append(leaving, i)
		default:
			others = append(others, i)
		}
	}
	decided := names{child: lastReady(objects, same)}
	kept := lastReady(objects, others)
	switch {
	case refuses && decided.child >= 0:
	case refuses:
		decided.child, decided.refused = kept, kept >= 0
		if kept < 0 && len(leaving) > 0 {
			decided.child, decided.waits = leaving[0], true
		}
	default:
		// A name may have been generated twice.
		for _, i := range same {
			if i != decided.child && !objects[i].terminating {
				decided.first = append(decided.first, i)
			}
		}
		for _, i := range others {
			if i == kept {
				decided.last = []int{i}
			} else {
				decided.first = append(decided.first, i)
			}
		}
	}
	return decided
}

// lastReady returns that one of the selected objects which was ready last, as far as that can be known: the newest of
// those that are ready, or else the oldest. One of the desired name comes before others, and a terminating one counts
// only if there is no other. It returns -1 if none is selected.
func lastReady(objects []namedChild, selected []int) int {
	best := -1
	for _, i := range selected {
		if best < 0 || objects[i].outranks(objects[best]) {
			best = i
		}
	}
	return best
}

func (c namedChild) outranks(other namedChild) bool {
	switch {
	case c.terminating != other.terminating:
		return other.terminating
	case c.desired != other.desired:
		return c.desired
	case c.ready != other.ready:
		return c.ready
	case c.ready:
		return c.created.After(other.created)
	default:
		return c.created.Before(other.created)
	}
}

// hasName reports whether child has the namespace and the name of desired, or was made of its generateName.
func hasName(child, desired client.Object) bool {
	if namespace := child.GetNamespace(); namespace != "" && namespace != desired.GetNamespace() {
		return false
	}
	name, prefix := desired.GetName(), desired.GetGenerateName()
	if name != "" || prefix == "" {
		return child.GetName() == name
	}
	if made := child.GetGenerateName(); made != "" {
		return made == prefix
	}
	return strings.HasPrefix(child.GetName(), prefix)
}

// nameOf returns the namespace and the name of what is desired, or what its name is made of.
func nameOf(desired client.Object) string {
	name := desired.GetName()
	if name == "" {
		name = desired.GetGenerateName() + "*"
	}
	return desired.GetNamespace() + "/" + name
}

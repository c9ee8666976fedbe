package observe

import (
	"strings"

	"github.com/espalier-dev/espalier/internal/component/plan"
)

// OwnershipOf tells whose an object is that has the given owner label and owner annotation, from the point of view of the
// component with that id and that owner in clear text. The label decides; the annotation only tells a predecessor, which
// differs in the UID alone, from others.
func OwnershipOf(label, annotation, id, owner string) plan.Ownership {
	switch {
	case label == "":
		return plan.Unowned
	case label == id:
		return plan.Ours
	}
	theirs, theirUID, ok := cutUID(annotation)
	ours, ourUID, known := cutUID(owner)
	if ok && known && theirs == ours && theirUID != ourUID {
		return plan.Predecessor
	}
	return plan.Foreign
}

// cutUID splits the clear text of an owner into what stays when it is made anew, and its UID.
func cutUID(owner string) (rest, uid string, ok bool) {
	at := strings.LastIndexByte(owner, '/')
	if at < 0 || at == len(owner)-1 {
		return "", "", false
	}
	return owner[:at], owner[at+1:], true
}

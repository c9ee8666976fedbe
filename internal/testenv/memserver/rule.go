package memserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Verb is what a write does to the stored object.
type Verb string

// The verbs of a [Write]. A patch and an apply reach the rules as the create or update that they amount to.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Write is a change of one object that is about to be stored.
type Write struct {
	Verb     Verb
	Resource schema.GroupVersionResource
	// Old is the stored object, nil on create. It is shared: rules must not change it.
	Old client.Object
	// New is the object to store, nil on delete. It belongs to the write: rules may change it in place.
	New client.Object
	// Preconditions are those of a delete, nil if there are none.
	Preconditions *metav1.Preconditions
}

// A Rule is one way in which a real API server differs from a plain store. It looks at a write before it is stored, may
// complete the new object, and refuses the write by returning an error, which reaches the client unchanged. Rules run in
// the order given, under the server's lock: they must depend on nothing but the write.
type Rule func(w *Write) error

// always holds the rules that no test can object to, because only a mistaken caller meets them.
var always = []Rule{keepIdentity, checkPreconditions}

// keepIdentity refuses an update that means an earlier object of the same name, and lets no update lose the UID.
func keepIdentity(w *Write) error {
	if w.Verb != Update {
		return nil
	}
	stored, given := w.Old.GetUID(), w.New.GetUID()
	if given == "" {
		w.New.SetUID(stored)
		return nil
	}
	if stored != "" && stored != given {
		return conflict(w, "Precondition failed: UID in precondition: %s, UID in object meta: %s", given, stored)
	}
	return nil
}

// checkPreconditions refuses a delete that means another object or another version than the stored one.
func checkPreconditions(w *Write) error {
	if w.Verb != Delete || w.Preconditions == nil {
		return nil
	}
	if uid := w.Preconditions.UID; uid != nil && *uid != w.Old.GetUID() {
		return conflict(w, "the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *uid, w.Old.GetUID())
	}
	if rv := w.Preconditions.ResourceVersion; rv != nil && *rv != w.Old.GetResourceVersion() {
		return conflict(w, "the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). "+
			"The object might have been modified", *rv, w.Old.GetResourceVersion())
	}
	return nil
}

func conflict(w *Write, format string, args ...any) error {
	return apierrors.NewConflict(w.Resource.GroupResource(), w.Old.GetName(), fmt.Errorf(format, args...))
}

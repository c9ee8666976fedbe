// Package readiness tells how ready an object is: by kstatus, by what its annotations say, and where kstatus is wrong, by rules
// of its own. It is pure: it looks at the object, and at nothing else.
package readiness

import (
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Result is how ready an object is.
type Result struct {
	Status apis.ObjectStatus
	// Message says why it is not Current, in stable words of limited length; empty if it is.
	Message string
	// Volatile: it waits for another object that may come in the same or a later wave, see plan.Observed.
	Volatile bool
}

// Of tells how ready object is, which it does not change. It never fails: a rule that cannot be evaluated makes the object
// not ready, and the message says so.
func Of(object *unstructured.Unstructured, settings component.Settings) Result {
	return Result{}
}

// Static tells whether objects of the kind, with these settings, are ready as soon as they exist, whatever becomes of them.
func Static(kind schema.GroupKind, settings component.Settings) bool {
	return false
}

// Package suspension says how an object is made to rest, by rules for its kind.
package suspension

import (
	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rule says how objects of one kind rest.
type Rule struct {
	// Suspend changes a desired object so that it does not run. Nil changes nothing.
	Suspend func(desired *unstructured.Unstructured) error
	// Delete means that the object is deleted while it is to rest.
	Delete bool
	// AtRest says whether the object does not run any more, and what it waits for otherwise. Nil: it rests at once.
	AtRest func(live *unstructured.Unstructured) (atRest bool, message string)
}

// Rules are the rules of kinds that are not known here, or that are to rest in another way.
type Rules map[schema.GroupKind]Rule

// Suspend changes a desired object so that it does not run. If it returns true, the object has to be deleted.
func (r Rules) Suspend(desired client.Object) (remove bool, err error) {
	return false, nil
}

// Of says how a live object that is to rest is: Suspended, Suspending or PendingSuspension.
func (r Rules) Of(live client.Object) apis.Health {
	return apis.Health{State: apis.StateSuspended}
}

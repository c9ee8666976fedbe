package espalier

import (
	"reflect"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/switchfield"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reflectedReasons are the reasons of errors that a condition reports.
var reflectedReasons = []metav1.StatusReason{
	metav1.StatusReasonAlreadyExists, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid,
}

// checkTuned returns an error if a function of Tune set a field of a literal that is not its own. Finalized is true if
// the resource cannot own the objects, and Tune sets no finalizer.
func (s *Switches[Self, T, CT]) checkTuned(literal any, finalized bool) error {
	fields := reflect.ValueOf(literal).Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if word, ours := switchfield.SetBy[field.Name]; ours && !fields.Field(i).IsZero() {
			return s.errorf("must not set %s by Tune: use %s", field.Name, word)
		}
	}
	for _, taken := range switchfield.TakenBy {
		for _, field := range taken.Fields {
			if s.has(switchName(taken.Switch)) && !fields.FieldByName(field).IsZero() {
				return s.errorf("must not set %s by Tune together with %s", field, taken.Switch)
			}
		}
	}
	if !finalized {
		return nil
	}
	for _, field := range []string{"ListOptions", "OurChild", "ChildObjectManager"} {
		if !fields.FieldByName(field).IsZero() {
			return s.errorf("must not set %s by Tune without Finalizer, since the resource cannot own the objects",
				field)
		}
	}
	return nil
}

// manager returns the manager that writes the objects. Finalized is true if the resource cannot own them.
func (s *Switches[Self, T, CT]) manager(finalized bool) reconcilers.ObjectManager[CT] {
	applying := &reconcilers.ApplyingObjectManager[CT]{
		Name: s.name, Type: s.object, TrackDesired: finalized || s.has(unowned),
		FieldManager: fieldManager[T](), TakeOverFrom: s.earlier, TakeOverOnce: true,
	}
	if finalized {
		applying.Finalizer = s.finalizer()
	}
	var manager reconcilers.ObjectManager[CT] = applying
	if s.scales = isScaled(s.object); s.scales {
		manager = scaler[CT]{manager, fieldManager[T]()}
	}
	if s.has(createOnly) {
		manager = creator[CT]{manager, applying.TrackDesired}
	}
	return manager
}

// listType returns the type of lists of the objects, if it has to be given.
func (s *Switches[Self, T, CT]) listType(given client.ObjectList) client.ObjectList {
	object, ok := any(s.object).(*unstructured.Unstructured)
	if !ok || !gotype.IsNil(given) {
		return given
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(object.GetAPIVersion())
	list.SetKind(object.GetKind() + "List")
	return list
}

// identityOf returns what identifies an object among those of the node.
func (s *Switches[Self, T, CT]) identityOf(object CT) string {
	if namespace := object.GetNamespace(); namespace != "" && s.anywhere.Load() {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

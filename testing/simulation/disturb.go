package simulation

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// Object returns the object that a text in YAML is. The story fails if it is none.
func (w *World) Object(text string) *unstructured.Unstructured {
	w.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		w.Fatalf("not an object: %v\n%s", err, text)
	}
	if obj.GetKind() == "" || obj.GetName() == "" {
		w.Fatalf("an object without a kind or a name:\n%s", text)
	}
	return obj
}

// Disturb has somebody delete an object that the operator has created. Which one of them is decided by a number, taken
// modulo how many there are, in the order of their kinds and names. Nothing happens if there is none.
func (w *World) Disturb(number int) {
	w.Helper()
	chosen := w.chosen(number)
	if chosen == nil {
		return
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(chosen.Version.WithKind(chosen.Kind.Kind))
	obj.SetNamespace(chosen.Namespace)
	obj.SetName(chosen.Name)
	somebody := w.As("somebody")
	somebody.step("delete", obj, func(ctx context.Context) error {
		return client.IgnoreNotFound(somebody.Client.Delete(ctx, obj))
	})
}

// chosen returns the object that Disturb would delete, nil if there is none.
func (w *World) chosen(number int) *state.Object {
	made := w.madeByOperator()
	if len(made) == 0 {
		return nil
	}
	return made[number%len(made)]
}

// disturbedBy names the object that Disturb would delete, and is empty if there is none.
func (w *World) disturbedBy(number int) string {
	if obj := w.chosen(number); obj != nil {
		return obj.String()
	}
	return ""
}

// madeByOperator returns the objects that the operator has created and nobody has deleted.
func (w *World) madeByOperator() []*state.Object {
	made := w.journal.State().Where(func(obj *state.Object, c state.Creation) bool {
		return w.options.isOperator(c.Actor) && !obj.Deleted && !state.Passing(obj.Kind)
	})
	return made.All()
}

package testing

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// object lets a fixture embed an object without having a field of that name.
type object = client.Object

// Fixture is an object that the cases of a table share. It never changes: [Fixture.With] returns a changed copy, so a
// case shows only its differences.
//
//	tenant := rtesting.NewFixture(&v1.Tenant{ObjectMeta: ...})
//	...
//	GivenObjects:  []client.Object{tenant},
//	ExpectUpdates: []client.Object{tenant.With(func(t *v1.Tenant) { t.Spec.Isolated = true })},
//
// The harness takes a fixture in place of any given or expected object. Where the type of the object itself is needed,
// as for the Resource of a sub-reconciler, use [Fixture.Object]. Do not pass a fixture to a client.
type Fixture[Type client.Object] struct {
	// object is a copy that serves the methods of client.Object, so that its setters cannot reach the original.
	object
	original Type
}

var _ client.Object = Fixture[client.Object]{}

// NewFixture returns a fixture of a copy of obj.
func NewFixture[Type client.Object](obj Type) Fixture[Type] {
	return Fixture[Type]{object: objects.Copy(obj), original: objects.Copy(obj)}
}

// With returns a fixture of a copy of the object, changed by the functions.
func (f Fixture[Type]) With(changes ...func(Type)) Fixture[Type] {
	changed := objects.Copy(f.original)
	for _, change := range changes {
		change(changed)
	}
	return NewFixture(changed)
}

// Object returns a copy of the object.
func (f Fixture[Type]) Object() Type {
	return objects.Copy(f.original)
}

// DeepCopyObject returns a copy of the object, not of the fixture. The harness uses it to get the object.
func (f Fixture[Type]) DeepCopyObject() runtime.Object {
	return f.original.DeepCopyObject()
}

// MarshalJSON implements [json.Marshaler] as the object does.
func (f Fixture[Type]) MarshalJSON() ([]byte, error) {
	return json.Marshal(f.original)
}

// String returns the object as text.
func (f Fixture[Type]) String() string {
	return fmt.Sprintf("%v", any(f.original))
}

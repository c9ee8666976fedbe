package testing

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// isFixture tells fixtures from other objects.
func (Fixture[Type]) isFixture() {}

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

// WithController returns a copy of obj, of the object itself if obj is a fixture, that owner controls, as a child node
// marks the objects that it creates. A child node finds a given object only with this mark. It panics if the kind of
// owner is not known.
func WithController(obj, owner client.Object, scheme *runtime.Scheme) client.Object {
	owner = objects.Copy(owner)
	kind, err := objects.KindOf(owner, scheme)
	if err != nil {
		panic(err)
	}
	controlled := objects.Copy(obj)
	isOwner := func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() }
	others := slices.DeleteFunc(controlled.GetOwnerReferences(), isOwner)
	controlled.SetOwnerReferences(append(others, *metav1.NewControllerRef(owner, kind)))
	return controlled
}

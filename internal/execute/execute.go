// Package execute carries out the operations of a plan. It decides nothing, but what becomes of a conflict.
package execute

import (
	"context"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/foreign"
	"github.com/espalier-dev/espalier/internal/manifest"
	"github.com/espalier-dev/espalier/internal/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mark is what tells that an object is ours.
type Mark struct {
	// Prefix is that of the keys.
	Prefix string
	// ID is the value of the label, Owner the clear text of the annotation.
	ID, Owner string
}

// Executor carries out operations. It is used by one request; its methods are safe for concurrent use.
type Executor struct {
	// Client reads past the cache and writes, with the identity of the component.
	Client client.Client
	// Guard deletes types and checks their use.
	Guard *foreign.Guard
	Mark  Mark
	// FieldManager is the one that all is written as.
	FieldManager string
	// Reclaim are the prefixes of the field managers whose fields an Override takes.
	Reclaim []string
	// Parallel is how many operations are carried out at the same time. Default: 16.
	Parallel int
	// Deleting: the component is going. Checks then fence.
	Deleting bool
	// Objects are those desired, by key.
	Objects map[plan.Key]*manifest.Object
	// Records are those of the inventory, by key.
	Records map[plan.Key]apis.InventoryRecord
	// Managed returns the managed fields of ours that were seen of the object last, if they are those of this version of it.
	Managed func(key plan.Key) []metav1.ManagedFieldsEntry
}

// Result is what became of an operation.
type Result struct {
	Operation plan.Operation
	// Object is the object as the API server answered; nil if there is no answer that shows it. After a create that found an
	// object of that name it is that object, along with an error of type [ExistsError].
	Object *unstructured.Unstructured
	// Gone: the object is known not to exist any more.
	Gone bool
	// Unchanged: the API server found that there was nothing to change.
	Unchanged bool
	// Use is the outcome of a check, or of the deletion of a type.
	Use plan.Use
	// Err is why it could not be done.
	Err error
}

// Run carries out a stage, with bounded parallelism, and returns a result for each operation, in their order. One that fails does
// not keep the others from being tried; after ctx is done, the rest fail with its error.
func (e *Executor) Run(ctx context.Context, stage plan.Stage) []Result {
	return nil
}

// ExistsError says that an object that was to be created exists already.
type ExistsError struct{ Key plan.Key }

func (e *ExistsError) Error() string { return e.Key.String() + " exists already" }

package component

import (
	"time"

	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resourceState is what a node remembers of the component of one resource from one request to the next.
type resourceState struct {
	engine     engine.Memory
	namespaces foreign.Memory
	// objects is the inventory in objects of its own; nil until it is needed.
	objects inventory.Store

	// generated is what a deterministic generator returned for generatedFor, as long as the component is not done.
	generated    []client.Object
	generatedFor generatorInput
	// preparedFor is what the objects were generated for that the engine prepared last; zero if that is not known.
	preparedFor generatorInput
	// taskInput is the input of the last task of the engine, zero if there is none or if it is not known.
	taskInput taskInput

	// variation is what is known of a generator that returns other objects for the same input.
	variation variation

	references referenceMemory

	// target is where the component is deployed; release ends its interest there.
	target  *target
	release func()
	// kubeconfig is the last one that worked.
	kubeconfig []byte

	// reason and tries say how many requests in a row found nothing new, for waits that no event ends.
	reason string
	tries  int

	// annotations are those of the resource in the last request that deleted objects.
	annotations map[string]string

	// changes counts changes of the status that may happen again and again, see holds.
	changes plan.Repetition

	// stalledSince is when the resource was found to be deleted, or when a write succeeded since then; zero if neither
	// is known.
	stalledSince time.Time
	// abandoning is how many requests were about to give up the objects.
	abandoning int

	// unkept is how many requests in a row recorded objects and did not find the records kept.
	unkept statusfield.Losses

	// failures are the texts of the errors of auxiliary objects that were logged.
	failures map[plan.Key]string

	// reported is what was reported of objects last, besides the component as a whole.
	reported []reconcilers.ObservedObject

	// recorded are the events of the last minutes.
	recorded map[event]time.Time
}

func newResourceState() *resourceState { return &resourceState{} }

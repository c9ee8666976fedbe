package component

import (
	"fmt"
	"strconv"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/message"
)

// allowsEmpty reports whether the resource lets all objects go if none is desired.
func (r *request[T]) allowsEmpty() bool {
	generation := r.resource.GetGeneration()
	allowed := r.resource.GetAnnotations()[r.Prefix+"/"+generator.AnnotationAllowEmpty]
	return allowed == strconv.FormatInt(generation, 10) && r.status.EmptiedGeneration != generation
}

// endAllowance notes that the annotation has counted, once the component is rolled out with it.
func (r *request[T]) endAllowance() {
	if r.allowsEmpty() {
		r.status.EmptiedGeneration = r.resource.GetGeneration()
	}
}

// maxEmptyNamed is how many objects are named that an empty set leaves as they are.
const maxEmptyNamed = 3

// emptySet says which objects are left as they are because none is desired. It is empty otherwise.
func (r *request[T]) emptySet(p *plan.Plan) string {
	if !p.Empty {
		return ""
	}
	names := namesOf(p.Inventory)
	return fmt.Sprintf("The generator returned no objects, so nothing is deleted of %s: %s. If all are to go, delete "+
		"the resource, or allow it once with the annotation %s/%s: %q, or always with AllowEmpty of the %s",
		message.Objects(len(names)), message.List(names, maxEmptyNamed), r.Prefix, generator.AnnotationAllowEmpty,
		strconv.FormatInt(r.resource.GetGeneration(), 10), r.Name)
}

package replay

import "fmt"

// Sort is what goes wrong at a call.
type Sort string

// The sorts of faults. The first two end the instance: its other calls return context.Canceled and have no effect, and
// a new instance starts, which knows nothing of the old one. With the others the instance goes on.
const (
	// DiesBefore ends the process before a call.
	DiesBefore Sort = "DiesBefore"
	// DiesAfter ends the process after a call, before the answer arrives.
	DiesAfter Sort = "DiesAfter"
	// Fails lets a call fail without an effect, with an internal error of the API server.
	Fails Sort = "Fails"
	// LosesAnswer lets a call fail that had its effect. The error wraps context.DeadlineExceeded.
	LosesAnswer Sort = "LosesAnswer"
	// Conflicts lets somebody else write an annotation of the object just before an update, a patch, an apply or a
	// delete.
	Conflicts Sort = "Conflicts"
	// Stale answers a read from a cache that has not seen the last change of the kind, as long as the request goes on.
	// What a cache has shown once it shows from then on.
	Stale Sort = "Stale"
)

// Fault is one thing that goes wrong in a run.
type Fault struct {
	Sort Sort
	// Call names the call as store.Call does, such as "create ConfigMap ns/one", or is the name of a call with
	// World.Do. A call to another cluster than "" ends with the name of the cluster, as in "list App ns in remote".
	Call string
	// Occurrence is 1 for the first call of this name in the run; 0 is 1.
	Occurrence int
}

// String returns the fault as in Go source of a table row: DiesAfter("create ConfigMap ns/one"), or
// DiesAfter("create ConfigMap ns/one", 2).
func (f Fault) String() string {
	if f.Occurrence > 1 {
		return fmt.Sprintf("%s(%q, %d)", f.Sort, f.Call, f.Occurrence)
	}
	return fmt.Sprintf("%s(%q)", f.Sort, f.Call)
}

// at reports whether the fault is at a call.
func (f Fault) at(c *call) bool {
	return f.Call == c.name && max(f.Occurrence, 1) == c.occurrence
}

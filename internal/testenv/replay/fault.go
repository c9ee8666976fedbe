package replay

// Sort is what goes wrong at a call.
type Sort string

// The sorts of faults. The first two end the instance: its other calls return context.Canceled and have no effect, and
// a new instance starts, which knows nothing of the old one.
const (
	// DiesBefore ends the process before a call.
	DiesBefore Sort = "DiesBefore"
	// DiesAfter ends the process after a call, before the answer arrives.
	DiesAfter Sort = "DiesAfter"
	// Fails lets a call fail without an effect.
	Fails Sort = "Fails"
	// LosesAnswer lets a call fail that had its effect.
	LosesAnswer Sort = "LosesAnswer"
	// Conflicts lets somebody else write the object just before an update, a patch, an apply or a delete.
	Conflicts Sort = "Conflicts"
	// Stale answers a read from a cache that has not seen the last change of the kind, as long as the request goes on.
	Stale Sort = "Stale"
)

// Fault is one thing that goes wrong in a run.
type Fault struct {
	Sort Sort
	// Call names the call, as World.Calls does, such as "create ConfigMap ns/one".
	Call string
	// Occurrence is 1 for the first call of this name in the run; 0 is 1.
	Occurrence int
}

// String returns the fault as in Go source of a table row: DiesAfter("create ConfigMap ns/one"), or
// DiesAfter("create ConfigMap ns/one", 2).
func (f Fault) String() string { panic("TODO") }

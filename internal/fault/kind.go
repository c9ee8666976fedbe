package fault

import "slices"

// Kind is what goes wrong at a call.
type Kind string

// The kinds of faults. Simulations know all but Stale, and rows those of a call to a store.
const (
	// Refuses lets the connection be refused. The call has no effect.
	Refuses Kind = "Refuses"
	// Fails answers 500, an internal error. The call has no effect.
	Fails Kind = "Fails"
	// LosesAnswer breaks the connection after the call had its effect.
	LosesAnswer Kind = "LosesAnswer"
	// Conflicts lets somebody else write the object just before an update, a patch, an apply or a delete. What somebody
	// else wrote must survive.
	Conflicts Kind = "Conflicts"
	// Throttles answers 429. Clients are asked to try again after the delay of the fault, in full seconds and at least
	// one. The call has no effect.
	Throttles Kind = "Throttles"
	// Expires answers 410 to a list or a watch.
	Expires Kind = "Expires"
	// CutsWatch breaks the connection of a watch when it is as old as the delay of the fault.
	CutsWatch Kind = "CutsWatch"
	// DelaysWatch lets each event of a watch arrive late, by the delay of the fault, but for those with which the watch
	// begins: the cache that the watch feeds is stale.
	DelaysWatch Kind = "DelaysWatch"
	// DiesBefore ends the process before the call. The call has no effect, and neither have others of the process. A
	// new process begins, which knows nothing of the old one.
	DiesBefore Kind = "DiesBefore"
	// DiesAfter ends the process after the call had its effect, before the answer arrives.
	DiesAfter Kind = "DiesAfter"
	// Restarts restarts the API server. All connections break, and new ones are refused, that of the call too, until
	// the delay of the fault is over. The call has no effect.
	Restarts Kind = "Restarts"
	// Stale answers a read from a cache that has not seen the last change of the kind of object, as long as the request
	// goes on. What a cache has shown once it shows from then on.
	Stale Kind = "Stale"
	// UserDeletes has the user delete the resource just before a write or a call of something outside of the cluster,
	// or after the delay of the fault.
	UserDeletes Kind = "UserDeletes"
)

// The verbs of calls, as in Kubernetes' authorization. There are three more: an apply is a patch by server-side apply,
// Discover is a request for something that is not a resource, and Outside is a call of something that is not a cluster.
const (
	Get              = "get"
	List             = "list"
	Watch            = "watch"
	Create           = "create"
	Update           = "update"
	Patch            = "patch"
	Apply            = "apply"
	Delete           = "delete"
	DeleteCollection = "deletecollection"
	Discover         = "discover"
	Outside          = "call"
)

// Fits reports whether calls of a verb can go wrong so. To discovery nothing happens after which clients wait and try
// again, for they do so while they hold locks.
func (k Kind) Fits(verb string) bool {
	switch k {
	case LosesAnswer:
		return verb != Discover && verb != Watch
	case UserDeletes:
		return verb == Outside || Writes(verb)
	case Refuses, Restarts:
		return verb != Outside
	case Throttles:
		return verb != Discover && verb != Outside
	case Conflicts:
		return slices.Contains([]string{Update, Patch, Apply, Delete}, verb)
	case Expires:
		return verb == List || verb == Watch
	case CutsWatch, DelaysWatch:
		return verb == Watch
	case Stale:
		return verb == Get || verb == List
	}
	return true
}

// Writes reports whether calls of a verb change something in a cluster.
func Writes(verb string) bool {
	return slices.Contains([]string{Create, Update, Patch, Apply, Delete, DeleteCollection}, verb)
}

// words says in words what goes wrong.
func (k Kind) words() string {
	switch k {
	case Refuses:
		return "the connection is refused"
	case Fails:
		return "an internal error, without effect"
	case LosesAnswer:
		return "the answer is lost"
	case Conflicts:
		return "a conflict: somebody else wrote the object"
	case Throttles:
		return "too many requests, without effect"
	case Expires:
		return "the version is too old"
	case CutsWatch:
		return "the watch is cut"
	case DelaysWatch:
		return "the events are late"
	case DiesBefore:
		return "the actor dies before it"
	case DiesAfter:
		return "the actor dies after it"
	case Restarts:
		return "the API server restarts"
	case Stale:
		return "the answer is stale"
	case UserDeletes:
		return "the user deletes the resource"
	}
	return string(k)
}

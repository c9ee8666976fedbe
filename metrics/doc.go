// Package metrics turns what the nodes of trees do into Prometheus metrics, on the registry of controller-runtime.
//
// [New] returns an observer. Roots whose config has it are measured:
//
//	observer, err := metrics.New(metrics.Options{})
//	if err != nil {
//		return err
//	}
//	config := reconcilers.NewConfig(mgr, &v1.Shop{}, 0).WithObserver(observer)
//
// # Labels
//
// The label controller has the name that it has in the metrics of controller-runtime. The label path names a node: the
// names of the nodes from the root to it, without the indexes of lists, so it stays the same when a node is added to a
// list. A node without a name, such as a list, has no series of its own. Values that come from Kubernetes or from this
// toolkit are written as there: verbs in lower case, and states, statuses, reasons, phases and classes in CamelCase. A
// label that says nothing is absent.
//
// # How many series
//
// A node has 17 series of the first two metrics if it has ended in all ways that there are, and a condition of a root
// has six. No metric has a series for a resource, unless [Options] ask for it. A root has at most 500 paths: the nodes
// that come later share the path "Other". It has at most 50 types of conditions: those that come later have no series.
//
// A number of resources is kept from one request to the next, so a scrape costs nothing for resources. The observer
// keeps a small entry for each resource, until the resource is gone.
//
// A process that does not reconcile, because another one is the leader, has no series. A process that is a shard has
// those of its shard from the set-up of a root on, whether or not it holds its Lease.
package metrics

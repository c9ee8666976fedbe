// Package controllers stands in for what a cluster has beside its API server: the garbage collector, the controllers of
// namespaces and workloads, the scheduler and the nodes, and some more. They reach the API server by a rest.Config, as
// others do, and work inside a bubble of testing/synctest.
//
//   - runner.go watches all kinds and carries out what is decided. It looks at an object when something that concerns
//     it has changed, or at a time that the last look named. While nothing changes and nothing is due there is no
//     request and no timer.
//   - The files named after kinds decide. A decision is a pure function of objects, the behavior of Pods and the time.
//
// What a controller sets and when follows the Kubernetes API reference and the documentation of its concepts; each
// function names its source. Controllers of a cluster are processes of their own, here they take turns: one looks at
// one object at a time, and the order follows from the revisions of what changed.
package controllers

// Package controlplane runs a Kubernetes API server for tests, benchmarks and the demo.
//
// [Start] runs the in-process server: a cluster of package testing/simulation/cluster, with an API server over a
// storage in memory, and with stand-ins for controllers. With REAL=true it runs etcd and kube-apiserver by means of
// controller-runtime's envtest, and, where [Options] ask for it, kube-controller-manager with just the controllers that
// collect garbage, finish deleting namespaces, run Jobs, keep other workloads, or fill aggregated ClusterRoles. With
// kube-scheduler and nodes of kwok it is a simulated cluster: Pods are assigned and become ready, or fail as an
// annotation says.
//
// [Environment.StopAPIServer] kills the API server and [Environment.StartAPIServer] brings it back with the same
// address and the same data. [CountRequests] counts the requests of a client.
//
// The in-process server needs no program. Those of REAL=true come from the folder that KUBEBUILDER_ASSETS names or,
// when it is not set, from bin/controlplane in the checkout, where "make controlplane" puts them; kube-scheduler and
// kwok come from bin/cluster, where "make cluster" puts them.
// Tests use package controlplanetest, which starts one environment per test package. Linux and macOS are supported.
package controlplane

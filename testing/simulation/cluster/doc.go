// Package cluster runs a Kubernetes cluster in the process, in real time: it starts in less than a second, and needs no
// etcd, no containers and no download. It serves TLS on the loopback interface, so that managers, clients and kubectl
// reach it as any cluster.
//
//	env := &cluster.Environment{CRDDirectoryPaths: []string{"config/crd"}}
//	config, err := env.Start()
//	defer env.Stop()
//
// [Environment] has the methods and the fields of the one in package envtest of controller-runtime, so a suite moves by
// its import alone; what is about binaries is ignored. As there, workloads stay as they are written, unless Workloads
// is set. [Run] runs an operator on one, for development.
//
// The API server is the library of kube-apiserver over a storage in memory. It has the built-in kinds that are
// generally available, custom resources, server-side apply, watches, validation, admission by webhooks and policies,
// and authorization by roles. Stand-ins do what a cluster does beside it: garbage is collected and namespaces end. With
// Workloads, Deployments, StatefulSets, DaemonSets, Jobs, CronJobs and autoscalers have their Pods, volumes are bound,
// and Pods are scheduled and become ready on a node.
//
// The libraries report what they do by klog, at each start. A program that wants none of it calls
// klog.SetLogger(logr.Discard()) before. [Run] prints warnings and errors alone.
//
// # What is kept
//
// All objects are gone after [Environment.Stop], unless [Environment].DataFile names a file. A cluster that is started
// with the file of an earlier one has its objects, with their UIDs and resource versions, and goes on with what was to
// be done.
//
//   - Each write that a client has an answer to is kept, also if the process is killed. After a loss of power, the
//     last ones may be missing or the file may be damaged, unless [Environment].Sync is set. A write without an answer
//     may be kept or not.
//   - A write that cannot be kept, because the disk is full, fails with status 500 and has no effect. Later ones
//     succeed when there is room again.
//   - Neither a resource version nor a UID comes again. A watch or a list from a resource version of the earlier
//     cluster ends with 410 Expired, unless it is the last one. Objects that expire, such as Events, do so when they
//     would have.
//   - Credentials are new at each start: no certificate, kubeconfig or token of the earlier cluster is accepted.
//   - Start installs definitions and webhooks over those that are there. Others stay as they are: a webhook that calls
//     a process that has ended fails, as in any cluster.
//
// # What it is not
//
//   - No containers run: a Pod has a status, and neither logs nor a shell nor a network. [Environment].Pods says what
//     becomes of it.
//   - Nothing is decided as a scheduler does: a Pod gets the first node, whatever it asks for.
//   - What etcd does beside keeping objects, as compaction on request and quotas, is missing.
//   - Clients are not held back: there are neither limits of requests in flight nor priorities, and there is no audit.
//   - There are no other API servers behind it, and nothing but the server itself has a metric.
//
// It is for development and tests, and for nothing that others rely on.
package cluster

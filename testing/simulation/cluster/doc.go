// Package cluster runs a Kubernetes cluster in the process, in real time: it starts in less than a second, and needs no
// etcd, no containers and no download. It serves TLS on the loopback interface, so that managers, clients and kubectl
// reach it as any cluster.
//
//	env := &cluster.Environment{CRDDirectoryPaths: []string{"config/crd"}}
//	config, err := env.Start()
//	defer env.Stop()
//
// [Environment] has the methods and the fields of the one in package envtest of controller-runtime, where they mean the
// same. [Run] runs an operator on one, for development.
//
// The API server is the library of kube-apiserver over a storage in memory. It has the built-in kinds that are
// generally available, custom resources, server-side apply, watches, validation, admission by webhooks and policies,
// and authorization by roles. Stand-ins do what a cluster does beside it: garbage is collected, namespaces end,
// Deployments, StatefulSets, DaemonSets, Jobs, CronJobs and autoscalers have their Pods, volumes are bound, and Pods
// are scheduled and become ready on a node.
//
// The libraries report what they do by klog, at each start. A program that wants none of it calls
// klog.SetLogger(logr.Discard()) before. [Run] prints warnings and errors alone.
//
// # What it is not
//
//   - No containers run: a Pod has a status, and neither logs nor a shell nor a network. [Environment].Pods says what
//     becomes of it.
//   - Nothing is decided as a scheduler does: a Pod gets the first node, whatever it asks for.
//   - Nothing is kept: all objects are gone after [Environment.Stop]. What etcd does beside keeping objects, as
//     compaction on request and quotas, is missing.
//   - Clients are not held back: there are neither limits of requests in flight nor priorities, and there is no audit.
//   - There are no other API servers behind it, and nothing but the server itself has a metric.
//
// It is for development and tests, and for nothing that others rely on.
package cluster

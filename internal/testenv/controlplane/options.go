package controlplane

import (
	"io"
	"os"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// existingClusterVariable is read by envtest too; here it counts only where Options allow it.
const existingClusterVariable = "USE_EXISTING_CLUSTER"

// Options say what a control plane must be able to do. The zero value is an API server with its etcd.
type Options struct {
	// CRDs are installed, and served, before Start returns.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// GarbageCollection deletes dependents when their owners are gone, by running kube-controller-manager. The
	// collector needs up to half a minute to notice types that are installed after Start.
	GarbageCollection bool

	// NamespaceDeletion finishes the deletion of namespaces and of their objects, by running kube-controller-manager.
	// It takes about 5 seconds, because the namespace controller waits for so long.
	NamespaceDeletion bool

	// Jobs runs Jobs, and deletes those that have finished when their ttlSecondsAfterFinished is over, by running
	// kube-controller-manager. Nothing runs their Pods. The deletion ends only with GarbageCollection.
	Jobs bool

	// Workloads keeps what belongs to Deployments, ReplicaSets, StatefulSets, DaemonSets and CronJobs, by running
	// kube-controller-manager. Nothing runs their Pods, unless there are Nodes.
	Workloads bool

	// Scheduler assigns Pods to nodes, by running kube-scheduler.
	Scheduler bool

	// Nodes is how many nodes there are before Start returns, named node-1, node-2 and so on. They and their Pods are
	// played by kwok, see [PodAnnotation]. Without Scheduler a Pod has to name its node by spec.nodeName.
	Nodes int

	// RoleAggregation fills aggregated ClusterRoles, by running kube-controller-manager.
	RoleAggregation bool

	// AllowExistingCluster permits to use the cluster of the current kubeconfig instead of starting anything, which
	// then happens when the environment variable USE_EXISTING_CLUSTER is true. It is off by default, so that a
	// forgotten variable does not point a test suite at a cluster that is in use.
	AllowExistingCluster bool

	// Output receives what the processes print, from several goroutines, while they run. What they printed last is part
	// of the error when one fails, whether Output is set or not.
	Output io.Writer
}

// controllers returns the controllers that kube-controller-manager has to run. It is not needed if there are none.
func (o Options) controllers() []string {
	var names []string
	if o.GarbageCollection {
		names = append(names, "garbage-collector-controller")
	}
	if o.NamespaceDeletion {
		names = append(names, "namespace-controller")
	}
	if o.Jobs {
		names = append(names, "job-controller", "ttl-after-finished-controller")
	}
	if o.Workloads {
		names = append(names, "deployment-controller", "replicaset-controller", "statefulset-controller",
			"daemonset-controller", "cronjob-controller")
	}
	if o.RoleAggregation {
		names = append(names, "clusterrole-aggregation-controller")
	}
	return names
}

// UsesExistingCluster reports whether Start connects to a cluster that exists.
func (o Options) UsesExistingCluster() bool {
	use, err := strconv.ParseBool(os.Getenv(existingClusterVariable))
	return o.AllowExistingCluster && err == nil && use
}

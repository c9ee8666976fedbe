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

	// GarbageCollection makes dependents go when their owners are gone, by running kube-controller-manager. The
	// collector learns of types installed after Start with a delay of up to half a minute.
	GarbageCollection bool

	// NamespaceDeletion makes deleted namespaces, and what is in them, go, by running kube-controller-manager. That
	// takes about 5 seconds, a pause the namespace controller makes on purpose.
	NamespaceDeletion bool

	// AllowExistingCluster permits to use the cluster of the current kubeconfig instead of starting anything, which
	// then happens when the environment variable USE_EXISTING_CLUSTER is true. It is off by default, so that a
	// forgotten variable does not point a test suite at a cluster that is in use.
	AllowExistingCluster bool

	// Output receives what the processes print, from several goroutines, while they run. What they printed last is part
	// of the error when one fails, whether Output is set or not.
	Output io.Writer
}

// controllers are the ones kube-controller-manager is to run; none means that it is not needed.
func (o Options) controllers() []string {
	var names []string
	if o.GarbageCollection {
		names = append(names, "garbage-collector-controller")
	}
	if o.NamespaceDeletion {
		names = append(names, "namespace-controller")
	}
	return names
}

func (o Options) useExistingCluster() bool {
	use, err := strconv.ParseBool(os.Getenv(existingClusterVariable))
	return o.AllowExistingCluster && err == nil && use
}

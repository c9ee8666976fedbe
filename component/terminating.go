package component

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/clusters"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespacesThatGo returns a function that reports whether a namespace in the cluster of the objects is being deleted,
// or is gone. It reads each namespace once, without impersonation: as the operator, or as the user of the kubeconfig.
func (r *request[T]) namespacesThatGo() func(ctx context.Context, name string) (bool, error) {
	type answer struct {
		goes bool
		err  error
	}
	known := map[string]answer{}
	return func(ctx context.Context, name string) (bool, error) {
		a, ok := known[name]
		if !ok {
			a.goes, a.err = r.namespaceGoes(ctx, name)
			known[name] = a
		}
		return a.goes, a.err
	}
}

func (r *request[T]) namespaceGoes(ctx context.Context, name string) (bool, error) {
	if len(r.kubeconfig) == 0 {
		return namespaceGoes(ctx, r.liveReader(), name)
	}
	pool := r.targets.poolFor(r.config.Cluster(), r.RequestTimeout, r.generatorScheme)
	reached, err := pool.Get(ctx, clusters.Identity{KubeConfig: r.kubeconfig})
	if err != nil {
		return false, &unusableError{fmt.Errorf("unable to reach %s: %w", r.clusterName(), err)}
	}
	return namespaceGoes(ctx, reached.Client, name)
}

// liveReader reads past the cache as the operator.
func (r *request[T]) liveReader() client.Reader {
	if r.config.APIReader != nil {
		return r.config.APIReader
	}
	return r.config.Client
}

func namespaceGoes(ctx context.Context, reader client.Reader, name string) (bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	switch err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace); {
	case apierrs.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("unable to read the Namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

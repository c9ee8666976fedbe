// Package informer waits for the informers of caches for a limited time, and starts the watches of types that nobody
// watched when a controller was set up.
//
// The cache of a cluster that cannot be read, or that is read without the rights to do so, never syncs. A read from it,
// or a controller that waits for it, would wait until the program ends. Here a wait ends with an error that names the
// missing right.
package informer

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// DefaultTimeout is how long the readers of a type wait until its informer has read all objects. It counts where a
// function of this package gets no other time.
const DefaultTimeout = 30 * time.Second

// wait bounds how long the readers of one informer wait for it: they share one period. After the period they do not
// wait any more, so that an informer that never syncs does not occupy the workers of a controller. The period is
// measured by the wall clock, because it is spent waiting.
type wait struct {
	timeout time.Duration

	mu  sync.Mutex
	end time.Time
}

// context returns a context that ends with the period.
func (w *wait) context(ctx context.Context) (context.Context, context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end.IsZero() {
		w.end = time.Now().Add(cmp.Or(w.timeout, DefaultTimeout))
	}
	return context.WithDeadline(ctx, w.end)
}

// over reports whether the period is over.
func (w *wait) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.end.IsZero() && time.Now().After(w.end)
}

// met ends the period, because the informer has synced. It may have to sync again: for a handler that is added later,
// and after its watch has expired. That begins another period.
func (w *wait) met() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = time.Time{}
}

// rightsTimeout is how long the search for a missing right may take.
const rightsTimeout = 5 * time.Second

// notSynced returns the error for an informer of a cluster that has not synced in time, of a type that is read in
// namespace, or in all. It asks the API server whether the objects may be listed, because a missing right is the usual
// cause.
func notSynced(ctx context.Context, in cluster.Cluster, gvk schema.GroupVersionKind, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	err := mayList(ctx, in, gvk, namespace)
	hint := ""
	if err == nil && namespace != "" {
		if err = mayList(ctx, in, gvk, ""); err != nil {
			hint = ", or limit the cache to the namespaces in which it is"
		}
	}
	if err == nil {
		return fmt.Errorf("the cache of %s does not sync: check that %s is allowed to list and watch them, "+
			"and that the cluster was added to the manager", gvk.Kind, identityOf(in))
	}
	return fmt.Errorf("the cache of %s does not sync: check that %s is allowed to list and watch them%s: %w",
		gvk.Kind, identityOf(in), hint, err)
}

// identityOf says who the clients of a cluster are.
func identityOf(in cluster.Cluster) string {
	if user := in.GetConfig().Impersonate.UserName; user != "" {
		return fmt.Sprintf("user %q", user)
	}
	return "the user of the client"
}

// mayList returns the error of a list of at most one object, in a namespace or in all.
func mayList(ctx context.Context, in cluster.Cluster, gvk schema.GroupVersionKind, namespace string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return in.GetAPIReader().List(ctx, list, client.InNamespace(namespace), client.Limit(1))
}

// isUnsynced reports whether a read from a cache failed because the informer has not synced. Controller-runtime has no
// error type of its own for that.
func isUnsynced(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Informer to sync")
}

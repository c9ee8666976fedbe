package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// beingDeleted begins the message of the API server for an object that exists already and is being deleted. If the
// message ever changes, the namespace counts as existing, and the objects in it have to wait.
const beingDeleted = "object is being deleted:"

// systemNamespaces are those that each API server creates for itself.
var systemNamespaces = []string{
	metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
}

// EnsureNamespaces creates the namespaces that do not exist. They get no marks: they do not belong to the component,
// and stay. It returns an error for each namespace that does not exist in the end. It makes a request for each name but
// those that every cluster has, so the caller should leave out the names of namespaces that are known to exist. The
// request is a create, which is one request for a namespace that exists, too.
func (e *Executor) EnsureNamespaces(ctx context.Context, names []string) map[string]error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(systemNamespaces, name) })
	var mu sync.Mutex
	failed := map[string]error{}
	e.parallelize(ctx, len(names), func(i int) {
		if err := e.ensureNamespace(ctx, names[i]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed[names[i]] = fmt.Errorf("unable to create Namespace %s: %w", names[i], explain(err, names[i]))
		}
	})
	return failed
}

func (e *Executor) ensureNamespace(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	namespace := named(plan.Key{Name: name}, kinds.Namespace.WithVersion("v1"))
	live := partial(namespace)
	err := e.Client.Create(ctx, namespace, e.fieldManager())
	switch {
	case apierrs.IsAlreadyExists(err):
		var status apierrs.APIStatus
		if errors.As(err, &status) && strings.HasPrefix(status.Status().Message, beingDeleted) {
			return &WaitError{Namespace: name, Err: err}
		}
		return nil
	case apierrs.IsForbidden(err):
		// Without the right to create namespaces, this is the answer for one that exists, too.
		if e.Client.Get(ctx, client.ObjectKeyFromObject(live), live) != nil {
			return err
		}
		if live.DeletionTimestamp != nil {
			return &WaitError{Namespace: name, Err: err}
		}
		return nil
	}
	return err
}

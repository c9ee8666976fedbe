package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// beingDeleted is how the API server begins to say that an object exists already if that is being deleted. If it ever says so in other
// words, the namespace counts as being there, and it is the objects in it that have to wait.
const beingDeleted = "object is being deleted:"

// EnsureNamespaces creates those of the namespaces that do not exist, bare: they do not belong to the component, and stay. It returns
// why, for each that is not there. It makes a request for each name, so the caller does well to leave out those that it knows to
// be there.
func (e *Executor) EnsureNamespaces(ctx context.Context, names []string) map[string]error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	failures := make([]error, len(names))
	e.each(len(names), func(i int) {
		err := ctx.Err()
		if err == nil {
			err = e.ensureNamespace(ctx, names[i])
		}
		if err != nil {
			failures[i] = fmt.Errorf("unable to create Namespace %s: %w", names[i], explain(err, names[i]))
		}
	})
	failed := map[string]error{}
	for i, err := range failures {
		if err != nil {
			failed[names[i]] = err
		}
	}
	return failed
}

func (e *Executor) ensureNamespace(ctx context.Context, name string) error {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(name)
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
		// Who may not create namespaces is told so for one that exists, too.
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

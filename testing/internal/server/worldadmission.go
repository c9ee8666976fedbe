package server

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// newWorldAdmission returns the admission plug-ins of worlds. None has an informer: it would see the storage of the
// server, not that of a request. So policies and configurations of webhooks have no effect.
func newWorldAdmission(base *storage.Storage, priorities rest.Lister) admission.Interface {
	return admission.NewChainHandler(
		worldLifecycle{admission.NewHandler(admission.Create, admission.Delete), base},
		newPodDefaults(priorities), newProtection(),
		worldNames{admission.NewHandler(admission.Create), base},
	)
}

// worldLifecycle is the plug-in NamespaceLifecycle of worlds. It decides as that of the library does, which asks an
// informer, sleeps if that has no namespace, and then asks the server.
type worldLifecycle struct {
	*admission.Handler
	base *storage.Storage
}

var _ admission.MutationInterface = worldLifecycle{}

// Admit implements [admission.MutationInterface].
func (l worldLifecycle) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	resource := a.GetResource().GroupResource()
	switch {
	case a.GetKind().GroupKind() == schema.GroupKind{Kind: "Namespace"}:
		if a.GetOperation() == admission.Delete && slices.Contains(immortalNamespaces, a.GetName()) {
			return apierrors.NewForbidden(resource, a.GetName(), fmt.Errorf("this namespace may not be deleted"))
		}
		return nil
	case a.GetOperation() != admission.Create, a.GetNamespace() == "",
		resource == schema.GroupResource{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}:
		return nil
	}
	e := storage.Of(ctx, l.base).Entry("/namespaces/" + a.GetNamespace())
	if e == nil {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), a.GetNamespace())
	}
	switch found := readNamespace(e); {
	case found.err != nil:
		return apierrors.NewInternalError(fmt.Errorf("read namespace %s: %w", a.GetNamespace(), found.err))
	case found.terminates:
		return terminates(a)
	}
	return nil
}

// namespaceState is what is read of the entry of a namespace.
type namespaceState struct {
	terminates bool
	err        error
}

type namespaceOwner struct{}

func readNamespace(e *storage.Entry) namespaceState {
	return e.Derived(namespaceOwner{}, func() any {
		var namespace struct {
			metav1.ObjectMeta `json:"metadata"`
			Status            corev1.NamespaceStatus `json:"status"`
		}
		err := json.Unmarshal(e.Value, &namespace)
		ends := namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating
		return namespaceState{ends, err}
	}).(namespaceState)
}

// terminates refuses to create an object in a namespace that terminates.
func terminates(a admission.Attributes) error {
	err := admission.NewForbidden(a, fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", a.GetNamespace()))
	if refused, ok := err.(*apierrors.StatusError); ok {
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
			Message: fmt.Sprintf("namespace %s is being terminated", a.GetNamespace()),
		})
	}
	return err
}

// worldNames gives names to objects that ask for one, by counting those of the storage. A create that fails later, and
// a dry run, take none. (Only built-in kinds let a server choose how names are generated.)
type worldNames struct {
	*admission.Handler
	base *storage.Storage
}

var _ admission.MutationInterface = worldNames{}

// Admit implements [admission.MutationInterface].
func (n worldNames) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	obj, err := meta.Accessor(a.GetObject())
	if err != nil || a.GetSubresource() != "" || obj.GetName() != "" || obj.GetGenerateName() == "" {
		return nil
	}
	prefix := obj.GetGenerateName()
	prefix = prefix[:min(len(prefix), maxPrefix)]
	resource := a.GetResource()
	kept := storage.Of(ctx, n.base)
	name, number := kept.Name(func(i int) (name, key string) {
		name = fmt.Sprintf("%s%03d", prefix, i)
		group := strings.TrimPrefix(resource.Group, noGroup)
		return name, path.Join("/", group, resource.Resource, a.GetNamespace(), name)
	})
	obj.SetName(name)
	generatedIn(ctx).begin(kept, number)
	return nil
}

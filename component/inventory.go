package component

import (
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Inventory says where the inventory of a component is kept. The zero value keeps it in the status of the component,
// which holds about three thousand objects.
type Inventory struct {
	// Kind is the kind of the objects that keep it: "Secret" or "ConfigMap". They are in the namespace of the resource,
	// are owned by it, and hold more than 10,000 records. Empty for the status. When Kind is set later, the records
	// move from the status to the objects. After that, another Kind is an error.
	Kind string
	// Namespace is the namespace of these objects if the resource has none. Required for resources without a namespace,
	// and ignored for others.
	Namespace string
}

func (i Inventory) validate() error {
	switch i.Kind {
	case "", inventory.KindSecret, inventory.KindConfigMap:
		return nil
	}
	return fmt.Errorf("its Kind must be %s, %s or empty, not %q", inventory.KindSecret, inventory.KindConfigMap, i.Kind)
}

func (i Inventory) uses() []reconcilers.Access {
	verbs := []string{"get", "list", "create", "update", "delete"}
	switch i.Kind {
	case inventory.KindSecret:
		return []reconcilers.Access{{Object: &corev1.Secret{}, Verbs: verbs}}
	case inventory.KindConfigMap:
		return []reconcilers.Access{{Object: &corev1.ConfigMap{}, Verbs: verbs}}
	}
	return nil
}

var errNoInventoryNamespace = errors.New("the resource has no namespace, so Inventory must define one")

// inventoryStore returns where the inventory is. Records move from the status to objects when Kind is set. Moving back
// is refused: the objects recorded there would be forgotten.
func (j *job[T]) inventoryStore() (inventory.Store, error) {
	if known := j.status.InventoryKind; known != "" && known != j.Inventory.Kind {
		err := fmt.Errorf("the inventory is kept in a %s, so the Kind of Inventory must be %s and not %q",
			known, known, j.Inventory.Kind)
		return nil, permanent(err)
	}
	if j.Inventory.Kind == "" {
		return inventory.NewStatus(j.status), nil
	}
	store, err := j.objectStore()
	if err != nil {
		return nil, err
	}
	j.status.InventoryKind = j.Inventory.Kind
	if len(j.status.Inventory) > 0 {
		return inventory.NewMove(store, j.status), nil
	}
	return store, nil
}

// objectStore returns the inventory in objects, which remembers what they hold from request to request.
func (j *job[T]) objectStore() (inventory.Store, error) {
	if j.state.objects != nil {
		return j.state.objects, nil
	}
	namespace := j.resource.GetNamespace()
	if namespace == "" {
		namespace = j.Inventory.Namespace
	}
	if namespace == "" {
		return nil, permanent(errNoInventoryNamespace)
	}
	var reader client.Reader = j.config.Client
	if j.config.APIReader != nil {
		reader = j.config.APIReader
	}
	kind := j.kind
	owner := types.NamespacedName{Namespace: j.resource.GetNamespace(), Name: j.resource.GetName()}
	name := inventory.ObjectName(j.Prefix, kind.Kind, owner, j.resource.GetUID())
	options := inventory.Options{
		Client:     j.config.Client,
		Reader:     reader,
		Kind:       j.Inventory.Kind,
		Namespace:  namespace,
		Name:       name,
		Labels:     map[string]string{j.Prefix + "/inventory": string(j.resource.GetUID())},
		CountLabel: j.Prefix + "/inventory-buckets",
		OwnerUID:   j.resource.GetUID(),
		Finalizer:  j.Finalizer,
		Parallel:   j.Parallel,
		OwnerReference: &metav1.OwnerReference{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.Name, UID: j.resource.GetUID(),
		},
	}
	store, err := inventory.NewObjects(options)
	if err != nil {
		return nil, fmt.Errorf("unable to keep the inventory in objects: %w", err)
	}
	j.state.objects = store
	return store, nil
}

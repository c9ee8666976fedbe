package reconcilers

import (
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/inventory"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ComponentInventory says where the inventory of a component is kept. The zero value keeps it in the status of the component, which
// holds some thousand objects.
type ComponentInventory struct {
	// Kind of the objects that keep it: "Secret" or "ConfigMap". They lie in the namespace of the resource, are owned by it, and
	// hold 10,000 records with ease. Empty for the status. What a status has moves to objects when Kind is set; after that, another
	// Kind is an error.
	Kind string
	// Namespace of these objects if the resource has none. Required for resources without a namespace, and ignored for others.
	Namespace string
}

func (i ComponentInventory) validate() error {
	switch i.Kind {
	case "", inventory.KindSecret, inventory.KindConfigMap:
		return nil
	}
	return fmt.Errorf("its Kind must be %s, %s or empty, not %q", inventory.KindSecret, inventory.KindConfigMap, i.Kind)
}

func (i ComponentInventory) uses() []Access {
	verbs := []string{"get", "list", "create", "update", "delete"}
	switch i.Kind {
	case inventory.KindSecret:
		return []Access{{Object: &corev1.Secret{}, Verbs: verbs}}
	case inventory.KindConfigMap:
		return []Access{{Object: &corev1.ConfigMap{}, Verbs: verbs}}
	}
	return nil
}

var errNoInventoryNamespace = errors.New("the resource has no namespace, so Inventory must define one")

// inventoryStore returns where the inventory is. What a status has moves to objects once these are to keep it; the way back is
// closed, for nobody would know of the objects any more.
func (j *componentJob[T]) inventoryStore() (inventory.Store, error) {
	if known := j.status.InventoryKind; known != "" && known != j.Inventory.Kind {
		return nil, fmt.Errorf("the inventory is kept in a %s, so the Kind of Inventory must be %s and not %q: %w", known, known, j.Inventory.Kind, ErrDurable)
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
func (j *componentJob[T]) objectStore() (inventory.Store, error) {
	if j.memory.objects != nil {
		return j.memory.objects, nil
	}
	namespace := j.resource.GetNamespace()
	if namespace == "" {
		namespace = j.Inventory.Namespace
	}
	if namespace == "" {
		return nil, fmt.Errorf("%w: %w", errNoInventoryNamespace, ErrDurable)
	}
	var reader client.Reader = j.config.Client
	if j.config.APIReader != nil {
		reader = j.config.APIReader
	}
	kind := kindOf(j.config.Client, j.resource)
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
	j.memory.objects = store
	return store, nil
}

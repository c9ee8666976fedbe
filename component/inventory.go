package component

import (
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
func (r *request[T]) inventoryStore() (inventory.Store, error) {
	if known := r.status.InventoryKind; known != "" && known != r.Inventory.Kind {
		err := fmt.Errorf("the inventory is kept in a %s, so the Kind of Inventory must be %s and not %q",
			known, known, r.Inventory.Kind)
		return nil, permanent(err)
	}
	if r.Inventory.Kind == "" {
		return inventory.NewStatus(r.status), nil
	}
	store, err := r.objectStore()
	if err != nil {
		return nil, err
	}
	r.status.InventoryKind = r.Inventory.Kind
	if len(r.status.Inventory) > 0 {
		return inventory.NewMove(store, r.status), nil
	}
	return store, nil
}

// inventoryLabels select the objects of the inventory.
func (r *request[T]) inventoryLabels() map[string]string {
	value := string(r.resource.GetUID())
	if r.owner.Item != "" {
		value += "." + r.owner.OwnerID[:20]
	}
	return map[string]string{r.Prefix + "/inventory": value}
}

// objectStore returns the inventory in objects, which remembers what they hold from request to request.
func (r *request[T]) objectStore() (inventory.Store, error) {
	if r.state.objects != nil {
		return r.state.objects, nil
	}
	namespace := r.resource.GetNamespace()
	if namespace == "" {
		namespace = r.Inventory.Namespace
	}
	if namespace == "" {
		return nil, permanent(errNoInventoryNamespace)
	}
	kind := r.kind
	owner := types.NamespacedName{Namespace: r.resource.GetNamespace(), Name: r.resource.GetName()}
	name := inventory.ObjectName(r.Prefix+r.owner.Item, kind.Kind, owner, r.resource.GetUID())
	options := inventory.Options{
		Client:     r.config.Client,
		Reader:     r.liveReader(),
		Kind:       r.Inventory.Kind,
		Namespace:  namespace,
		Name:       name,
		Labels:     r.inventoryLabels(),
		CountLabel: r.Prefix + "/inventory-buckets",
		OwnerUID:   r.resource.GetUID(),
		Finalizer:  r.Finalizer,
		Parallel:   r.Parallel,
		OwnerReference: &metav1.OwnerReference{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.Name, UID: r.resource.GetUID(),
		},
	}
	store, err := inventory.NewObjects(options)
	if err != nil {
		return nil, fmt.Errorf("unable to keep the inventory in objects: %w", err)
	}
	r.state.objects = store
	return store, nil
}

package reconcilers

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/inventory"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ComponentInventory says where the inventory of a component is kept. The zero value keeps it in the status of the component, which
// holds some thousand objects.
type ComponentInventory struct {
	// Kind of the objects that keep it: "Secret" or "ConfigMap". They lie in the namespace of the resource, are owned by it, and
	// hold 10,000 records with ease. Empty for the status.
	Kind string
	// Namespace of these objects if the resource has none. Required for resources without a namespace, and ignored for others.
	Namespace string
}

func (i ComponentInventory) validate() error {
	switch i.Kind {
	case "", "Secret", "ConfigMap":
		return nil
	}
	return fmt.Errorf("Kind must be Secret, ConfigMap or empty, not %q", i.Kind)
}

func (i ComponentInventory) uses() []Access {
	verbs := []string{"get", "list", "create", "update", "delete"}
	switch i.Kind {
	case "Secret":
		return []Access{{Object: &corev1.Secret{}, Verbs: verbs}}
	case "ConfigMap":
		return []Access{{Object: &corev1.ConfigMap{}, Verbs: verbs}}
	}
	return nil
}


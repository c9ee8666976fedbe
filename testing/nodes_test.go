package testing_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

type cmNodes = rtesting.NodeTests[*corev1.ConfigMap]

// runNodes runs rows whose node is in their metadata.
func runNodes(t *testing.T, rows cmNodes) {
	rows.Run(t, scheme, func(_ *testing.T, tc *cmCase, _ reconcilers.Config) reconcilers.SubReconciler[*corev1.ConfigMap] {
		return tc.Metadata["node"].(reconcilers.SubReconciler[*corev1.ConfigMap])
	})
}

func configMap(name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	for i := 0; i+1 < len(data); i += 2 {
		cm.Data = map[string]string{data[i]: data[i+1]}
	}
	return cm
}

// controlled returns an object with the resource of a row as its controller, as the row writes it.
func controlled(obj *corev1.ConfigMap) *corev1.ConfigMap {
	obj.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: settings.GetName(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	return obj
}

// ensures creates an object that is controlled by the resource unless it is there.
func ensures(ctx context.Context, cm *corev1.ConfigMap, name string) error {
	c := reconcilers.RetrieveConfigOrDie(ctx)
	child := configMap(name)
	err := c.Get(ctx, client.ObjectKeyFromObject(child), child)
	if err == nil || client.IgnoreNotFound(err) != nil {
		return err
	}
	child = configMap(name)
	kind, err := apiutil.GVKForObject(cm, scheme)
	if err != nil {
		return err
	}
	child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cm, kind)}
	if err := c.Create(ctx, child); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if child.UID == "" || child.CreationTimestamp.IsZero() {
		return fmt.Errorf("%s has no identity: %v", name, child.ObjectMeta)
	}
	return nil
}

func TestNodeTests(t *testing.T) {
	t.Parallel()
	both := does(func(ctx context.Context, cm *corev1.ConfigMap) error {
		for _, name := range []string{"one", "two"} {
			if err := ensures(ctx, cm, name); err != nil {
				return err
			}
		}
		return nil
	})
	runNodes(t, cmNodes{
		"children are created": {
			Resource:      settings.Object(),
			Metadata:      both,
			ExpectCreates: []client.Object{controlled(configMap("one")), controlled(configMap("two"))},
		},
		"children are not created again": {
			Resource:      settings.Object(),
			Metadata:      both,
			Until:         rtesting.Rest(),
			ExpectCreates: []client.Object{controlled(configMap("one")), controlled(configMap("two"))},
		},
		"each cluster has namespaces": {
			Resource: settings.Object(), Metadata: countsNamespaces(4),
		},
		"namespaces that each cluster has are left out": {
			Resource: settings.Object(), WithoutNamespaces: true, Metadata: countsNamespaces(1),
		},
		"the resource has an identity": {
			Resource: settings.Object(),
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				if cm.UID == "" || cm.Generation != 0 || cm.ResourceVersion != "999" {
					return fmt.Errorf("got %v", cm.ObjectMeta)
				}
				return nil
			}),
		},
	})
}

// countsNamespaces is the metadata of a row that fails unless there are so many namespaces.
func countsNamespaces(want int) map[string]any {
	return does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		namespaces := &corev1.NamespaceList{}
		if err := reconcilers.RetrieveConfigOrDie(ctx).List(ctx, namespaces); err != nil {
			return err
		}
		if got := len(namespaces.Items); got != want {
			return fmt.Errorf("got %d namespaces, want %d", got, want)
		}
		return nil
	})
}

package clusters_test

import (
	"context"
	"os"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var plane controlplanetest.Shared

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

// kubeConfigOf writes an administrator's config down.
func kubeConfigOf(config *rest.Config) []byte {
	return kubeConfig(
		user{"client-certificate-data": config.CertData, "client-key-data": config.KeyData},
		cluster{"server": config.Host, "certificate-authority-data": config.CAData})
}

// allow lets a service account do anything with ConfigMaps of a namespace.
func allow(t *testing.T, c client.Client, namespace, serviceAccount string) {
	t.Helper()
	for _, object := range []client.Object{
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deploy"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deploy"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deploy"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: serviceAccount}},
		},
	} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func object(kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// An impersonated user may do what the roles allow, and no more, in the cluster of the operator and in others.
func TestAPIServerEnforcesImpersonation(t *testing.T) {
	t.Parallel()
	config := plane.Config(t)
	for name, kubeconfig := range map[string][]byte{"home": nil, "kubeconfig": kubeConfigOf(config)} {
		t.Run(name, func(t *testing.T) {
			pool := &clusters.Pool{Home: config}
			if kubeconfig != nil {
				pool.Home = nil
			}
			namespace, elsewhere := plane.Namespace(t), plane.Namespace(t)
			admin := get(t, t.Context(), pool, clusters.Identity{KubeConfig: kubeconfig})
			allow(t, admin.Client, namespace, "deployer")

			deployer := get(t, t.Context(), pool, clusters.Identity{
				KubeConfig: kubeconfig,
				User:       "system:serviceaccount:" + namespace + ":deployer",
			})
			// The API server has to hear of the roles.
			controlplanetest.Eventually(t, "it is not allowed", func(ctx context.Context) error {
				return deployer.Client.Create(ctx, object("ConfigMap", namespace, "allowed"))
			})
			for _, forbidden := range []*unstructured.Unstructured{
				object("Secret", namespace, "a"), object("ConfigMap", elsewhere, "a"),
			} {
				if err := deployer.Client.Create(t.Context(), forbidden); !apierrors.IsForbidden(err) {
					t.Errorf("%s in %s: want it forbidden, got %v", forbidden.GetKind(), forbidden.GetNamespace(), err)
				}
				if err := admin.Client.Create(t.Context(), forbidden); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestAPIServerKnowsImpersonatedGroups(t *testing.T) {
	t.Parallel()
	pool := &clusters.Pool{Home: plane.Config(t)}
	namespace := plane.Namespace(t)
	anyone := get(t, t.Context(), pool, clusters.Identity{User: "ada"})
	master := get(t, t.Context(), pool, clusters.Identity{User: "ada", Groups: []string{"system:masters"}})
	if err := anyone.Client.Create(t.Context(), object("ConfigMap", namespace, "a")); !apierrors.IsForbidden(err) {
		t.Errorf("want it forbidden, got %v", err)
	}
	if err := master.Client.Create(t.Context(), object("ConfigMap", namespace, "a")); err != nil {
		t.Error(err)
	}
}

// The client learns of types as they are asked for, and others can be made of the same config.
func TestAPIServerClients(t *testing.T) {
	t.Parallel()
	made := get(t, t.Context(), &clusters.Pool{Home: plane.Config(t)}, clusters.Identity{})
	namespace := plane.Namespace(t)

	if err := made.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "typed"}}); err != nil {
		t.Fatal(err)
	}
	mapping, err := made.Client.RESTMapper().RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
	if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Errorf("the mapping is %v and the error %v, want one of a namespaced kind and none", mapping, err)
	}
	if _, err := made.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Thing"}); !meta.IsNoMatchError(err) {
		t.Errorf("want no match, got %v", err)
	}
	resources, err := made.Discovery().ServerResourcesForGroupVersion("v1")
	if err != nil || len(resources.APIResources) == 0 {
		t.Errorf("the resources are %v and the error %v, want some and none", resources, err)
	}

	byMetadata, err := metadata.NewForConfigAndClient(made.Config, made.HTTPClient)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := byMetadata.Resource(mapping.Resource).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		found, err := meta.Accessor(event.Object)
		if err != nil {
			t.Fatal(err)
		}
		if found.GetName() == "typed" {
			break
		}
	}
	utilnet.CloseIdleConnectionsFor(made.HTTPClient.Transport)
}

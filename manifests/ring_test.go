package manifests_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/manifests"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

const shopDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Shop, plural: shops}
  scope: SCOPE
  versions: [{name: v1}]
`

type shop = *unstructured.Unstructured

func shopRoot() reconcilers.Description {
	root := espalier.For[shop](reconcilers.Config{},
		espalier.Owns("App", func(context.Context, shop) (*appsv1.Deployment, error) { return nil, nil }),
		espalier.Owns("Config", func(context.Context, shop) (*corev1.ConfigMap, error) { return nil, nil }),
		// It does not control this one.
		espalier.Owns("Password", func(context.Context, shop) (*corev1.Secret, error) { return nil, nil }).AnyNamespace())
	root.Type = &unstructured.Unstructured{}
	root.Type.SetAPIVersion("example.com/v1")
	root.Type.SetKind("Shop")
	return root.Describe()
}

const wantRing = `# Derived from the tree. DO NOT EDIT.
apiVersion: sharding.timebertt.dev/v1alpha1
kind: ControllerRing
metadata:
  name: shops
spec:
  resources:
  - controlledResources:
    - group: ""
      resource: configmaps
    - group: apps
      resource: deployments
    group: example.com
    resource: shops
`

const wantRoles = `# Derived from the tree. DO NOT EDIT.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: sharding:controllerring:shops
rules:
- apiGroups:
  - ""
  resources:
  - configmaps
  verbs:
  - list
  - patch
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - list
  - patch
- apiGroups:
  - example.com
  resources:
  - shops
  verbs:
  - list
  - patch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: sharding:controllerring:shops
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: sharding:controllerring:shops
subjects:
- kind: ServiceAccount
  name: sharder
  namespace: sharding-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: shops-shard
rules:
- apiGroups:
  - example.com
  resources:
  - shops
  verbs:
  - patch
`

func definitions(scope string) fstest.MapFS {
	return fstest.MapFS{"shop.yaml": {Data: []byte(strings.Replace(shopDefinition, "SCOPE", scope, 1))}}
}

func TestTheRingIsDerivedFromTheTree(t *testing.T) {
	g := manifests.Generator{Scheme: clientgoscheme.Scheme, Definitions: definitions("Namespaced")}
	files, err := g.Ring("shops", shopRoot())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{manifests.RingFile: wantRing, manifests.SharderRoleFile: wantRoles} {
		if got := string(files[name]); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestARingThatCannotBeIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		scope string
		roots []reconcilers.Description
		want  string
	}{
		"no root":        {scope: "Namespaced", want: "there is no root"},
		"cluster-scoped": {scope: "Cluster", roots: []reconcilers.Description{shopRoot()}, want: "shops is cluster-scoped"},
		"a root twice": {
			scope: "Namespaced", roots: []reconcilers.Description{shopRoot(), shopRoot()}, want: "both reconcile Shop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := manifests.Generator{Scheme: clientgoscheme.Scheme, Definitions: definitions(test.scope)}
			if _, err := g.Ring("shops", test.roots...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

package ownership_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/ownership"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Who manages an object counts before who wrote it. All marks are known whatever the prefix of a component.
func TestClaimOf(t *testing.T) {
	written := []metav1.ManagedFieldsEntry{
		{Manager: "kubectl"}, {Manager: "kubelet", Subresource: "status"}, {Manager: "helm"}, {Manager: "kubectl"},
	}
	component := map[string]string{"garden.example.com/owner-id": "Shop/north/corner/uid-1"}
	controller := []metav1.OwnerReference{{Kind: "Team", Name: "a"}, {Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
	helm := map[string]string{
		"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop", "garden.example.com/owner-id": "Shop/north/corner/uid-1",
	}
	instance := map[string]string{"app.kubernetes.io/instance": "shop"}
	argoCD := []metav1.ManagedFieldsEntry{{Manager: "argocd-controller"}}
	for name, test := range map[string]struct {
		object metav1.ObjectMeta
		want   string
	}{
		"nothing":                  {metav1.ObjectMeta{}, ""},
		"managed by":               {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}}, ""},
		"controller":               {metav1.ObjectMeta{OwnerReferences: controller, Annotations: helm, ManagedFields: written}, "is controlled by ReplicaSet web"},
		"Helm":                     {metav1.ObjectMeta{Annotations: helm, ManagedFields: written}, "belongs to the Helm release shop/web"},
		"component":                {metav1.ObjectMeta{Annotations: component, ManagedFields: written}, "belongs to Shop north/corner"},
		"owner that does not rule": {metav1.ObjectMeta{OwnerReferences: controller[:1], ManagedFields: written}, "was written by helm, kubectl"},
		"instance":                 {metav1.ObjectMeta{Labels: instance, ManagedFields: written}, "was written by helm, kubectl"},
		"Argo CD by label":         {metav1.ObjectMeta{Labels: instance, ManagedFields: argoCD}, "belongs to the Argo CD application shop"},
		"inventory": {
			metav1.ObjectMeta{Annotations: map[string]string{"config.k8s.io/owning-inventory": "inv-1"}},
			"belongs to the inventory inv-1",
		},
		"ApplySet": {
			metav1.ObjectMeta{Labels: map[string]string{"applyset.kubernetes.io/part-of": "applyset-1"}},
			"belongs to the ApplySet applyset-1",
		},
		"OLM": {
			metav1.ObjectMeta{Labels: map[string]string{
				"olm.owner": "etcd.v1", "olm.owner.namespace": "shop", "olm.owner.kind": "ClusterServiceVersion",
			}},
			"belongs to the ClusterServiceVersion shop/etcd.v1",
		},
		"Rancher Fleet": {
			metav1.ObjectMeta{Labels: map[string]string{"objectset.rio.cattle.io/hash": "h1"}, Annotations: map[string]string{
				"objectset.rio.cattle.io/id": "fleet-agent", "objectset.rio.cattle.io/owner-namespace": "fleet",
				"objectset.rio.cattle.io/owner-name": "web",
			}},
			"belongs to the Rancher object set fleet/web",
		},
		"Rancher without an owner": {
			metav1.ObjectMeta{Labels: map[string]string{"objectset.rio.cattle.io/hash": "h1"}},
			"belongs to the Rancher object set h1",
		},
		"addon manager": {
			metav1.ObjectMeta{Labels: map[string]string{"addonmanager.kubernetes.io/mode": "Reconcile"}},
			"belongs to the addon manager in mode Reconcile",
		},
		"a status alone": {metav1.ObjectMeta{ManagedFields: written[1:2]}, ""},
		"hostile":        {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a\nb" + strings.Repeat("c", 200)}}}, "was written by a b" + strings.Repeat("c", 94) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownership.ClaimOf(&metav1.PartialObjectMetadata{ObjectMeta: test.object}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

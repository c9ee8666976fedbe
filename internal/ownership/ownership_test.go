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
		"a status alone":           {metav1.ObjectMeta{ManagedFields: written[1:2]}, ""},
		"hostile":                  {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a\nb" + strings.Repeat("c", 200)}}}, "was written by a b" + strings.Repeat("c", 94) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownership.ClaimOf(&metav1.PartialObjectMetadata{ObjectMeta: test.object}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

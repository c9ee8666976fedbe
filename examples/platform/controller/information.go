package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// InformationName is the name of the ConfigMap that says which release of the platform name there is.
func InformationName(name string) string { return name + "-information" }

// Information says which release there is, for the people who use the platform. They need it for as long as there is
// something to use. Without it, the platform works all the same.
func Information() reconcilers.SubReconciler[*v1alpha1.Platform] {
	return espalier.Owns("Information",
		func(_ context.Context, platform *v1alpha1.Platform) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: InformationName(platform.Name)},
				Data:       map[string]string{"release": platform.Spec.Version},
			}, nil
		}).Labeled().Auxiliary() // the search has ConfigMaps, too
}

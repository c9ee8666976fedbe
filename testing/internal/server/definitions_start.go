package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// define creates the definitions that do not exist, and waits until their kinds are served.
func define(
	ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition, config *rest.Config,
) error {
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	api := clients.ApiextensionsV1().CustomResourceDefinitions()
	for _, d := range definitions {
		_, err := api.Create(ctx, d.DeepCopy(), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create CustomResourceDefinition %s: %w", d.Name, err)
		}
	}
	for _, d := range definitions {
		for _, version := range d.Spec.Versions {
			if !version.Served {
				continue
			}
			served := func(ctx context.Context) (bool, error) {
				found, err := clients.Discovery().ServerResourcesForGroupVersion(d.Spec.Group + "/" + version.Name)
				if apierrors.IsNotFound(err) {
					return false, nil
				}
				return err == nil && slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool {
					return r.Name == d.Spec.Names.Plural
				}), err
			}
			if err := wait.PollUntilContextTimeout(ctx, poll, time.Minute, true, served); err != nil {
				return fmt.Errorf("wait for CustomResourceDefinition %s: %w", d.Name, err)
			}
		}
	}
	return nil
}

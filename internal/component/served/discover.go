package served

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Discover asks the API server where it serves a type. ok is false if it does not serve it; the error is that this could not be found
// out. An API that does not answer is not taken for one that does not exist.
func Discover(ctx context.Context, api rest.Interface, gk schema.GroupKind) (at schema.GroupVersionResource, ok bool, err error) {
	path, versions := "/api", []string{"v1"}
	if gk.Group != "" {
		path, versions = "/apis/"+gk.Group, nil
		var group metav1.APIGroup
		err := api.Get().AbsPath(path).Do(ctx).Into(&group)
		if apierrors.IsNotFound(err) {
			return at, false, nil
		}
		if err != nil {
			return at, false, err
		}
		if preferred := group.PreferredVersion.Version; preferred != "" {
			versions = append(versions, preferred)
		}
		for _, version := range group.Versions {
			if version.Version != group.PreferredVersion.Version {
				versions = append(versions, version.Version)
			}
		}
	}
	var errs []error
	for _, version := range versions {
		var list metav1.APIResourceList
		err := api.Get().AbsPath(path, version).Do(ctx).Into(&list)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, resource := range list.APIResources {
			if resource.Kind == gk.Kind && !strings.Contains(resource.Name, "/") {
				return schema.GroupVersionResource{Group: gk.Group, Version: version, Resource: resource.Name}, true, nil
			}
		}
	}
	return at, false, errors.Join(errs...)
}

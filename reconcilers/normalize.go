package reconcilers

import (
	"fmt"

	"github.com/espalier-dev/espalier/internal/jsonmerge"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// normalize gives the content of an unstructured object the types that the API machinery knows. It panics when it is to
// copy other types, and finds them unequal to the same content as the server returns it. Other objects are left alone.
func normalize(obj client.Object) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u == nil {
		return nil
	}
	content, err := jsonmerge.Normalize(u.Object)
	if err != nil {
		return fmt.Errorf("the content of %s cannot be sent: %w", describeObject(obj), err)
	}
	u.Object = content
	return nil
}

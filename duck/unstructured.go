package duck

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// blank returns an unstructured object with the kind of duck, for calls that need no more than the kind.
func blank(duck runtime.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(duck.GetObjectKind().GroupVersionKind())
	return u
}

// unstructuredOf returns the unstructured form of obj. Its kind is the one in obj, or else the one that the scheme has
// for the type.
func unstructuredOf(obj runtime.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := Convert(obj, u); err != nil {
		return nil, err
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		known, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			return nil, err
		}
		gvk = known
	}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// fill converts a response into obj. The kind of obj stays, even if the response has none.
func fill(obj runtime.Object, from runtime.Object) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	defer obj.GetObjectKind().SetGroupVersionKind(gvk)
	return Convert(from, obj)
}

// asUnstructured makes call with the unstructured form of duck. After a success it converts the result back into duck.
func asUnstructured(duck client.Object, call func(client.Object) error) error {
	u, err := unstructuredOf(duck, nil)
	if err != nil {
		return err
	}
	if err := call(u); err != nil {
		return err
	}
	return fill(duck, u)
}

// precompute returns patch with its data computed from obj. The data must be computed from the Go type of the author,
// because an unstructured object has no struct tags, which strategic merge patches need.
func precompute(patch client.Patch, obj client.Object) (client.Patch, error) {
	data, err := patch.Data(obj)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(patch.Type(), data), nil
}

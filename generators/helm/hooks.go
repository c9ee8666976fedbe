package helm

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// release is what objects are translated for.
type release struct {
	// prefix is the name of the reconciler, which is the prefix of its annotations.
	prefix string
	// install is true for the first revision of the component.
	install bool
}

// translate replaces the annotations of Helm that say how an object is treated by those of a component: hooks become
// waves, and helm.sh/resource-policy a delete policy. It returns the objects that remain, in the same order. It is
// pure: no client, no clock. The error names the object and the annotation.
func translate(objects []*unstructured.Unstructured, r release, options *Options) ([]*unstructured.Unstructured, error) {
	panic("contract")
}

// Package component holds what the author of a component and the reconciler that deploys it agree on: how objects are
// generated, what a resource may say about where and how they are deployed, and which annotations an object may carry.
//
// All that a component needs is a [Generator], a function as a rule:
//
//	component.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters component.Unstructurable) ([]client.Object, error) {
//		return []client.Object{
//			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
//		}, nil
//	})
//
// Each object may say by annotations how it is dealt with: in which wave, whether it is adopted, how it is updated, when it
// is ready. [ReadSettings] reads them, and the constants name them:
//
//	annotations:
//	  espalier.dev/apply-order: "-1"
//	  espalier.dev/delete-policy: orphan
//
// The resource says what holds for the component as a whole: where it is deployed to, as whom, how long that may take. For each of
// these there is an interface, all of which are optional, such as [PlacementConfiguration]. A resource implements it itself,
// or its spec does, most easily by embedding the struct that is named after it:
//
//	type GardenSpec struct {
//		component.PlacementSpec `json:",inline"`
//		component.TimeoutSpec   `json:",inline"`
//		Beds int `json:"beds"`
//	}
//
// The methods of these interfaces only read: they reach for nothing outside of the resource, and change nothing. [ConfigurationOf]
// asks for all of them at once.
//
// Nothing in this package talks to a cluster.
package component

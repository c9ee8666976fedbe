// Package generator is the contract between the author of a component and the reconciler that deploys it. It says how
// objects are generated, what a resource configures, and which annotations an object may have.
//
// A component needs only a [Generator], which is usually a function:
//
//	generator.GeneratorFunc(func(
//		ctx context.Context, namespace, name string, parameters generator.Unstructurable,
//	) ([]client.Object, error) {
//		return []client.Object{
//			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
//		}, nil
//	})
//
// The annotations of an object say how it is treated: in which wave it is applied, whether it may be adopted, how it is
// updated, when it is ready. The constants describe them, and [ReadSettings] reads them:
//
//	annotations:
//	  espalier.dev/apply-order: "-1"
//	  espalier.dev/delete-policy: orphan
//
// The resource configures the component as a whole: where it is deployed, as which user, how long that may take. For
// each of these there is an optional interface, such as [PlacementConfiguration]. The resource or its spec implements
// it, most easily by embedding the struct with a similar name:
//
//	type GardenSpec struct {
//		generator.PlacementSpec `json:",inline"`
//		generator.TimeoutSpec   `json:",inline"`
//		Beds int `json:"beds"`
//	}
//
// The methods of these interfaces only read the resource. [ConfigurationOf] calls all of them.
//
// Nothing in this package talks to a cluster.
package generator

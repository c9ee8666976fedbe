// Package espalier is the short way to write a Kubernetes controller as a tree of small nodes, each of which can be
// tested alone. Type parameters are inferred:
//
//	func New(config reconcilers.Config) *reconcilers.ResourceReconciler[*v1.Shop] {
//		return espalier.For(config,
//			espalier.Reads("Settings", settings, settingsKey).Reports(v1.SettingsFound),
//			espalier.Owns("Deployment", desiredDeployment).Reports(v1.DeploymentReady),
//			espalier.OwnsEach("Workers", desiredCronJobs).Reports(v1.WorkersReady),
//			espalier.Runs("Registration", register).Finalizes("shop.example.com/registry", unregister),
//		)
//	}
//
// The functions return nodes of package reconcilers, or nodes that are built of them, with the values that new trees
// should have. All nodes fit together: a tree of this package may contain struct literals of package reconcilers, and
// the other way round. Use a literal where a node needs a field that the short form does not set. A [Child] and
// [Children] are literals inside, so their fields can also be set after the call.
//
// # What the short form decides
//
//   - Children are written by server-side apply, so they need no merge function: what the function desires is applied,
//     and the fields of other writers stay. The field manager is the kind of the resource in lower case followed by
//     -controller.
//   - A node reports one condition, see Reports. The resource needs a field Status with Conditions of type
//     []metav1.Condition, such as an embedded [github.com/espalier-dev/espalier/apis.Status].
//   - The condition Ready sums up the conditions of the nodes. No set of conditions has to be declared or initialised.
//   - A function returns [NotReady] to say that something is missing that no retry provides.
//   - On deletion, nodes only clean up, also below [When].
package espalier

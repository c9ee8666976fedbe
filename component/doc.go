// Package component deploys components: sets of objects that a generator makes for a resource.
//
// [ComponentReconciler] is a node like any other, and [NewComponentRoot] returns a root for resources that are one
// component each. The package is built on what package reconcilers exports, and nothing else of it: a node of your own
// can do what this one does.
//
// # The life of a request
//
//  1. The root calls Reconcile (reconcile.go), which checks the fields of the node (component.go).
//  2. It reads from the resource how to deploy (generator/configurationof.go), and adds the finalizer.
//  3. It finds the cluster and the identity to deploy with (target.go), and the inventory (inventory.go). What it
//     remembers of the resource from request to request is in resource_state.go.
//  4. It computes the component digest and calls the generator (reconcile.go; generator/digest.go).
//  5. manifest.Prepare checks the objects, and the engine brings the cluster into agreement with them
//     (internal/component). The doc of package engine describes the life of one object.
//  6. If the resource is being deleted, the engine deletes all objects instead (remove.go). The finalizer is removed
//     last.
//  7. table.go has state, reason, message and when to come back, for what was found out. status.go changes the status
//     in memory.
//  8. events.go records events if something happened.
//  9. requeue.go returns the delay. event_source.go brings the resource back when an object changes.
//  10. The root writes the status if it differs.
package component

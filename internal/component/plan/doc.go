// Package plan decides what is to be done about the objects of a component, given what is desired of them, what the inventory
// has, and what was seen of them in the cluster. It does nothing: no client, no context, no clock.
//
// [Make] is asked again and again: it names the one stage of operations that may be carried out now. Whoever carries it out folds
// the outcomes into the inventory ([Fold]) and into what was seen, and asks again, until there is nothing left to do, or
// nothing that can be done now.
//
// The laws that each plan keeps, whatever the input:
//
//   - L2: an operation that may bring an object into being is about a key that Plan.Inventory has.
//   - L4: an operation on an object that exists names its UID, and the object is ours, or may be adopted by its policy.
//   - L5: an object that defines types is deleted by [ActionDeleteType] only, which checks once more, and not before Input.Uses
//     says that nobody else uses them, unless all checks of the deletion of the component were passed before. The exception is one
//     whose record says that the instances of others do not matter.
//   - A record leaves the inventory only when its object is gone, orphaned, or somebody else's.
//   - L8: the same input gives the same plan, whatever the order of maps.
//   - L12: it costs in proportion to the number of objects.
package plan

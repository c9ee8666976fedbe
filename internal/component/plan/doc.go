// Package plan decides what to do about the objects of a component: from what is desired, what the inventory has, and
// what was observed in the cluster. It has no client, no context and no clock.
//
// [Make] returns one stage of operations, which may run at the same time. The caller stores Plan.Inventory, runs the
// stage, puts the outcomes into the inventory ([Fold]) and into the input, and calls Make again. It stops when a plan
// has no operations: the component is then done, or has to wait.
//
// Make takes these steps:
//
//	match     make.go    makes one item of each key that is desired or recorded, with what was observed of it
//	assess    apply.go   decides what each desired object needs, as if there were no order
//	          remove.go  decides the same for objects that are to be deleted
//	open      wave.go    holds back what has to wait for an earlier wave; allows pruning and purging
//	sequence  remove.go  holds back deletions that have to wait for other deletions
//	propose   make.go    collects the operations that come first and are not held back
//
// contest.go puts off the correction of objects that another client keeps changing. The facts about kinds are in
// kinds.go. record.go puts the outcomes of operations into the records of the inventory.
//
// Each plan keeps these invariants, for any input:
//
//	L2   An operation that may create an object has a record in Plan.Inventory.
//	     A record leaves the inventory only when its object is gone, orphaned, or owned by another component.
//	L4   An operation on an existing object names its UID. The object is ours, or its policy allows to adopt it.
//	L5   An object that defines types is deleted by [ActionDeleteType] only, which checks once more who uses them.
//	     This is not planned before Input.Uses says that no others use the types, or all checks of the deletion
//	     of the component have passed. A namespace is deleted by [ActionDeleteNamespace] only, which finds out first
//	     whether others have objects in it. Exception: the record says that instances of others are ignored.
//	L8   The same input gives the same plan, for any order of maps.
//	L12  The cost is linear in the number of objects. Only objects that are not in order yet are sorted. A plan for
//	     1,000 unchanged objects makes some 20 allocations.
package plan

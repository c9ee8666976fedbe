// Package dependents has typed objects that a resource needs, with switches for what is done with each, and with data
// that passes from one to another.
//
// [Of] makes a [Dependent] of a function that returns the object as it should be. A [Set] keeps several of them: it
// finds their order, and goes on with those that do not wait for what is blocked or has failed. Each dependent is a
// child as [reconcilers.ChildReconciler] has it. A Set is a node like others: it stands in a sequence next to a
// component, and below a supervisor, see [reconcilers.Supervisor], which it obeys.
//
// # Switches
//
// A dependent without a switch is managed: it is created, corrected by server-side apply, and deleted when the function
// returns nil. Its health counts, and its error is returned.
//
//	switch         | what it changes                               | not together with
//	Gate           | while the gate is off, the object is deleted  | ReadOnly, Absent, OrphanWhen
//	ReadOnly       | the object is read, and never written         | Gate, Absent, OrphanWhen, Unowned,
//	               |                                               | CreateOnly
//	BlockOnAbsence | a missing object blocks; default of ReadOnly  | IgnoreAbsent; needs ReadOnly
//	IgnoreAbsent   | a missing object does not count               | BlockOnAbsence; needs ReadOnly
//	Absent         | the object is deleted if it is ours           | Gate, ReadOnly, OrphanWhen, CreateOnly,
//	               |                                               | Guard, Needs, After, Yield
//	OrphanWhen     | while true, the object is released, and stays | Gate, ReadOnly, Absent, Unowned
//	Unowned        | no owner reference: it outlives the resource  | ReadOnly, OrphanWhen
//	CreateOnly     | it is created and deleted, and never updated  | ReadOnly, Absent
//	Auxiliary      | neither the error nor the health counts       |
//	Unchecked      | the health does not count                     |
//	Guard          | a function says whether it waits              | Absent
//	Needs          | it waits for values                           | Absent
//	After          | it waits until others are done                | Absent
//	Yield          | a value is taken from the object              | Absent
//
// The Set refuses switches that contradict each other when it is validated, with the names of both.
//
// All objects are watched, because they are read from the cache. To wait for an object that somebody else creates, use
// ReadOnly: an object of others is never corrected. An object whose dependent was removed from the program stays. To
// have it deleted, keep the dependent with the switch Absent for one release.
package dependents

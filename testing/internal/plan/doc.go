// Package plan says what goes wrong in a simulation and when. A [Plan] is a value: it prints itself as Go source, and
// [Shrink] makes it smaller. What a plan does to a call is a pure function of the plan and the call, see [Plan.Decide].
// It does not depend on the order in which goroutines run, on other calls, or on other faults of the plan.
//
// A fault is placed in two ways:
//
//   - By count: a [fault.Fault] names the actor, the verb, the path and the how-manieth call of these it strikes.
//   - By seed: a [Chance] strikes calls that are drawn. [FromSeed] draws a whole plan. What such a plan did in a run is
//     a list of faults by count, which do the same again.
package plan

// Package simulation runs whole operators in the test binary, as they are: on a real Kubernetes API server over a
// storage in memory, with a real manager of controller-runtime, and in virtual time, in which an hour passes in
// milliseconds. Faults happen where a plan says. The operator need not be made with Espalier.
//
// # Stories
//
// A story is a function of a [World]: somebody creates, changes and deletes objects, time passes, and the story checks
// what has become of them.
//
//   - [Run] tells a story once.
//   - [RunFaults] tells it once for each fault at each request of the operator.
//   - [RunSeeds] tells it under plans that are drawn from seeds.
//   - [Explore] draws the stories, too, and the resources in them, from the schema of a definition. [Fuzz] does so for
//     the fuzzer of package testing.
//
// A [Plan] has kinds of faults such as [DiesAfter]. A test that fails prints the plan, the story if it was drawn, and
// what happened, all of it as small as it gets.
//
// # What a story must not do
//
// All goroutines of a story and of the operator are in a bubble of [testing/synctest]. None may wait for something
// outside of it, such as the network, another process, or a goroutine that was started before: time stands still then,
// and the test ends with the stack of that goroutine. A mutex must not be held while something waits for time to pass.
//
// Stories are told several times, also at the same time. They make their objects anew, and what the operator deals with
// outside of the cluster is kept in an [External].
//
// # Flags
//
//	-simulation.seeds N       how many seeds there are, 20 by default
//	-simulation.seed N        the first of them
//	-simulation.faults N      how many faults RunFaults tries at most, 200 by default; 0 is all
//	-simulation.budget D      how long RunFaults begins to try faults, in real time, a minute by default; 0 is no end
//	-simulation.update        rewrites golden files
//	-simulation.stillness D   how long nothing may happen, in real time, before a test is ended
package simulation

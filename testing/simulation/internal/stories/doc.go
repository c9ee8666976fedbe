// Package stories helps to tell stories of the operators of the examples. The folders below have the stories.
//
// The laws of the module are checked under their numbers:
//
//   - L1, the steady state is free: World.Idle at the end of each story, and TestLinear.
//   - L2, recorded before created: at each write of the story of platforms (platform/laws_test.go).
//   - L3, finalizers: at each write of shops and platforms, and by what is left in the registry of shops after a
//     deletion.
//   - L4, nothing foreign is touched: at each write of all three, by simulation.NothingForeign.
//   - L5, a type in use is not deleted: at each write of the story of platforms.
//   - L6, nothing is lost: only so far as a story comes to its end under faults.
//   - L7, no panic: the simulation fails a story in which the operator panics.
//   - L8, the same requests in the same order: TestSameRequests, by effective writes.
//   - L11, the same end under faults: TestLife (seeds) and TestL11Faults (a fault at each request).
//   - L12, linear cost: TestLinear, by writes.
//
// Two cannot be checked here: L9, as none of the operators has to do with secret data, and L10, as all time is virtual
// in a simulation, that of the wall, too.
package stories

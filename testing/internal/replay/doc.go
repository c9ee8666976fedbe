// Package replay runs code under test to rest, and again with a fault at each of its calls, and compares the ends.
//
//   - A [Program] is the clusters before the first request, and how to start an instance of the code. A run works in a
//     [World]: forks of the clusters, a clock, the calls made so far, and the faults to come.
//   - A run makes request after request until one has no effect, no error and asks for no other: the run is at rest.
//     Between requests the control plane collects garbage, and caches catch up; what they see then is an effect, too.
//     A delay that a result asks for passes at once, unless there was an effect; then a second passes. Three requests in
//     a row without an effect that ask for the same delay are rest: such code polls. No other request is made, so an
//     error that the code swallows stays without a retry.
//   - A [Step] is what others do once the run is at rest, such as an upgrade; it then runs to rest again. An
//     [Invariant] holds after each call.
//   - [Explore] makes two runs without a fault. If they make the same calls and come to rest, it makes one run for each
//     fault at each call, see [fault.Points], and compares how it ended with how they ended, see [fault.Compare].
//   - [Shrink] makes a finding small, for people.
//
// A fault names its call by what the call does, and by its occurrence among the calls of this name, since the calls of
// parallel branches come in any order.
package replay

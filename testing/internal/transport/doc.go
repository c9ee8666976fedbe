// Package transport connects clients with an API server in process, and lets go wrong between them what a plan says.
//
// A [Network] stands for all that is between the actors of a simulation and the API server. Each actor has a [Client],
// which is the transport of its configuration. A request passes through these steps:
//
//   - call.go tells what the request is, as a plan and a reader see it.
//   - exchange.go takes it to the server and back, with latency and faults; hold.go keeps it while its actor is cut off
//     or stands still.
//   - answer.go is the body of an answer, which breaks when the connection does; lag.go lets events of a watch arrive
//     late, and clock.go moves times for an actor whose clock is wrong.
//   - log.go and text.go keep what happened.
//
// # Virtual time
//
// All of it works in a bubble of testing/synctest if [New] is called in the bubble. No lock is held while something
// waits. A goroutine runs for each watch until its body is closed or its connection broken, and none else.
// What can be asked about a network outside of its methods' bubble is the log: [Network.Log], [Network.Open],
// [Network.Since] and [Network.Happened] may be called by a watchdog that sees the bubble stand still.
//
// # What a wrong clock is
//
// All goroutines of a bubble have the same time, so the clock of one actor cannot be moved. Instead, the rest of the
// world is: times in what the actor reads are moved back by what its clock is ahead, and times in what it writes are
// moved forward. The actor sees and does what it would with a wrong clock. Not moved are times in certificates and in
// other texts than RFC 3339 that are a whole JSON string, what webhooks of the actor get, and what does not pass
// through the API server. A clock cannot run at a wrong speed or jump.
package transport

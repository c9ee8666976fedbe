// Package informers makes informers for the managers of operators, which tell what happens in an order that a seed
// decides.
//
// The informers of client-go keep objects in a map. What a handler is told at first, what it is told after a new list,
// and what a list from the cache returns is therefore in another order each time. The order decides what the workers of
// a controller do first, so that a simulation with the same seed would soon be another one. Here, these orders are
// drawn from the seed: two seeds have different ones, as two runs of an operator have.
//
// In a bubble of testing/synctest, goroutines that wake up in the same moment run in an order that only the scheduler
// knows. So each event reaches a handler in a moment of its own, some microseconds after it is in the cache. An event
// is told in a goroutine of its own, but not before the one before it has been.
package informers

// Package fault says what goes wrong at calls of code under test, where that is worth a try, and how to tell what came
// of it. It knows no server: package replay has it happen in the store of a row, and package simulation on a network.
//
//   - A [Fault] names the calls that it strikes, by what they do and by how many of the same came before.
//   - [Points] returns the faults worth a run each, for the calls of a run in which nothing went wrong.
//   - [Compare] returns how a run ended in another way than another. What is named by chance has the same [Names].
//   - [Fewest] leaves out what a failure does not need.
//   - [Story] tells a run in one line.
package fault

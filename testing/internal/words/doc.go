// Package words has what the harness writes: the failures of a row, with the line of the row and the literals to paste
// there; the rows that the flag -rtesting.update rewrites, and those to paste for a replay that fails. It knows rows by
// the names of their fields, and needs internal/source, which finds them, and internal/literal, which writes values.
// The checks and the replays call it.
package words

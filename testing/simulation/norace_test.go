//go:build !race

package simulation

// raceEnabled says that the race detector is on, with which everything costs more.
const raceEnabled = false

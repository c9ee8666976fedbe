//go:build race

package plugins_test

// memoryOfTests is no bound: the race detector needs much more memory than the program.
const memoryOfTests = -1

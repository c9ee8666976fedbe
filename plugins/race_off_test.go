//go:build !race

package plugins_test

// memoryOfTests is the default bound.
const memoryOfTests = 0

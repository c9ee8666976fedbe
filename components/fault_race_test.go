//go:build race

package components_test

// The race detector makes it several times as slow, and looks for something that one run in a few shows as well.
func init() { faultStep = 4 }

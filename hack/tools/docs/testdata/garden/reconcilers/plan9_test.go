//go:build plan9

package reconcilers_test

func ExamplePlant_elsewhere() {
	// Output:
}

//go:build plan9

package reconcilers_test

func ExampleTask_elsewhere() {
	// Output:
}

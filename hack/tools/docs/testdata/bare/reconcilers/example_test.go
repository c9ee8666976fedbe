package reconcilers_test

func ExampleComplete() {
	// Output:
}

func ExampleUnchecked() {
}

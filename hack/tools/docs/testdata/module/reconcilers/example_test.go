package reconcilers_test

import "fmt"

func ExampleEntry() {
	// This stays.
	fmt.Println("an entry")

	fmt.Println(`a raw
	string`)
	// Output:
	// an entry
	// a raw
	// 	string
}

func ExampleWebhook() {
	for _, way := range []string{"north", "south"} {
		defer fmt.Println(way)
	}
	// Unordered output:
	// north
	// south
}

func ExampleSwitch() {
	// Output:
}

// With a task, see [Task].
func ExampleSteps_one_task() {
	fmt.Println("task")
	// Output: task
}

func ExampleSteps() {
	fmt.Println("```")
	// Output:
	// ```
}

func ExampleSteps_unchecked() {
	fmt.Println("not checked")
}

func ExampleWriter() {
	fmt.Println("write")
	// Output:
	// write
}

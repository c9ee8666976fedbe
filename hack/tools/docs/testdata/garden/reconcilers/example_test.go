package reconcilers_test

import "fmt"

func ExampleGarden() {
	// This stays.
	fmt.Println("a garden")

	fmt.Println(`a raw
	string`)
	// Output:
	// a garden
	// a raw
	// 	string
}

func ExampleGate() {
	for _, way := range []string{"north", "south"} {
		defer fmt.Println(way)
	}
	// Unordered output:
	// north
	// south
}

func ExampleChoice() {
	// Output:
}

// With a plant, see [Plant].
func ExampleRow_one_plant() {
	fmt.Println("plant")
	// Output: plant
}

func ExampleRow() {
	fmt.Println("```")
	// Output:
	// ```
}

func ExampleRow_unchecked() {
	fmt.Println("nobody looks at this")
}

func ExampleGardener() {
	fmt.Println("dig")
	// Output:
	// dig
}

package reconcilers_test

import (
	"fmt"
)

// tool is shown with the example.
const tool = "can"

func ExamplePlant() {
	water()
	// Output:
	// water with a can
}

func water() {
	fmt.Println("water with a", tool)
}

package reconcilers_test

import (
	"fmt"
)

// unit is shown with the example.
const unit = "line"

func ExampleTask() {
	write()
	// Output:
	// wrote a line
}

func write() {
	fmt.Println("wrote a", unit)
}

package component_test

import "fmt"

func ExampleDeployment() {
	fmt.Println("deployed")
	// Output: deployed
}

func ExampleAll() {
	fmt.Println("all")
	// Output: all
}

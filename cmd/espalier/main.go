// Command espalier helps those who write and run operators: it runs a cluster on one's desk, opens the live page of
// an operator in a cluster, finds mistakes in code, and moves code to Espalier. It is also a -vettool of go vet.
package main

import (
	"github.com/espalier-dev/espalier/cmd/espalier/internal/command"
	"github.com/espalier-dev/espalier/cmd/espalier/vet"
)

func main() {
	vet.Main()
	command.Main()
}

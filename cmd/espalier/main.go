// Command espalier helps those who write and run operators: it runs a cluster on one's desk, opens the live page of an
// operator in a cluster, looks after components, and finds mistakes in code.
package main

import "github.com/espalier-dev/espalier/cmd/espalier/internal/command"

func main() { command.Main() }

// Command kubectl-espalier is the command espalier as a plugin of kubectl, which calls it for "kubectl espalier".
package main

import "github.com/espalier-dev/espalier/cmd/espalier/internal/command"

func main() { command.Main() }

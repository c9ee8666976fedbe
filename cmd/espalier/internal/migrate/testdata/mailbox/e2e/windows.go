//go:build windows

package e2e

import "reconciler.io/runtime/stash"

// Name is there on another system.
var Name = stash.New[string]("name")

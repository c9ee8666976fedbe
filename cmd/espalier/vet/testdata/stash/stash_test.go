package stash

import "testing"

func TestStored(t *testing.T) {
	tested.Store(t.Context(), 1)
}

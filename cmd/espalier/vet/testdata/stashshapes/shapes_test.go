package stashshapes

import (
	"context"
	"testing"
)

func TestStored(t *testing.T) {
	tested.Store(context.Background(), "a value")
}

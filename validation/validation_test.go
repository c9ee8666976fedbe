package validation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/validation"
)

func TestIsRecursive(t *testing.T) {
	if validation.IsRecursive(t.Context()) {
		t.Error("want validation not to be recursive unless it is asked for")
	}
	ctx := validation.WithRecursive(t.Context())
	if !validation.IsRecursive(ctx) || !validation.IsRecursive(validation.WithRecursive(ctx)) {
		t.Error("want validation to be recursive once it is asked for")
	}
}

// node is a Validator with others nested in it.
type node struct {
	name   string
	nested []validation.Validator
}

func (n node) Validate(ctx context.Context) error {
	if n.name == "" {
		return errors.New("node must have a name")
	}
	if !validation.IsRecursive(ctx) {
		return nil
	}
	for i, nested := range n.nested {
		if err := nested.Validate(ctx); err != nil {
			return fmt.Errorf("node %q must have valid nested[%d]: %w", n.name, i, err)
		}
	}
	return nil
}

// A node looks at itself, and at what is nested in it only when asked to.
func ExampleWithRecursive() {
	tree := node{name: "root", nested: []validation.Validator{node{name: "leaf"}, node{}}}
	ctx := context.Background()

	fmt.Println(tree.Validate(ctx))
	fmt.Println(tree.Validate(validation.WithRecursive(ctx)))
	// Output:
	// <nil>
	// node "root" must have valid nested[1]: node must have a name
}

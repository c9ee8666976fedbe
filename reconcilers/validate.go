package reconcilers

import (
	"context"
	"errors"
	"reflect"

	"github.com/espalier-dev/espalier/validation"
)

var errNilNode = errors.New("must not be nil")

// isNilNode tells whether node is nil or a nil pointer. A nil list of nodes is an empty list, and may run.
func isNilNode(node any) bool {
	if node == nil {
		return true
	}
	v := reflect.ValueOf(node)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// validateNested validates a node nested in another, if the validation is recursive. A node that cannot be validated is
// valid.
func validateNested(ctx context.Context, node any) error {
	if !validation.IsRecursive(ctx) {
		return nil
	}
	if isNilNode(node) {
		return errNilNode
	}
	if validator, ok := node.(validation.Validator); ok {
		return validator.Validate(ctx)
	}
	return nil
}

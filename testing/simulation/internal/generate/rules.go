package generate

import (
	"context"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// How often a value is drawn and mended that breaks the rules of its node. It may break them in the end: then the whole
// resource is mended.
const (
	ruleDraws = 8
	ruleMends = 12
)

// rulesOf returns the rules of a node, without those of the nodes in it; nil if there are none. They are compiled by
// the first call. To check them where a value is drawn is faster than to check the whole resource.
func rulesOf(s *structuralschema.Structural) func() *cel.Validator {
	if len(s.XValidations) == 0 {
		return nil
	}
	return sync.OnceValue(func() *cel.Validator {
		own := s.DeepCopy()
		depth := 0
		visitor := structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
			if depth++; depth > 1 {
				s.XValidations = nil
			}
			return true
		}}
		visitor.Visit(own)
		return cel.NewValidator(own, false, celconfig.PerCallLimit)
	})
}

// broken returns the rules of the node that a value breaks. The value is valid otherwise.
func (n *node) broken(value any) field.ErrorList {
	if n.rules == nil || value == nil {
		return nil
	}
	// Rules are about values with defaults.
	value = runtime.DeepCopyJSONValue(value)
	defaulting.Default(value, n.schema)
	errs, _ := n.rules().Validate(
		context.Background(), nil, n.schema, value, nil, celconfig.RuntimeCELCostBudget)
	return sorted(errs)
}

// mend changes a value that is valid but for the rules of its node, until it meets them or a number of tries are made.
func (d *drawer) mend(n *node, value any) (mended any, ok bool) {
	broken := n.broken(value)
	for range ruleMends {
		if len(broken) == 0 {
			return value, true
		}
		tried := runtime.DeepCopyJSONValue(value)
		if d.tries--; d.tries < 0 || !d.edit(n, tried, pick(d.r, broken).Field) {
			return value, false
		}
		if !n.allows(tried) {
			continue
		}
		if left := n.broken(tried); len(left) <= len(broken) {
			value, broken = tried, left
		}
	}
	return value, len(broken) == 0
}

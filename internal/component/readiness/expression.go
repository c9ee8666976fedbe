package readiness

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// maxExpression is the length of the longest expression, in bytes.
	maxExpression = 8 << 10
	// maxCost limits what evaluating an expression may cost, in the units of CEL: some ten milliseconds.
	maxCost = 100_000
	// maxPrograms is how many expressions are kept compiled, at least; at most twice as many.
	maxPrograms = 512
)

// forbidden are functions of the library for strings whose result may be larger than what they are given by any factor. What they
// cost is known only afterwards, when the memory is used up.
var forbidden = []string{"format", "join", "replace"}

// readyWhen evaluates an expression.
func readyWhen(expression string, object *unstructured.Unstructured) Result {
	program, err := programs.get(expression)
	if err != nil {
		return failed(err.Error())
	}
	value, _, err := program.Eval(map[string]any{"object": object.Object})
	if err != nil {
		return inProgress("ready-when: " + complaint(err, object))
	}
	ready, ok := value.(types.Bool)
	if !ok {
		return inProgress(fmt.Sprintf("ready-when: is neither true nor false, but of type %s", value.Type().TypeName()))
	}
	if !ready {
		return inProgress("ready-when: is not true yet")
	}
	return current
}

// complaint says why an expression has no value. Only texts that are known pass, since others may contain any value of the
// object; and none in which a value may stand for a key, if the object is a Secret.
func complaint(err error, object *unstructured.Unstructured) string {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) {
		return "takes too long to evaluate"
	}
	kind := object.GroupVersionKind()
	if secret := kind.Group == "" && kind.Kind == "Secret"; !secret {
		for _, known := range []string{"no such key: ", "no such overload", "index out of bounds", "division by zero", "modulus by zero"} {
			if text := err.Error(); strings.HasPrefix(text, known) {
				return text
			}
		}
	}
	return "cannot be evaluated"
}

// programs are shared by all, since the same expressions come again with each request, and compiling one takes as long as evaluating
// it a hundred times.
var programs cache

// cache keeps compiled expressions, and the errors of those that cannot be compiled. It is safe for concurrent use. When recent
// is full it becomes older, and what was older is forgotten.
type cache struct {
	mu            sync.Mutex
	recent, older map[string]compiled
}

type compiled struct {
	program cel.Program
	err     error
}

func (c *cache) get(expression string) (cel.Program, error) {
	found, ok := c.find(expression)
	if !ok {
		// Others need not wait. Two may compile the same, which does no harm.
		found.program, found.err = compile(expression)
		c.put(expression, found)
	}
	return found.program, found.err
}

func (c *cache) find(expression string) (compiled, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.recent[expression]; ok {
		return found, true
	}
	found, ok := c.older[expression]
	if ok {
		c.putLocked(expression, found)
	}
	return found, ok
}

func (c *cache) put(expression string, made compiled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(expression, made)
}

func (c *cache) putLocked(expression string, made compiled) {
	if c.recent == nil || len(c.recent) >= maxPrograms {
		c.recent, c.older = make(map[string]compiled), c.recent
	}
	c.recent[expression] = made
}

// environment is what an expression is written in.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("object", cel.DynType),
		cel.OptionalTypes(),
		ext.Strings(),
		ext.Sets(),
	)
})

// compile makes a program of an expression. The error names the annotation.
func compile(expression string) (cel.Program, error) {
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("ready-when: is longer than %d bytes", maxExpression)
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("ready-when: %w", err)
	}
	checked, issues := env.Compile(expression)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, fmt.Errorf("ready-when: %s (line %d, column %d)",
			clean(first.Message), first.Location.Line(), first.Location.Column()+1)
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("ready-when: must be true or false, not of type %s", out)
	}
	if function := firstForbidden(checked); function != "" {
		return nil, fmt.Errorf("ready-when: the function %s is not available", function)
	}
	program, err := env.Program(checked, cel.CostLimit(maxCost))
	if err != nil {
		return nil, fmt.Errorf("ready-when: %w", err)
	}
	return program, nil
}

// firstForbidden returns the alphabetically first function in the expression that is forbidden, or "".
func firstForbidden(checked *cel.Ast) string {
	called := map[string]bool{}
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind && slices.Contains(forbidden, e.AsCall().FunctionName()) {
			called[e.AsCall().FunctionName()] = true
		}
	}))
	if len(called) == 0 {
		return ""
	}
	return slices.Min(slices.Collect(maps.Keys(called)))
}

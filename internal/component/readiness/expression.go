package readiness

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
)

const (
	// maxExpression is the length of the longest expression, in bytes.
	maxExpression = 8 << 10
	// maxCost is the highest cost of an evaluation, in the units of CEL. It is reached after some ten milliseconds.
	maxCost = 100_000
	// maxPrograms is how many expressions are kept compiled.
	maxPrograms = 1024
)

// forbidden are functions for strings whose result may be many times as large as their arguments. Their cost is known
// only afterwards, when the memory is used up.
var forbidden = []string{"format", "join", "replace"}

// knownErrors are the beginnings of errors that have no value of the object but a key.
var knownErrors = []string{
	"no such key: ", "no such overload", "index out of bounds", "division by zero", "modulus by zero",
}

// readyWhen evaluates an expression.
func readyWhen(expression string, object *unstructured.Unstructured) Result {
	program, err := programOf(expression)
	if err != nil {
		return failed(err.Error())
	}
	value, _, err := program.Eval(map[string]any{"object": object.Object})
	if err != nil {
		return inProgress("ready-when: " + evaluationError(err, object))
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

// evaluationError says why an expression has no value. It shows only known errors, since others may contain any value
// of the object. It shows none for a Secret, since a value may be in the place of a key.
func evaluationError(err error, object *unstructured.Unstructured) string {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) {
		return "takes too long to evaluate"
	}
	if object.GroupVersionKind().GroupKind() != kinds.Secret {
		for _, known := range knownErrors {
			if text := err.Error(); strings.HasPrefix(text, known) {
				return text
			}
		}
	}
	return "cannot be evaluated"
}

// programs keeps compiled expressions, and the errors of expressions that cannot be compiled. All components share it:
// the same expressions come again with each request, and to compile one takes as long as to evaluate it a hundred
// times.
var programs = lru.New(maxPrograms)

type compiled struct {
	program cel.Program
	err     error
}

// programOf returns the program of an expression. Two requests may compile the same expression at the same time,
// which does no harm.
func programOf(expression string) (cel.Program, error) {
	if found, ok := programs.Get(expression); ok {
		return found.(compiled).program, found.(compiled).err
	}
	program, err := compile(expression)
	programs.Add(expression, compiled{program, err})
	return program, err
}

// environment has the variables and functions of expressions.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("object", cel.DynType),
		cel.OptionalTypes(),
		ext.Strings(),
		ext.Sets(),
	)
})

// compile returns the program of an expression. The error names the annotation.
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
			message.Stable(first.Message), first.Location.Line(), first.Location.Column()+1)
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

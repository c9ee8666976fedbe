package generate

import (
	"slices"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// dictionary has the constants of the rules at a node and around it. A rule such as self.startsWith('db-') is hardly
// ever met without them.
type dictionary struct {
	texts   []string
	numbers []float64
	// patterns are those that a rule matches texts with.
	patterns []*words
}

// with adds the constants of rules. A rule that is not understood has none.
func (d dictionary) with(rules apiextensionsv1.ValidationRules) dictionary {
	if len(rules) == 0 {
		return d
	}
	added := dictionary{slices.Clone(d.texts), slices.Clone(d.numbers), slices.Clone(d.patterns)}
	parse, err := parser.NewParser(parser.Macros(parser.AllMacros...), parser.EnableOptionalSyntax(true))
	if err != nil {
		return d
	}
	for _, rule := range rules {
		parsed, errs := parse.Parse(common.NewTextSource(rule.Rule))
		if len(errs.GetErrors()) == 0 {
			ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(added.visit))
		}
	}
	return added
}

func (d *dictionary) visit(expr ast.Expr) {
	switch expr.Kind() {
	case ast.LiteralKind:
		switch value := expr.AsLiteral().Value().(type) {
		case string:
			d.texts = append(d.texts, value)
		case int64:
			d.numbers = append(d.numbers, float64(value))
		case float64:
			d.numbers = append(d.numbers, value)
		}
	case ast.CallKind:
		if call := expr.AsCall(); call.FunctionName() == "matches" && len(call.Args()) > 0 {
			d.addPattern(call.Args()[len(call.Args())-1])
		}
	}
}

func (d *dictionary) addPattern(argument ast.Expr) {
	if argument.Kind() != ast.LiteralKind {
		return
	}
	pattern, ok := argument.AsLiteral().Value().(string)
	if !ok {
		return
	}
	d.texts = slices.DeleteFunc(d.texts, func(text string) bool { return text == pattern })
	if words, err := newWords(pattern, nil, nil); err == nil {
		d.patterns = append(d.patterns, words)
	}
}

package gotemplate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

const (
	defaultLeft, defaultRight = "{{", "}}"
	// maxActions is how many actions a text may have. The parser and the execution use the stack for nested ones.
	maxActions = 50_000
	// smallBranch is how much text a branch may have that is counted with what is around it, in bytes.
	smallBranch = 64
)

// Instrument returns the text of a template as it is to be executed with [Guard.Functions]. It has the same output, and
// its actions are in the same lines as far as possible. The error is that of the parser, with name and line.
//
// Empty delimiters are {{ and }}. Others consist of ASCII characters without a meaning in actions, such as [[ and ]].
func Instrument(name, text, leftDelimiter, rightDelimiter string) (_ string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("template %q cannot be parsed: %v", name, r)
		}
	}()
	if leftDelimiter, rightDelimiter, err = delimiters(leftDelimiter, rightDelimiter); err != nil {
		return "", err
	}
	if strings.Count(text, leftDelimiter) > maxActions {
		return "", fmt.Errorf("%w: size: template %q has more than %d actions", ErrLimit, name, maxActions)
	}
	root := parse.New(name)
	root.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := root.Parse(text, leftDelimiter, rightDelimiter, trees); err != nil {
		return "", err
	}
	p := &printer{left: leftDelimiter, right: rightDelimiter, source: newLines(text), line: 1}
	p.file(root, trees)
	if p.err != nil {
		return "", fmt.Errorf("template %q: %w", name, p.err)
	}
	return p.out.String(), nil
}

// delimiters fills in the defaults, and refuses what could be mistaken for something else in an action.
func delimiters(left, right string) (string, string, error) {
	if left == "" {
		left = defaultLeft
	}
	if right == "" {
		right = defaultRight
	}
	for _, delimiter := range []string{left, right} {
		if strings.Trim(delimiter, "{}[]<>%#@!?&*^~;/\\") != "" || delimiter == "/*" || delimiter == "*/" {
			return "", "", fmt.Errorf("%q cannot be a delimiter: it may consist of these characters: %s",
				delimiter, "{}[]<>%#@!?&*^~;/\\")
		}
	}
	return left, right, nil
}

// file prints all templates of a text. Definitions are printed where they are, so that the lines stay the same; those
// in a block that is nested come after what is around them.
func (p *printer) file(root *parse.Tree, trees map[string]*parse.Tree) {
	definitions := slices.SortedFunc(maps.Values(trees), func(a, b *parse.Tree) int {
		return int(a.Root.Pos) - int(b.Root.Pos)
	})
	definitions = slices.DeleteFunc(definitions, func(t *parse.Tree) bool { return t == root })
	before := func(end parse.Pos) {
		for len(definitions) > 0 && (end < 0 || definitions[0].Root.Pos < end) {
			p.definition(definitions[0])
			definitions = definitions[1:]
		}
	}
	// The parser treats a template without content as none. So a guard must not be its only content.
	empty := parse.IsEmptyTree(root.Root)
	if !empty {
		p.enter(root.Name, root.Root)
	}
	for _, node := range root.Root.Nodes {
		before(node.Position())
		p.node(node)
	}
	if !empty {
		p.leave()
	}
	before(-1)
}

func (p *printer) definition(t *parse.Tree) {
	p.open(t.Root.Pos, "define ", quote(t.Name))
	p.close()
	empty := parse.IsEmptyTree(t.Root)
	if !empty {
		p.enter(t.Name, t.Root)
	}
	p.nodes(t.Root)
	if !empty {
		p.leave()
	}
	p.end()
}

func (p *printer) enter(name string, list *parse.ListNode) {
	p.action(functionEnter, " ", quote(name), " ", fmt.Sprint(costOf(list)))
}

func (p *printer) leave() { p.action(functionLeave) }

// round counts a round of a loop, or a branch that has much text.
func (p *printer) round(list *parse.ListNode, always bool) {
	if cost := costOf(list); always || cost > smallBranch {
		p.action(functionRound, " ", fmt.Sprint(cost))
	}
}

// costOf returns how many bytes a list prints without values. Branches that count themselves are left out.
func costOf(list *parse.ListNode) int {
	if list == nil {
		return 0
	}
	cost := 0
	branch := func(b *parse.BranchNode) {
		for _, list := range []*parse.ListNode{b.List, b.ElseList} {
			if bytes := costOf(list); bytes <= smallBranch {
				cost += bytes
			}
		}
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			cost += len(n.Text)
		case *parse.ActionNode:
			cost += costOfLiteral(n.Pipe)
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		}
	}
	return cost
}

func costOfLiteral(pipe *parse.PipeNode) int {
	if len(pipe.Decl) > 0 || len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return 0
	}
	switch n := pipe.Cmds[0].Args[0].(type) {
	case *parse.StringNode:
		return len(n.Text)
	case *parse.NumberNode:
		return len(n.Text)
	default:
		return 0
	}
}

// guardOf says which function of the guard comes after the command i of a pipeline, if any.
func guardOf(pipe *parse.PipeNode, i int, printed bool) string {
	last := i == len(pipe.Cmds)-1
	command := pipe.Cmds[i]
	if !last && writesText.Has(functionOf(pipe.Cmds[i+1])) {
		return functionCheck
	}
	first := command.Args[0]
	if name := functionOf(command); name != "" {
		switch {
		case isBounded(name), small.Has(name):
			return ""
		case partial.Has(name) && !(last && printed):
			return ""
		}
		return functionCount
	}
	if last && printed {
		if isLiteral(first) {
			return ""
		}
		return functionCount
	}
	if isMethod(first) || (!isLiteral(first) && (i > 0 || len(command.Args) > 1)) {
		return functionCount
	}
	return ""
}

// functionOf returns the name of the function that a command calls, or nothing.
func functionOf(command *parse.CommandNode) string {
	if identifier, ok := command.Args[0].(*parse.IdentifierNode); ok {
		return identifier.Ident
	}
	return ""
}

func isLiteral(node parse.Node) bool {
	switch node.(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode:
		return true
	default:
		return false
	}
}

// isMethod reports whether a node calls a method of Helm's files that makes a large value without an argument.
func isMethod(node parse.Node) bool {
	var fields []string
	switch n := node.(type) {
	case *parse.FieldNode:
		fields = n.Ident
	case *parse.VariableNode:
		fields = n.Ident[1:]
	case *parse.ChainNode:
		fields = n.Field
	}
	return len(fields) > 0 && (fields[len(fields)-1] == "AsConfig" || fields[len(fields)-1] == "AsSecrets")
}

package gotemplate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
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

// Instrument returns the text of a template as it is to be executed with [Guard.Functions]: with calls of the guard. It
// has the same output, and its actions are in the same lines. The error is that of the parser, with name and
// line.
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
	a := &additions{text: text, left: leftDelimiter, right: rightDelimiter}
	for _, tree := range trees {
		// The parser treats a template without content as none. So a call must not be its only content.
		if !parse.IsEmptyTree(tree.Root) {
			a.begin(tree.Root, functionEnter)
			a.list(tree.Root)
		}
	}
	if a.err != nil {
		return "", fmt.Errorf("template %q: %w", name, a.err)
	}
	return a.added(), nil
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

// additions are the calls of the guard to add to a text. Each node of the parser says where one begins, and the text
// from there on where it ends.
type additions struct {
	text, left, right string
	all               []addition
	err               error
}

type addition struct {
	at   int
	text string
}

// add adds words. Those at the same place stay in the order in which they were added.
func (a *additions) add(at int, words ...string) {
	a.all = append(a.all, addition{at, strings.Join(words, " ")})
}

func (a *additions) added() string {
	slices.SortStableFunc(a.all, func(x, y addition) int { return cmp.Compare(x.at, y.at) })
	var out strings.Builder
	done := 0
	for _, addition := range a.all {
		out.WriteString(a.text[done:addition.at])
		out.WriteString(addition.text)
		done = addition.at
	}
	out.WriteString(a.text[done:])
	return out.String()
}

// begin adds an action at the beginning of a list, with the bytes that the list prints besides values.
func (a *additions) begin(list *parse.ListNode, function string) {
	at, left := int(list.Pos), a.left
	// The space before an action that trims it must be trimmed by what is added in between.
	if rest, ok := strings.CutPrefix(a.text[at:], left+"-"); ok && rest != "" && isSpace(rest[0]) {
		left += "-"
	}
	a.add(at, left, function, strconv.Itoa(bytesOf(list)), a.right)
}

func (a *additions) list(list *parse.ListNode) {
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			a.pipe(n.Pipe, len(n.Pipe.Decl) == 0)
		case *parse.IfNode:
			a.branch(&n.BranchNode)
		case *parse.WithNode:
			a.branch(&n.BranchNode)
		case *parse.RangeNode:
			a.branch(&n.BranchNode)
		case *parse.TemplateNode:
			if n.Pipe != nil {
				a.pipe(n.Pipe, false)
			}
		}
	}
}

// branch guards each round of a loop, and branches that have much text.
func (a *additions) branch(b *parse.BranchNode) {
	a.pipe(b.Pipe, false)
	if b.NodeType == parse.NodeRange || bytesOf(b.List) > smallBranch {
		a.begin(b.List, functionRound)
	}
	a.list(b.List)
	if b.ElseList == nil {
		return
	}
	if bytesOf(b.ElseList) > smallBranch {
		a.begin(b.ElseList, functionRound)
	}
	a.list(b.ElseList)
}

// bytesOf returns how many bytes of text a list prints at most. Branches that count themselves are left out, so it is
// small for the list of an else that goes on with if: there is no place for an action in it.
func bytesOf(list *parse.ListNode) int {
	if list == nil {
		return 0
	}
	bytes := 0
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			bytes += len(n.Text)
		case *parse.IfNode:
			bytes += max(textOfSmall(n.List), textOfSmall(n.ElseList))
		case *parse.WithNode:
			bytes += max(textOfSmall(n.List), textOfSmall(n.ElseList))
		}
	}
	return bytes
}

func textOfSmall(list *parse.ListNode) int {
	if bytes := bytesOf(list); bytes <= smallBranch {
		return bytes
	}
	return 0
}

// pipe guards the values that the commands of a pipeline have.
func (a *additions) pipe(pipe *parse.PipeNode, printed bool) {
	for i, command := range pipe.Cmds {
		a.command(command)
		if function := guardOf(pipe, i, printed); function != "" {
			a.add(a.endOfCommand(command), " |", function)
		}
	}
}

// command guards the first argument of the functions that write it as text or execute it.
func (a *additions) command(command *parse.CommandNode) {
	for _, arg := range command.Args {
		a.arg(arg)
	}
	name := functionOf(command)
	check := checkOf(name)
	if len(command.Args) == 1 || name != "tpl" && check == "" {
		return
	}
	start := int(command.Pos) + len(name)
	for isSpace(a.text[start]) {
		start++
	}
	if name == "tpl" {
		// The argument comes last, because errors of the caller name what was last.
		a.add(start, "("+functionText, strconv.Quote(a.left), strconv.Quote(a.right), "")
	} else {
		a.add(start, "("+check, "")
	}
	a.add(start+endOfOperand(a.text[start:], a.right), ")")
}

func (a *additions) arg(arg parse.Node) {
	switch n := arg.(type) {
	case *parse.PipeNode:
		a.pipe(n, false)
	case *parse.ChainNode:
		a.arg(n.Node)
	case *parse.IdentifierNode:
		if strings.HasPrefix(n.Ident, reserved) {
			a.err = fmt.Errorf("function %q is reserved", n.Ident)
		}
	}
}

// endOfCommand returns where the command ends, before the marker of an action that trims.
func (a *additions) endOfCommand(command *parse.CommandNode) int {
	start := int(command.Pos)
	end := start + endOf(a.text[start:], func(rest string) bool {
		return rest[0] == '|' || rest[0] == ')' || strings.HasPrefix(rest, a.right)
	})
	before := a.text[:end]
	if trimmed, ok := strings.CutSuffix(before, "-"); ok && isSpace(trimmed[len(trimmed)-1]) {
		before = trimmed
	}
	return len(strings.TrimRight(before, spaces))
}

// endOfOperand returns where the operand ends that a text begins with.
func endOfOperand(text, right string) int {
	return endOf(text, func(rest string) bool {
		return isSpace(rest[0]) || rest[0] == '|' || rest[0] == ')' || strings.HasPrefix(rest, right)
	})
}

// endOf returns where ends says so, outside of literals and parentheses.
func endOf(text string, ends func(rest string) bool) int {
	for i, depth := 0, 0; i < len(text); i++ {
		if depth == 0 && ends(text[i:]) {
			return i
		}
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case '"', '`', '\'':
			literal, _ := strconv.QuotedPrefix(text[i:])
			i += max(len(literal)-1, 0)
		}
	}
	return len(text)
}

// spaces are the characters that the parser takes for space.
const spaces = " \t\r\n"

func isSpace(c byte) bool { return strings.IndexByte(spaces, c) >= 0 }

// guardOf says which function of the guard comes after the command i of a pipeline, if any.
func guardOf(pipe *parse.PipeNode, i int, printed bool) string {
	last := i == len(pipe.Cmds)-1
	if !last {
		if check := checkOf(functionOf(pipe.Cmds[i+1])); check != "" {
			return check
		}
	}
	command := pipe.Cmds[i]
	name := functionOf(command)
	switch {
	case isBounded(name), small.Has(name):
		return ""
	case last && printed:
		return functionCount
	case name == "" && i == 0 && len(command.Args) == 1, partial.Has(name):
		return ""
	default:
		return functionCount
	}
}

// checkOf returns the call of the guard that takes the argument of a function, if any.
func checkOf(name string) string {
	if language, ok := reads[name]; ok {
		return functionParse + ` "` + language + `"`
	}
	if writesText.Has(name) {
		return functionCheck
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

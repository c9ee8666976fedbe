package gotemplate

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"text/template/parse"
)

// printer writes parsed templates as text, with calls of the guard. It writes what the nodes of the parser would not
// write in a way that can be parsed again, and keeps the lines of the source.
type printer struct {
	left, right string
	source      lines
	out         strings.Builder
	// line is the line that out ends with.
	line int
	err  error
}

// lines are the positions of the ends of lines.
type lines []int

func newLines(text string) lines {
	var ends lines
	for i := range len(text) {
		if text[i] == '\n' {
			ends = append(ends, i)
		}
	}
	return ends
}

func (l lines) at(pos parse.Pos) int { return 1 + sort.SearchInts(l, int(pos)) }

func quote(s string) string { return strconv.Quote(s) }

func (p *printer) write(parts ...string) {
	for _, part := range parts {
		p.line += strings.Count(part, "\n")
		p.out.WriteString(part)
	}
}

// gap writes space until the line of a position.
func (p *printer) gap(pos parse.Pos) {
	if missing := p.source.at(pos) - p.line; missing > 0 {
		p.write(strings.Repeat("\n", missing))
		return
	}
	p.write(" ")
}

// open begins an action.
func (p *printer) open(pos parse.Pos, parts ...string) {
	p.write(p.left)
	p.gap(pos)
	p.write(parts...)
}

func (p *printer) close() { p.write(" ", p.right) }

func (p *printer) action(parts ...string) {
	p.write(p.left, " ")
	p.write(parts...)
	p.close()
}

func (p *printer) end() { p.action("end") }

func (p *printer) nodes(list *parse.ListNode) {
	for _, node := range list.Nodes {
		p.node(node)
	}
}

func (p *printer) node(node parse.Node) {
	switch n := node.(type) {
	case *parse.TextNode:
		p.text(string(n.Text))
	case *parse.ActionNode:
		p.open(n.Pos)
		p.pipe(n.Pipe, len(n.Pipe.Decl) == 0)
		p.close()
	case *parse.IfNode:
		p.branch("if", &n.BranchNode)
	case *parse.WithNode:
		p.branch("with", &n.BranchNode)
	case *parse.RangeNode:
		p.branch("range", &n.BranchNode)
	case *parse.TemplateNode:
		p.open(n.Pos, "template ", quote(n.Name))
		if n.Pipe != nil {
			p.gap(n.Pipe.Pos)
			p.pipe(n.Pipe, false)
		}
		p.close()
	case *parse.BreakNode:
		p.open(n.Pos, "break")
		p.close()
	case *parse.ContinueNode:
		p.open(n.Pos, "continue")
		p.close()
	case *parse.CommentNode:
	default:
		p.fail(node)
	}
}

// text writes text. The end of it could become part of the next delimiter, if that was trimmed away in between. It is
// then written as an action.
func (p *printer) text(text string) {
	for n := 1; n < len(p.left); n++ {
		if strings.HasSuffix(text, p.left[:n]) {
			p.write(text[:len(text)-n])
			p.action(quote(p.left[:n]))
			return
		}
	}
	p.write(text)
}

func (p *printer) branch(keyword string, b *parse.BranchNode) {
	p.open(b.Pos, keyword)
	p.gap(b.Pipe.Pos)
	p.pipe(b.Pipe, false)
	p.close()
	p.round(b.List, keyword == "range")
	p.nodes(b.List)
	if b.ElseList != nil {
		p.action("else")
		p.round(b.ElseList, false)
		p.nodes(b.ElseList)
	}
	p.end()
}

func (p *printer) pipe(pipe *parse.PipeNode, printed bool) {
	for i, variable := range pipe.Decl {
		if i > 0 {
			p.write(", ")
		}
		p.write(variable.Ident[0])
	}
	switch {
	case len(pipe.Decl) == 0:
	case pipe.IsAssign:
		p.write(" = ")
	default:
		p.write(" := ")
	}
	for i, command := range pipe.Cmds {
		if i > 0 {
			p.write(" |")
			p.gap(command.Pos)
		}
		p.command(command)
		if guard := guardOf(pipe, i, printed); guard != "" {
			p.write(" | ", guard)
		}
	}
}

// command writes a command. What a function writes as text is checked before, and what tpl executes is instrumented.
func (p *printer) command(command *parse.CommandNode) {
	name := functionOf(command)
	for i, arg := range command.Args {
		if i > 0 {
			p.gap(arg.Position())
		}
		switch {
		case i == 1 && name == "tpl":
			p.wrapped(arg, functionText, " ", quote(p.left), " ", quote(p.right))
		case i > 0 && writesText.Has(name) && !isLiteral(arg):
			p.wrapped(arg, functionCheck)
		case i > 0 && isMethod(arg):
			p.wrapped(arg, functionCount)
		default:
			p.arg(arg)
		}
	}
}

// wrapped writes a call of the guard. The argument comes last, because errors of the caller name what was last.
func (p *printer) wrapped(arg parse.Node, guard ...string) {
	p.write("(")
	p.write(guard...)
	p.gap(arg.Position())
	p.arg(arg)
	p.write(")")
}

func (p *printer) arg(arg parse.Node) {
	switch n := arg.(type) {
	case *parse.PipeNode:
		p.write("(")
		p.pipe(n, false)
		p.write(")")
	case *parse.ChainNode:
		p.arg(n.Node)
		p.write(".", strings.Join(n.Field, "."))
	case *parse.IdentifierNode:
		if strings.HasPrefix(n.Ident, reserved) {
			p.err = fmt.Errorf("function %q is reserved", n.Ident)
		}
		p.write(n.Ident)
	case *parse.FieldNode, *parse.VariableNode, *parse.DotNode, *parse.NilNode, *parse.BoolNode, *parse.NumberNode,
		*parse.StringNode:
		p.write(n.String())
	default:
		p.fail(arg)
	}
}

func (p *printer) fail(node parse.Node) {
	p.err = fmt.Errorf("it contains %T, which is unknown", node)
}

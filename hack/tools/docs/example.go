package main

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/token"
	"path"
	"path/filepath"
	"strings"
)

// exampleParts are the parts of a page that show an example.
func (v *vocabulary) exampleParts(from *source, example *doc.Example) []string {
	title := "## Example"
	if example.Suffix != "" {
		title += ": " + strings.ReplaceAll(example.Suffix, "_", " ")
	}
	parts := []string{title}
	if example.Doc != "" {
		parts = append(parts, v.markdown(from, example.Doc, "", textWidth))
	}
	file := path.Join(from.folder, filepath.Base(from.files.Position(example.Code.Pos()).Filename))
	parts = append(parts, "From ["+file+"]("+up+file+"):", fenced("go", from.codeOf(example)))
	switch {
	case example.EmptyOutput:
		return append(parts, "It prints nothing.")
	case example.Unordered:
		return append(parts, "It prints, in any order:", fenced("", example.Output))
	default:
		return append(parts, "It prints:", fenced("", example.Output))
	}
}

// up is the way from the folder of the pages to the module.
const up = "../../"

// codeOf returns the source of an example without its output: the body of the function or, where the function shares
// its file with declarations of its own, the file after the imports.
func (s *source) codeOf(example *doc.Example) string {
	switch code := example.Code.(type) {
	case *ast.BlockStmt:
		output := outputOf(code, example.Comments)
		return s.text(code, code.Lbrace+1, output.Pos(), "\t")
	case *ast.File:
		begin := code.Name.End()
		for _, imported := range code.Decls {
			if g, ok := imported.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				begin = g.End()
			}
		}
		output := outputOf(bodyOf(code, "Example"+example.Name), example.Comments)
		return strings.TrimRight(s.text(code, begin, output.Pos(), ""), "\n\t") + "\n" +
			s.text(code, output.End(), code.FileEnd, "")
	default:
		return ""
	}
}

// bodyOf returns the body of a function in a file.
func bodyOf(file *ast.File, name string) *ast.BlockStmt {
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name {
			return f.Body
		}
	}
	return nil
}

// outputOf returns the comment with the output: the last one in the body.
func outputOf(body *ast.BlockStmt, comments []*ast.CommentGroup) *ast.CommentGroup {
	var last *ast.CommentGroup
	for _, comment := range comments {
		if body.Pos() <= comment.Pos() && comment.End() <= body.End() {
			last = comment
		}
	}
	return last
}

// text returns the source from begin to end, each line without indent. Sources are formatted, so it need not be
// formatted again.
func (s *source) text(node ast.Node, begin, end token.Pos, indent string) string {
	file := s.files.File(begin)
	literal := map[int]bool{} // the lines that begin within a string
	ast.Inspect(node, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok {
			for line := file.Line(text.Pos()); line < file.Line(text.End()); line++ {
				literal[line+1] = true
			}
		}
		return true
	})
	var code strings.Builder
	text := s.contents[file.Name()][file.Offset(begin):file.Offset(end)]
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		if !literal[file.Line(begin)+i] {
			line = bytes.TrimPrefix(line, []byte(indent))
		}
		code.Write(line)
	}
	return strings.Trim(code.String(), "\n")
}

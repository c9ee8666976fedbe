package main

import (
	"go/ast"
	"go/doc"
	"go/format"
	"go/token"
	"path"
	"path/filepath"
	"strings"
)

// exampleParts returns the parts of a page that show an example.
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
		// What is formatted without its first indent has none in other lines either.
		text, err := format.Source([]byte(s.text(code.Lbrace+1, output.Pos())))
		if err != nil {
			panic(err) // the source was parsed before
		}
		return string(text)
	case *ast.File:
		begin := code.Name.End()
		for _, imported := range code.Decls {
			if g, ok := imported.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				begin = g.End()
			}
		}
		output := outputOf(bodyOf(code, "Example"+example.Name), example.Comments)
		return s.text(begin, output.Pos()) + "\n" + s.text(output.End(), code.FileEnd)
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

// text returns the source from begin to end, without space around it.
func (s *source) text(begin, end token.Pos) string {
	file := s.files.File(begin)
	return strings.TrimSpace(string(s.contents[file.Name()][file.Offset(begin):file.Offset(end)]))
}

package generator_test

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator"
)

// reference is what the doc comment of the constant for an annotation says.
type reference struct {
	name string
	// words are the values that are spelt out, and examples whole values.
	words, examples []string
	hasDefault      bool
}

// word matches a value of an enumeration.
var word = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// referencesOf reads the annotations that manifests may have: the first group of constants.
func referencesOf(t *testing.T) []reference {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "settings.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST && group.Lparen.IsValid() {
			var references []reference
			for _, spec := range group.Specs {
				references = append(references, referenceOf(t, spec.(*ast.ValueSpec)))
			}
			return references
		}
	}
	t.Fatal("there are no constants, want some")
	return nil
}

func referenceOf(t *testing.T, constant *ast.ValueSpec) reference {
	t.Helper()
	name, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
	if err != nil {
		t.Fatal(err)
	}
	r := reference{name: name}
	var p comment.Parser
	for _, block := range p.Parse(constant.Doc.Text()).Content {
		switch block := block.(type) {
		case *comment.List:
			for _, item := range block.Items {
				text := string((&comment.Printer{}).Text(&comment.Doc{Content: item.Content}))
				if value, _, _ := strings.Cut(strings.TrimSpace(text), ":"); word.MatchString(value) {
					r.words = append(r.words, value)
				}
			}
		case *comment.Code:
			for line := range strings.Lines(block.Text) {
				value, ok := strings.CutPrefix(strings.TrimSpace(line), generator.SharedPrefix+"/"+name+": ")
				if !ok {
					t.Errorf("the example is for another annotation, want it for %s: %s", name, line)
				}
				r.examples = append(r.examples, strings.Trim(value, `"`))
			}
		case *comment.Paragraph:
			text := string((&comment.Printer{}).Text(&comment.Doc{Content: []comment.Block{block}}))
			r.hasDefault = r.hasDefault || strings.HasPrefix(text, "Default: ")
		}
	}
	return r
}

func accepted(t *testing.T, name, value string) bool {
	t.Helper()
	annotations := map[string]string{prefix + "/" + name: value}
	if name == generator.AnnotationIfAbsent {
		annotations[prefix+"/"+generator.AnnotationPresence] = "read-only"
	}
	_, err := generator.ReadSettings(prefix, annotations)
	return err == nil
}

// The page docs/annotations.md is made of these comments.
func TestTheReferenceOfAnnotationsIsComplete(t *testing.T) {
	page, err := os.ReadFile("../docs/annotations.md")
	if err != nil {
		t.Fatal(err)
	}
	references := referencesOf(t)
	var names []string
	all := []string{"nonsense", "true", ""}
	for _, r := range references {
		names = append(names, r.name)
		all = append(all, r.words...)
	}
	if !slices.Equal(names, settingNames) {
		t.Errorf("the constants are %q, want those that are read, %q", names, settingNames)
	}
	for _, r := range references {
		if len(r.examples) == 0 || !r.hasDefault {
			t.Errorf("%s has %d examples, a default: %t, want both", r.name, len(r.examples), r.hasDefault)
		}
		if !strings.Contains(string(page), "\n## "+r.name+"\n") {
			t.Errorf("%s is not on the page, want a section of it", r.name)
		}
		for _, value := range slices.Concat(r.words, r.examples) {
			if !accepted(t, r.name, value) {
				t.Errorf("%s: %q is not accepted, want it to be", r.name, value)
			}
			if !strings.Contains(string(page), value) {
				t.Errorf("%s: %q is not on the page, want it there", r.name, value)
			}
		}
		for _, value := range all {
			if r.name != generator.AnnotationReadyWhen && !slices.Contains(r.words, value) && accepted(t, r.name, value) {
				t.Errorf("%s: %q is accepted and not mentioned, want both or neither", r.name, value)
			}
		}
	}
}

func TestAWordHasThreeSpellings(t *testing.T) {
	for _, r := range referencesOf(t) {
		for _, value := range r.words {
			parts := strings.Split(value, "-")
			for i := range parts {
				parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
			}
			upper := strings.Join(parts, "")
			for _, spelling := range []string{upper, strings.ToLower(upper[:1]) + upper[1:]} {
				if !accepted(t, r.name, spelling) {
					t.Errorf("%s: %q is accepted and %q is not, want both", r.name, value, spelling)
				}
			}
		}
	}
}

package manifest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/manifest"
)

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		why, content string
		want         []string
		wantErr      string
	}{
		{"an empty file has nothing", "", nil, ""},
		{"comments and empty documents are nothing", "# a\n---\n---\n# b\n--- # c\n", nil, ""},
		{"documents are read in order", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n" +
			"apiVersion: v1\nkind: B\nmetadata: {name: b}", []string{"A a", "B b"}, ""},
		{"the end of a line may be that of Windows", "apiVersion: v1\r\nkind: A\r\nmetadata: {name: a}\r\n---\r\n" +
			"apiVersion: v1\r\nkind: B\r\nmetadata: {name: b}\r\n", []string{"A a", "B b"}, ""},
		{"JSON is YAML", `{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}`, []string{"A a"}, ""},
		{"a list is its items", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}",
			[]string{"A a"}, ""},
		{"a marker in a text begins no document",
			"apiVersion: v1\nkind: A\nmetadata: {name: a}\ndata: {x: |\n  ---\n}", nil, "f.yaml:"},
		{"an error has the line of the file", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n\na: b: c\n", nil,
			"f.yaml:6: it is not valid YAML: mapping values are not allowed in this context"},
		{"a key that is there twice is an error", "a: 1\nb: 2\na: 3\n", nil, "f.yaml:3: it is not valid YAML: "},
		{"a text is no object", "\n\nhello\n", nil, "f.yaml:3: it is not an object: a map with"},
		{"a kind is needed", "\napiVersion: v1\n", nil, "f.yaml:2: it is not an object: it has no kind"},
		{"a name is needed", "apiVersion: v1\nkind: A\n", nil, "f.yaml:1: the A has no metadata.name"},
		{"lists are not nested", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}]", nil,
			"f.yaml:1: item 1 is a list in a list"},
		{"aliases are bounded", "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" +
			"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", nil, "is too large"},
		{"depth is bounded", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), nil, "f.yaml:1: "},
		{"JSON objects need a line between them", `{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}` + "\n" +
			`{"apiVersion": "v1", "kind": "B", "metadata": {"name": "b"}}`, nil,
			"f.yaml:2: it is not valid YAML: a line with --- has to be before each document but the first"},
		{"a document does not begin after the end of another", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n...\n" +
			"apiVersion: v1\nkind: B\nmetadata: {name: b}\n", nil,
			"f.yaml:5: it is not valid YAML: a line with --- has to be before each document but the first"},
		{"a document may have an end", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n...\n---\n" +
			"apiVersion: v1\nkind: B\nmetadata: {name: b}\n...\n", []string{"A a", "B b"}, ""},
		{"a text in UTF-16 is refused", "a\x00:\x00", nil, "f.yaml: it is not a text in UTF-8"},
	} {
		objects, err := manifest.Read("f.yaml", strings.NewReader(tc.content))
		var got []string
		for _, object := range objects {
			got = append(got, object.GetKind()+" "+object.GetName())
		}
		if tc.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: the error is %v, want one line with %q", tc.why, err, tc.wantErr)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: the objects differ (-want +got), error %v:\n%s", tc.why, err, diff)
		}
	}
}

// FuzzRead states what holds for each text: nothing panics, an error names the file with a line that it has and is one
// line, and each object has a kind and a name.
func FuzzRead(f *testing.F) {
	f.Add("apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\na: b: c")
	f.Add("--- \n...\n---\n- &a [*a]")
	f.Add("apiVersion: v1\nkind: List\nitems:\n- {}")
	f.Add("%YAML 1.1\n---\n? [a]\n: !!binary b")
	f.Add("a: !!float x\n<<: b\n\"\\x\": '")
	f.Fuzz(func(t *testing.T, content string) {
		objects, err := manifest.Read("f.yaml", strings.NewReader(content))
		if err != nil {
			var file *manifest.FileError
			if !errors.As(err, &file) || file.Line < 0 || file.Line > strings.Count(content, "\n")+1 {
				t.Errorf("the error is %#v, want one with a line of the file", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error %q has several lines", err)
			}
		}
		for _, object := range objects {
			if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
				t.Errorf("there is an object without a kind or a name: %v", object.Object)
			}
		}
	})
}

// Package manifest reads objects from files of people, within bounds, with errors that name the file and the line.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/document"
)

const (
	// maxBytes is how large a file may be. The bounds of a document in it are those of package document.
	maxBytes = 64 << 20
	// MaxObjects is how many objects a file may have, and the sources of a component together.
	MaxObjects = 20_000
)

// FileError is what is wrong with a file, at a line, or at none if that is 0.
type FileError struct {
	File string
	Line int
	Err  error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Read reads the objects in the documents of a file in YAML or JSON. The items of a List count as objects. An error is
// a [FileError] with the first line that is wrong, and has no values.
func Read(file string, r io.Reader) ([]*unstructured.Unstructured, error) {
	content, err := readAll(file, r)
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(content, 0) >= 0 {
		return nil, &FileError{file, 0, errors.New("it is not a text in UTF-8")}
	}
	var objects []*unstructured.Unstructured
	line := 1
	for rest := content; len(rest) > 0; {
		text := firstDocument(rest)
		found, err := parse(text)
		if err != nil {
			wrong := SyntaxError(file, text, err)
			wrong.Line += line - 1
			return nil, wrong
		}
		if objects = append(objects, found...); len(objects) > MaxObjects {
			return nil, &FileError{file, line, ErrTooMany}
		}
		line += bytes.Count(text, []byte("\n"))
		rest = rest[len(text):]
	}
	return objects, nil
}

func readAll(file string, r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, &FileError{file, 0, err}
	}
	if len(content) > maxBytes {
		return nil, &FileError{file, 0, fmt.Errorf("it has more than %d MiB", maxBytes>>20)}
	}
	return content, nil
}

// ReadFile returns the content of a file, which may be as large as one with objects.
func ReadFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return readAll(file, f)
}

// ErrTooMany says that there are more than [MaxObjects].
var ErrTooMany = fmt.Errorf("there are more than %d objects", MaxObjects)

// firstDocument returns the text up to the second line that begins a document. The first may be one.
func firstDocument(text []byte) []byte {
	for at := 0; ; {
		next := bytes.IndexByte(text[at:], '\n')
		if next < 0 {
			return text
		}
		at += next + 1
		if after, found := bytes.CutPrefix(text[at:], []byte("---")); found &&
			(len(after) == 0 || bytes.IndexByte([]byte(" \t\r\n"), after[0]) >= 0) {
			return text[:at]
		}
	}
}

// parse returns the objects of one document, none if it is empty.
func parse(text []byte) ([]*unstructured.Unstructured, error) {
	if _, err := document.ToJSON(text); err != nil {
		return nil, err
	}
	if err := isAlone(text); err != nil {
		return nil, err
	}
	// A key that is there twice is an error.
	encoded, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	var value any
	if err := utiljson.Unmarshal(encoded, &value); err != nil {
		return nil, errors.New("it is not valid YAML")
	}
	if value == nil {
		return nil, nil
	}
	return objectsOf(value)
}

// isAlone returns an error if a text has another document, which the parser would leave out: one that follows a line
// with "..." or, in JSON, the end of the one before.
func isAlone(text []byte) error {
	decoder := yaml3.NewDecoder(bytes.NewReader(text))
	first, second := &yaml3.Node{}, &yaml3.Node{}
	if err := decoder.Decode(first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	err := decoder.Decode(second)
	if errors.Is(err, io.EOF) {
		return nil
	}
	line := second.Line
	if err != nil {
		line = lineOf(err, text) + 1 // the parser counts from 0 here
	}
	return fmt.Errorf("yaml: line %d: a line with --- has to be before each document but the first", line)
}

// objectsOf returns an object, or those in a List.
func objectsOf(value any) ([]*unstructured.Unstructured, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object: a map with apiVersion and kind is expected")
	}
	object := &unstructured.Unstructured{Object: fields}
	for _, field := range []string{"apiVersion", "kind"} {
		if text, ok := fields[field].(string); !ok || text == "" {
			return nil, fmt.Errorf("it is not an object: it has no %s", field)
		}
	}
	items, isList := fields["items"].([]any)
	if !isList || !strings.HasSuffix(object.GetKind(), "List") {
		if object.GetName() == "" {
			return nil, fmt.Errorf("the %s has no metadata.name", object.GetKind())
		}
		return []*unstructured.Unstructured{object}, nil
	}
	var objects []*unstructured.Unstructured
	for i := range items {
		if fields, ok := items[i].(map[string]any); ok && strings.HasSuffix(fmt.Sprint(fields["kind"]), "List") {
			return nil, fmt.Errorf("item %d is a list in a list", i+1)
		}
		found, err := objectsOf(items[i])
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

var yamlLine = regexp.MustCompile(
	`^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\n\s*)?(?:line (\d+): )?`)

// SyntaxError returns what a parser of YAML found wrong in a text as an error about the file that has it.
func SyntaxError(file string, text []byte, err error) *FileError {
	return &FileError{file, lineOf(err, text), withoutLine(err)}
}

// lineOf returns the line of a document that an error of the parser names, else the first line with content.
func lineOf(err error, text []byte) int {
	if found := yamlLine.FindStringSubmatch(err.Error()); len(found) > 1 && found[1] != "" {
		line, _ := strconv.Atoi(found[1])
		return min(max(line, 1), bytes.Count(text, []byte("\n"))+1)
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) > 0 && trimmed[0] != '#' && !bytes.HasPrefix(trimmed, []byte("---")) {
			return i + 1
		}
	}
	return 1
}

// withoutLine returns an error of the parser in one line, and without the number of a line of the document.
func withoutLine(err error) error {
	text := yamlLine.ReplaceAllString(err.Error(), "")
	if text == err.Error() {
		return err
	}
	first, _, _ := strings.Cut(text, "\n")
	return errors.New("it is not valid YAML: " + first)
}

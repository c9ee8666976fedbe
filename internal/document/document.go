// Package document bounds texts in YAML, JSON and TOML that others have written, before they are parsed. A parser needs
// much more memory than the text has bytes: for each value, and for what an alias stands for.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	// MaxBytes is how many bytes a document may have, with its aliases replaced. No object in a cluster has as many.
	MaxBytes = 8 << 20
	// MaxValues is how many values a document may have, with its aliases replaced, roughly.
	MaxValues = 1 << 18
	// MaxDepth is how deep the values of a document may be nested.
	MaxDepth = 1000
)

// ErrTooLarge is wrapped by the errors of documents that must not be parsed.
var ErrTooLarge = errors.New("is too large")

var (
	errBytes  = fmt.Errorf("%w: a document has more than %d bytes", ErrTooLarge, MaxBytes)
	errValues = fmt.Errorf("%w: a document has more than %d values", ErrTooLarge, MaxValues)
	errDepth  = fmt.Errorf("%w: a document is nested more than %d deep", ErrTooLarge, MaxDepth)
	errExpand = fmt.Errorf(
		"%w: aliases give a document more than %d values or %d bytes", ErrTooLarge, MaxValues, MaxBytes)
	errCycle = fmt.Errorf("%w: an alias contains itself", ErrTooLarge)
)

// Check returns an error if a document of a text in YAML must not be parsed. It parses the text only if there may be
// aliases, and then also returns the error of a text that is not YAML.
func Check(text []byte) error {
	_, err := Bytes(text)
	return err
}

// Bytes does as [Check], and returns how many bytes the text has with its aliases replaced, roughly.
func Bytes(text []byte) (int, error) {
	if err := CheckJSON(text); err != nil {
		return 0, err
	}
	total := len(text)
	if !bytes.ContainsRune(text, '&') || !bytes.ContainsRune(text, '*') {
		return total, nil
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return total, nil
		} else if err != nil {
			return 0, err
		}
		size, err := expanded(&node, map[*yaml.Node]extent{})
		if err != nil {
			return 0, err
		}
		total += size.bytes
	}
}

// CheckJSON is [Check] for a text without aliases, such as one in JSON.
func CheckJSON(text []byte) error {
	// A marker in a text in UTF-16 may be no marker.
	marked := bytes.IndexByte(text, 0) < 0
	start, values := 0, 0
	for i, char := range text {
		switch char {
		case ',', ':', '[', '{':
			values++
		case '-', '?':
			if i+1 == len(text) || !isWord(text[i+1]) {
				values++
			}
			if marked && char == '-' && isMarker(text, i) {
				start, values = i, 0
			}
		}
		if values > MaxValues {
			return errValues
		}
		if i-start >= MaxBytes {
			return errBytes
		}
	}
	return nil
}

func isWord(char byte) bool {
	return '0' <= char && char <= '9' || 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || char == '-'
}

// isMarker reports whether a document begins at i.
func isMarker(text []byte, i int) bool {
	rest, found := bytes.CutPrefix(text[i:], []byte("---"))
	ends := len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0
	return found && ends && (i == 0 || text[i-1] == '\n')
}

// Count returns how many documents a text in YAML has.
func Count(text string) int {
	count := 1
	for i, line := 0, "\n---"; ; count++ {
		at := strings.Index(text[i:], line)
		if at < 0 {
			return count
		}
		if i += at + len(line); i < len(text) && !strings.ContainsRune(" \t\r\n", rune(text[i])) {
			count--
		}
	}
}

// extent is what a node has with its aliases replaced.
type extent struct{ bytes, values, depth int }

func expanded(node *yaml.Node, known map[*yaml.Node]extent) (extent, error) {
	if size, ok := known[node]; ok {
		if size.values == 0 {
			return size, errCycle
		}
		return size, nil
	}
	known[node] = extent{}
	size, inner := extent{bytes: len(node.Value), values: 1}, node.Content
	if node.Alias != nil {
		size, inner = extent{}, []*yaml.Node{node.Alias}
	}
	for _, child := range inner {
		below, err := expanded(child, known)
		if err != nil {
			return size, err
		}
		size.bytes, size.values = size.bytes+below.bytes, size.values+below.values
		size.depth = max(size.depth, below.depth)
		if size.bytes > MaxBytes || size.values > MaxValues {
			return size, errExpand
		}
	}
	if size.depth++; size.depth > MaxDepth {
		return size, errDepth
	}
	known[node] = size
	return size, nil
}

// ToJSON returns the first document of a text in YAML as JSON, see [Check].
func ToJSON(text []byte) ([]byte, error) {
	if err := Check(text); err != nil {
		return nil, err
	}
	converted, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	depth, quoted := 0, false
	for i := 0; i < len(converted); i++ {
		switch char := converted[i]; {
		case char == '"':
			quoted = !quoted
		case quoted && char == '\\':
			i++
		case !quoted && (char == '{' || char == '['):
			if depth++; depth > MaxDepth {
				return nil, errDepth
			}
		case !quoted && (char == '}' || char == ']'):
			depth--
		}
	}
	return converted, nil
}

// CheckTOML returns an error if a text in TOML must not be parsed. The parser calls itself for each bracket, and needs
// the square of the length of a key with points.
func CheckTOML(text []byte) error {
	const maxBrackets, maxSteps = 10_000, 1 << 20
	if err := CheckJSON(text); err != nil {
		return err
	}
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxBrackets {
		return fmt.Errorf("%w: a document in TOML has more than %d brackets", ErrTooLarge, maxBrackets)
	}
	steps := 0
	for line := range bytes.Lines(text) {
		points := bytes.Count(line, []byte("."))
		if steps += points * points; steps > maxSteps {
			return fmt.Errorf("%w: a document in TOML has keys with too many points", ErrTooLarge)
		}
	}
	return nil
}

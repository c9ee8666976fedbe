package managedfields

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Digest identifies a set of fields, without the fields that ignore names, as JSON pointers, and the fields beneath
// them. The set is the union of sets in the JSON that managed fields have.
//
// It is empty if a set cannot be understood. The text is the same in every process and stays so, since it is stored: a
// change to it would look like drift of all objects.
//
// A pointer names an element of a list by its index. The element of a list that is merged by key has none in the
// managed fields; such a pointer leaves nothing out.
func Digest(sets []string, ignore []string) string {
	union := fieldpath.NewSet()
	for _, raw := range sets {
		if raw == "" {
			continue
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(strings.NewReader(raw)); err != nil {
			return ""
		}
		union = union.Union(set)
	}
	if ignored := Pointers(ignore); len(ignored) > 0 {
		union = without(union, func(path fieldpath.Path) bool {
			return slices.ContainsFunc(ignored, func(tokens []string) bool { return IsBelow(path, tokens) })
		})
	}
	text, err := union.ToJSON()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return digestText.EncodeToString(sum[:15])
}

var digestText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Pointers returns the tokens of JSON pointers. A pointer that is malformed, or means the whole, is left out.
func Pointers(pointers []string) [][]string {
	var all [][]string
	for _, text := range pointers {
		if pointer, err := jsonpointer.New(text); err == nil && !pointer.IsEmpty() {
			all = append(all, pointer.DecodedTokens())
		}
	}
	return all
}

// IsBelow reports whether path is what a JSON pointer means, or below it. A number is the name of a field or an index.
func IsBelow(path fieldpath.Path, pointer []string) bool {
	if len(path) < len(pointer) {
		return false
	}
	for i, token := range pointer {
		switch at := path[i]; {
		case at.FieldName != nil && *at.FieldName == token:
		case at.Index != nil && strconv.Itoa(*at.Index) == token:
		default:
			return false
		}
	}
	return true
}

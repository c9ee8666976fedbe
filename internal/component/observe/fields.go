package observe

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Ours returns the managed fields entries of a manager that are not about a subresource. The result shares memory with entries.
func Ours(entries []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	var ours []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Manager == manager && entry.Subresource == "" {
			ours = append(ours, entry)
		}
	}
	return ours
}

// Fields identifies the set of fields that a manager owns of an object with the given managed fields: the union of its entries
// without those about subresources, and without the fields that ignore names, as JSON pointers, and whatever is beneath them.
//
// It is empty if that is not known: the object has no managed fields at all, or they cannot be understood. The text is the same
// in every process and stays so, since it is stored: a change to it would look like drift of all objects.
//
// A pointer names an element of a list by its index. The element of a list that is merged by key has none in the managed
// fields; such a pointer leaves nothing out.
func Fields(entries []metav1.ManagedFieldsEntry, manager string, ignore []string) string {
	if len(entries) == 0 {
		return ""
	}
	var sets []string
	for _, entry := range Ours(entries, manager) {
		sets = append(sets, entry.FieldsV1.GetRawString())
	}
	return fieldsOf(sets, ignore)
}

// fieldsOf identifies the union of sets of fields, each in the JSON that managed fields have.
func fieldsOf(sets []string, ignore []string) string {
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
	if len(ignore) > 0 {
		without := fieldpath.NewSet()
		for _, pointer := range ignore {
			for _, path := range pathsOf(pointer) {
				without.Insert(path)
			}
		}
		union = union.RecursiveDifference(without)
	}
	text, err := union.ToJSON()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return encoding.EncodeToString(sum[:15])
}

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// maxPaths bounds what one pointer can mean.
const maxPaths = 64

// pathsOf returns the paths that a JSON pointer may mean: a number is the name of a field or an index.
func pathsOf(pointer string) []fieldpath.Path {
	tokens, ok := tokensOf(pointer)
	if !ok {
		return nil
	}
	paths := []fieldpath.Path{{}}
	for _, token := range tokens {
		index, err := strconv.Atoi(token)
		numeric := err == nil && index >= 0 && len(paths) < maxPaths
		var next []fieldpath.Path
		for _, path := range paths {
			next = append(next, append(path.Copy(), fieldpath.FieldNameElement(token)))
			if numeric {
				next = append(next, append(path.Copy(), fieldpath.IndexElement(index)))
			}
		}
		paths = next
	}
	return paths
}

// tokensOf splits a JSON pointer; ok is false if it names nothing, or everything.
func tokensOf(pointer string) (tokens []string, ok bool) {
	rest, found := strings.CutPrefix(pointer, "/")
	if !found {
		return nil, false
	}
	tokens = strings.Split(rest, "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, true
}

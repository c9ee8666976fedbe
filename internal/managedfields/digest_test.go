package managedfields_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func managed(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	entry := managedEntry(manager, operation, fields)
	entry.Subresource = subresource
	return entry
}

func TestDigest(t *testing.T) {
	const (
		a     = `{"f:data":{"f:a":{}}}`
		b     = `{"f:data":{"f:b":{}}}`
		both  = `{"f:data":{"f:b":{},"f:a":{}}}`
		spec  = `{"f:spec":{"f:replicas":{},"f:template":{".":{},"f:x":{}},"f:list":{"i:0":{},"i:1":{}}}}`
		apply = metav1.ManagedFieldsOperationApply
		write = metav1.ManagedFieldsOperationUpdate
	)
	of := func(ignore []string, entries ...metav1.ManagedFieldsEntry) string {
		if len(entries) == 0 {
			return ""
		}
		var sets []string
		for _, entry := range managedfields.Entries(entries, "us") {
			sets = append(sets, entry.FieldsV1.GetRawString())
		}
		return managedfields.Digest(sets, ignore)
	}
	base := of(nil, managed("us", apply, "", both))
	if len(base) != 24 {
		t.Errorf("got %q, want 24 characters", base)
	}
	// It is stored, so it must not change.
	if want := "onpswirlwbvuhgf4rl7qkunv"; base != want {
		t.Errorf("got %q, want %q", base, want)
	}
	for name, same := range map[string][2]string{
		"union":                      {base, of(nil, managed("us", apply, "", a), managed("us", write, "", b))},
		"others do not count":        {base, of(nil, managed("them", apply, "", spec), managed("us", apply, "", both))},
		"subresources do not count":  {base, of(nil, managed("us", apply, "", both), managed("us", write, "status", spec))},
		"ignored field":              {base, of([]string{"/data/c"}, managed("us", apply, "", `{"f:data":{"f:a":{},"f:b":{},"f:c":{}}}`))},
		"ignored parent":             {base, of([]string{"/spec"}, managed("us", apply, "", both), managed("us", write, "", spec))},
		"escaped pointer":            {base, of([]string{"/data/a~1b~0c"}, managed("us", apply, "", `{"f:data":{"f:a":{},"f:b":{},"f:a/b~c":{}}}`))},
		"pointer to nothing":         {base, of([]string{"", "data", "/x/0/y"}, managed("us", apply, "", both))},
		"ignored index":              {of(nil, managed("us", apply, "", `{"f:l":{"i:1":{}}}`)), of([]string{"/l/0"}, managed("us", apply, "", `{"f:l":{"i:0":{},"i:1":{}}}`))},
		"numeric name of a field":    {of(nil, managed("us", apply, "", a)), of([]string{"/data/7"}, managed("us", apply, "", `{"f:data":{"f:a":{},"f:7":{}}}`))},
		"nothing known":              {"", of(nil)},
		"malformed":                  {"", of(nil, managed("us", apply, "", `{"x"`))},
		"entry without fields":       {base, of(nil, managed("us", apply, "", both), metav1.ManagedFieldsEntry{Manager: "us", Operation: write})},
		"nothing ours, but known":    {of(nil, managed("us", apply, "", `{}`)), of(nil, managed("them", apply, "", both))},
		"many numbers in one place ": {base, of([]string{"/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1"}, managed("us", apply, "", both))},
	} {
		if same[0] != same[1] {
			t.Errorf("%s: got %q, want %q", name, same[1], same[0])
		}
	}
	different := map[string]bool{}
	for _, text := range []string{
		base, of(nil, managed("us", apply, "", a)), of(nil, managed("us", apply, "", spec)), of(nil, managed("them", apply, "", a)),
		of([]string{"/spec/template"}, managed("us", apply, "", spec)), of([]string{"/spec/replicas"}, managed("us", apply, "", spec)),
	} {
		if text == "" || different[text] {
			t.Errorf("%q is empty or not unique", text)
		}
		different[text] = true
	}
}

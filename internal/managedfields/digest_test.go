package managedfields_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"
)

func TestDigest(t *testing.T) {
	const (
		a    = `{"f:data":{"f:a":{}}}`
		b    = `{"f:data":{"f:b":{}}}`
		both = `{"f:data":{"f:b":{},"f:a":{}}}`
		spec = `{"f:spec":{"f:replicas":{},"f:template":{".":{},"f:x":{}},"f:list":{"i:0":{},"i:1":{}}}}`
	)
	of := func(ignore []string, sets ...string) string { return managedfields.Digest(sets, ignore) }
	base := of(nil, both)
	if len(base) != 24 {
		t.Errorf("got %q, want 24 characters", base)
	}
	// It is stored, so it must not change.
	if want := "onpswirlwbvuhgf4rl7qkunv"; base != want {
		t.Errorf("got %q, want %q", base, want)
	}
	for name, same := range map[string][2]string{
		"union":                      {base, of(nil, a, b)},
		"ignored field":              {base, of([]string{"/data/c"}, `{"f:data":{"f:a":{},"f:b":{},"f:c":{}}}`)},
		"ignored parent":             {base, of([]string{"/spec"}, both, spec)},
		"escaped pointer":            {base, of([]string{"/data/a~1b~0c"}, `{"f:data":{"f:a":{},"f:b":{},"f:a/b~c":{}}}`)},
		"pointer to nothing":         {base, of([]string{"", "data", "/x/0/y"}, both)},
		"ignored index":              {of(nil, `{"f:l":{"i:1":{}}}`), of([]string{"/l/0"}, `{"f:l":{"i:0":{},"i:1":{}}}`)},
		"numeric name of a field":    {of(nil, a), of([]string{"/data/7"}, `{"f:data":{"f:a":{},"f:7":{}}}`)},
		"no field":                   {of(nil, `{}`), of(nil)},
		"malformed":                  {"", of(nil, `{"x"`)},
		"entry without fields":       {base, of(nil, both, "")},
		"many numbers in one place ": {base, of([]string{"/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1"}, both)},
	} {
		if same[0] != same[1] {
			t.Errorf("%s: got %q, want %q", name, same[1], same[0])
		}
	}
	different := map[string]bool{}
	for _, text := range []string{
		base, of(nil, a), of(nil, spec), of(nil),
		of([]string{"/spec/template"}, spec), of([]string{"/spec/replicas"}, spec),
	} {
		if text == "" || different[text] {
			t.Errorf("the digest is %q, want one that is not empty and unique", text)
		}
		different[text] = true
	}
}

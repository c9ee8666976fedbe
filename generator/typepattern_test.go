package generator_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/generator"
)

func TestTypePatternMatches(t *testing.T) {
	for _, tc := range []struct {
		pattern, kind generator.TypePattern
		want          bool
	}{
		{generator.TypePattern{Group: "foo", Kind: "*"}, generator.TypePattern{Group: "foo", Kind: "Bed"}, true},
		{generator.TypePattern{Group: "*.foo", Kind: "*"}, generator.TypePattern{Group: "bar.foo", Kind: "Bed"}, true},
		{generator.TypePattern{Group: "*.foo", Kind: "*"}, generator.TypePattern{Group: "baz.bar.foo", Kind: "Bed"}, true},
		{generator.TypePattern{Group: "*", Kind: "*"}, generator.TypePattern{Group: "foo", Kind: "Bed"}, true},
		{generator.TypePattern{Group: "*", Kind: "*"}, generator.TypePattern{Group: "", Kind: "Bed"}, true},
		{generator.TypePattern{Group: "", Kind: "*"}, generator.TypePattern{Group: "", Kind: "Bed"}, true},
		{generator.TypePattern{Group: "", Kind: "*"}, generator.TypePattern{Group: "foo", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "f*o", Kind: "*"}, generator.TypePattern{Group: "foo", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "f*o", Kind: "*"}, generator.TypePattern{Group: "f*o", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "foo.*", Kind: "*"}, generator.TypePattern{Group: "foo.bar", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "*r.foo", Kind: "*"}, generator.TypePattern{Group: "bar.foo", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "b*.foo", Kind: "*"}, generator.TypePattern{Group: "bar.foo", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "*.*.foo", Kind: "*"}, generator.TypePattern{Group: "baz.bar.foo", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "*.*.foo", Kind: "*"}, generator.TypePattern{Group: "baz.*.foo", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "*.foo", Kind: "*"}, generator.TypePattern{Group: "foo", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "*.foo", Kind: "*"}, generator.TypePattern{Group: ".foo", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "*.foo", Kind: "*"}, generator.TypePattern{Group: "barfoo", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "*.", Kind: "*"}, generator.TypePattern{Group: "bar.", Kind: "Bed"}, false},
		{generator.TypePattern{Group: "foo", Kind: "Bed"}, generator.TypePattern{Group: "foo", Kind: "Bed"}, true},
		{generator.TypePattern{Group: "foo", Kind: "Bed"}, generator.TypePattern{Group: "foo", Kind: "Bedding"}, false},
		{generator.TypePattern{Group: "foo", Kind: "Be*"}, generator.TypePattern{Group: "foo", Kind: "Be*"}, false},
		{generator.TypePattern{Group: "foo"}, generator.TypePattern{Group: "foo"}, false},
	} {
		if got := tc.pattern.Matches(schema.GroupKind(tc.kind)); got != tc.want {
			t.Errorf("%+v matches %+v: %t, want %t", tc.pattern, tc.kind, got, tc.want)
		}
	}
}

func TestTypePatternValidate(t *testing.T) {
	for _, valid := range []generator.TypePattern{
		{Kind: "*"}, {Group: "*", Kind: "*"}, {Group: "*.foo", Kind: "Bed"}, {Group: "apps", Kind: "Deployment"}, {Group: "a.b.c", Kind: "V1Thing"},
	} {
		if err := valid.Validate(); err != nil {
			t.Errorf("%+v: %v", valid, err)
		}
	}
	for _, tc := range []struct {
		pattern generator.TypePattern
		want    string
	}{
		{generator.TypePattern{Group: "f*o", Kind: "*"}, `group: must be a group, "*", or "*." and a group: "f*o"`},
		{generator.TypePattern{Group: "*.*.foo", Kind: "*"}, `group: must be a group, "*", or "*." and a group: "*.*.foo"`},
		{generator.TypePattern{Group: "*.", Kind: "*"}, `group: must be a group, "*", or "*." and a group: "*."`},
		{generator.TypePattern{Group: "Foo", Kind: "*"}, `group: must be a group, "*", or "*." and a group: "Foo"`},
		{generator.TypePattern{Group: "foo"}, `kind: must be a kind, or "*": ""`},
		{generator.TypePattern{Group: "foo", Kind: "Be*"}, `kind: must be a kind, or "*": "Be*"`},
		{generator.TypePattern{Group: "**", Kind: "a b"}, "group: must be a group, \"*\", or \"*.\" and a group: \"**\"\nkind: must be a kind, or \"*\": \"a b\""},
	} {
		if got := errorText(tc.pattern.Validate()); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.pattern, got, tc.want)
		}
	}
}

// FuzzTypePattern holds against any pattern that one that matches something is valid where the type could exist, and
// that there are no other wildcards than the documented ones.
func FuzzTypePattern(f *testing.F) {
	f.Add("*.foo", "*", "bar.foo", "Bed")
	f.Add("*.*.foo", "Bed", "a.b.foo", "Bed")
	f.Add("*", "*", "", "Bed")
	f.Add("*.", "*", ".", "*")
	f.Fuzz(func(t *testing.T, group, kind, ofGroup, ofKind string) {
		pattern, of := generator.TypePattern{Group: group, Kind: kind}, schema.GroupKind{Group: ofGroup, Kind: ofKind}
		err := pattern.Validate()
		if !pattern.Matches(of) {
			if pattern.Group == of.Group && pattern.Kind == of.Kind && err == nil && !strings.Contains(group+kind, "*") {
				t.Errorf("%+v does not match itself, want it to", pattern)
			}
			return
		}
		exists := generator.TypePattern{Group: of.Group, Kind: of.Kind}
		if err != nil && exists.Validate() == nil && !strings.Contains(ofGroup+ofKind, "*") {
			t.Errorf("%+v matches %+v and is not valid (%v), want it valid", pattern, of, err)
		}
		if group != "*" && group != of.Group && (!strings.HasPrefix(group, "*.") || !strings.HasSuffix(of.Group, group[1:])) {
			t.Errorf("%+v matches the group of %+v, want it not to", pattern, of)
		}
		if kind != "*" && kind != of.Kind {
			t.Errorf("%+v matches the kind of %+v, want it not to", pattern, of)
		}
	})
}

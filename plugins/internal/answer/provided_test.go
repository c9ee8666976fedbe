package answer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"
)

func TestDescriptionsThatAreRefused(t *testing.T) {
	types := func(names ...string) []*protocol.Type {
		all := make([]*protocol.Type, len(names))
		for i, name := range names {
			all[i] = &protocol.Type{Name: name}
		}
		return all
	}
	versions := func(versions ...string) []*protocol.Type {
		return []*protocol.Type{{Name: "postgres", Versions: versions}}
	}
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprint("t", i)
	}
	definition := func(name, scope, conversion string) [][]byte {
		text := `{"metadata":{"name":"` + name + `"},"spec":{"group":"example.com","names":{"plural":"meters"},` +
			`"scope":"` + scope + `","conversion":{"strategy":"` + conversion + `"}}}`
		return [][]byte{[]byte(text)}
	}
	for want, given := range map[string]*protocol.DescribeResponse{
		`the category "" must have`:              {Types: types("postgres")},
		`the category "data base" must have`:     {Category: "data base", Types: types("postgres")},
		`there are 0 types of the category "x"`:  {Category: "x"},
		`there are 101 types of the category`:    {Category: "x", Types: types(many...)},
		`the type "" must have letters`:          {Category: "x", Types: types("")},
		`the type "a/b" must have letters`:       {Category: "x", Types: types("a/b")},
		`the type "A" is given twice`:            {Category: "x", Types: types("a", "A")},
		`the type "postgres" has the version ""`: {Category: "x", Types: versions("")},
		`has the version "1 2": give a text`:     {Category: "x", Types: versions("1 2")},
		`the type "postgres" has 101 versions`:   {Category: "x", Types: versions(many...)},
		`there are 21 definitions of kinds`: {
			Category: "x", Types: types("a"),
			Definitions: slices.Repeat(definition("meters.example.com", "Namespaced", "None"), 21),
		},
		`the definition 0 is no`: {Category: "x", Types: types("a"), Definitions: [][]byte{{'{'}}},
		`the definition 0 is too large`: {
			Category: "x", Types: types("a"), Definitions: [][]byte{[]byte(strings.Repeat("[", 1<<19))},
		},
		`must have the name of its plural`: {
			Category: "x", Types: types("a"), Definitions: definition("pods", "Namespaced", "None"),
		},
		`must be for objects with a namespace`: {
			Category: "x", Types: types("a"), Definitions: definition("meters.example.com", "Cluster", "None"),
		},
		`"meters.example.com" must have no conversi`: {
			Category: "x", Types: types("a"), Definitions: definition("meters.example.com", "Namespaced", "Webhook"),
		},
	} {
		if _, err := answer.ProvidedIn(given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %s", err, want)
		}
	}
}

func TestVersions(t *testing.T) {
	got := answer.Sorted([]string{"9.6", "latest", "16.2", "10", "9.6", "16.2-rc1", "edge"})
	if want := []string{"16.2", "16.2-rc1", "10", "9.6", "latest", "edge"}; !slices.Equal(got, want) {
		t.Errorf("the versions are sorted as %v, want %v", got, want)
	}
}

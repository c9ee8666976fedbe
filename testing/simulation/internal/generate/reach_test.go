package generate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/testing/simulation/internal/generate"
)

// worthwhile are values that are worth to be drawn: each of an enum, the bounds, and none at all.
var worthwhile = map[string][]string{
	".texts.any":              {"none", "length 0", "length 1", "odd"},
	".texts.enum":             {"none", "One", "Two", "Three"},
	".texts.length":           {"length 2", "length 3", "length 5"},
	".texts.empty":            {"length 0"},
	".texts.name":             {"length 1", "length 2", "length 253"},
	".texts.inside":           {"length 3", "length 8"},
	".texts.folded":           {"length 2", "length 3"},
	".texts.greek":            {"length 1", "length 2", "length 3"},
	".texts.short":            {"length 1", "length 63"},
	".numbers.any":            {"-1", "0", "1", "2", "3"},
	".numbers.narrow":         {"3", "4", "5", "6", "7"},
	".numbers.exclusive":      {"-2", "-1", "0", "1", "2"},
	".numbers.small":          {"0", "1"},
	".numbers.large":          {"-5"},
	".numbers.fives":          {"5", "10", "15", "20"},
	".numbers.level":          {"1", "2", "8"},
	".numbers.ratio":          {"0", "1", "0.5"},
	".numbers.half":           {"-0.5", "0.5", "1.5"},
	".numbers.open":           {"0.125", "2"},
	".numbers.port":           {"0", "1", "http", "50%"},
	".numbers.percent":        {"0", "length 2", "length 3"},
	".numbers.memory":         {"0", "1", "1Gi", "100m"},
	".lists.plain":            {"none", "size 0", "size 1", "size 2"},
	".lists.bounded":          {"size 1", "size 4"},
	".lists.set":              {"size 2", "size 3"},
	".lists.byName":           {"size 0", "size 1", "size 2"},
	".lists.byName.protocol":  {"none", "TCP", "UDP"},
	".lists.labels":           {"size 0", "size 1"},
	".lists.counts":           {"size 1", "size 2", "size 3"},
	".choices.one":            {"size 1"},
	".choices.one.a":          {"none", "length 0"},
	".choices.one.e":          {"none", "length 0"},
	".choices.any":            {"size 1", "size 2", "size 3"},
	".choices.all":            {"length 2", "length 4"},
	".choices.not":            {"0", "2", "3"},
	".choices.neither":        {"size 0", "size 1"},
	".choices.kind.type":      {"File", "Address"},
	".others.default":         {"none", "3"},
	".others.nullable":        {"none", "<nil>", "length 1"},
	".others.defaultNullable": {"none", "<nil>", "a"},
	".others.flag":            {"none", "true", "false"},
	".others.settings.level":  {"none", "0"},
	".rules.exact":            {"first", "second"},
	".rules.pattern":          {"length 3"},
	".rules.port":             {"8080", "9001", "65535"},
	".rules.mode":             {"None", "Backup"},
}

func TestReaches(t *testing.T) {
	t.Parallel()
	g := generator(t, "Keyword")
	n := notes{seen: map[string]map[string]bool{}, fields: map[string][]string{}}
	for path := range worthwhile {
		at := strings.LastIndex(path, ".")
		n.fields[path[:at]] = append(n.fields[path[:at]], path[at+1:])
		n.seen[path] = map[string]bool{}
	}
	for seed := range uint64(2000) {
		n.note(draw(t, g, source(seed)).Object["spec"], "")
	}
	for path, values := range worthwhile {
		for _, value := range values {
			if !n.seen[path][value] {
				t.Errorf("%s is never %s, but %d others", path, value, len(n.seen[path]))
			}
		}
	}
}

type notes struct {
	seen   map[string]map[string]bool
	fields map[string][]string
}

// note notes what the values of an object are, and which are not there.
func (n notes) note(value any, path string) {
	add := func(text string) {
		if seen, ok := n.seen[path]; ok {
			seen[text] = true
		}
	}
	switch value := value.(type) {
	case map[string]any:
		add(fmt.Sprintf("size %d", len(value)))
		for key, item := range value {
			n.note(item, path+"."+key)
		}
		for _, name := range n.fields[path] {
			if _, ok := value[name]; !ok {
				n.seen[path+"."+name]["none"] = true
			}
		}
	case []any:
		add(fmt.Sprintf("size %d", len(value)))
		for _, item := range value {
			n.note(item, path)
		}
	default:
		text := fmt.Sprint(value)
		add(text)
		add(fmt.Sprintf("length %d", utf8.RuneCountInString(text)))
		if strings.ContainsAny(text, "A.\n") {
			add("odd")
		}
	}
}

// TestEdits requires that fields are added, changed and removed, one or few at a time, and metadata too.
func TestEdits(t *testing.T) {
	t.Parallel()
	g := generator(t, "Keyword")
	var added, changed, removed, metadata, single int
	const edits = 500
	for seed := range uint64(edits) {
		r := source(seed)
		old := draw(t, g, r)
		obj := g.Edit(r, old)
		before, after := leaves(old.Object, "", nil), leaves(obj.Object, "", nil)
		if encode(before[".metadata"]) != encode(after[".metadata"]) {
			metadata++
		}
		differences := 0
		for path, value := range after {
			was, ok := before[path]
			switch {
			case !ok:
				added++
				differences++
			case was != value:
				changed++
				differences++
			}
		}
		for path := range before {
			if _, ok := after[path]; !ok {
				removed++
				differences++
			}
		}
		if differences == 1 {
			single++
		}
	}
	for what, count := range map[string]int{"added": added, "changed": changed, "removed": removed, "single": single} {
		if count < edits/10 {
			t.Errorf("%d of %d edits are %s", count, edits, what)
		}
	}
}

// leaves returns the values in an object that have none in them, by their paths.
func leaves(value any, path string, found map[string]any) map[string]any {
	if found == nil {
		found = map[string]any{}
	}
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			leaves(item, path+"."+key, found)
		}
	case []any:
		for i, item := range value {
			leaves(item, fmt.Sprintf("%s[%d]", path, i), found)
		}
	default:
		found[path] = value
	}
	return found
}

// TestTransitions has rules that compare with the old resource.
func TestTransitions(t *testing.T) {
	t.Parallel()
	g, err := generate.New(defined(t, `
type: object
required: [class, items]
properties:
  class: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}
  other: {type: string}
  items:
    type: array
    maxItems: 6
    items: {type: string, maxLength: 5}
    x-kubernetes-validations: [{rule: "oldSelf.all(x, x in self)"}]
`), "v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	grown, labelled := 0, 0
	for seed := range uint64(100) {
		r := source(seed)
		old := draw(t, g, r)
		for range 10 {
			obj := g.Edit(r, old)
			if err := g.Check(obj, old); err != nil {
				t.Fatal(err)
			}
			before, _, _ := unstructured.NestedSlice(old.Object, "spec", "items")
			after, _, _ := unstructured.NestedSlice(obj.Object, "spec", "items")
			if len(after) > len(before) {
				grown++
			}
			if encode(obj.GetLabels()) != encode(old.GetLabels()) {
				labelled++
			}
			old = obj
		}
	}
	if grown < 50 || labelled < 20 {
		t.Errorf("of 1000 edits %d are of the list and %d of labels", grown, labelled)
	}
}

// TestFrozen has resources of which nothing may be edited but the metadata.
func TestFrozen(t *testing.T) {
	t.Parallel()
	g, err := generate.New(defined(t, `
type: object
required: [class]
properties: {class: {type: string}}
x-kubernetes-validations: [{rule: self == oldSelf}]
`), "v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	old := draw(t, g, source(1))
	obj := g.Edit(rand.New(rand.NewPCG(2, 2)), old)
	if encode(obj.Object["spec"]) != encode(old.Object["spec"]) || encode(obj) == encode(old) {
		t.Errorf("the edit of %s is %s", encode(old), encode(obj))
	}
}

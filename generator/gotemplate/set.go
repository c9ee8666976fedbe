package gotemplate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// Options of a [Set].
type Options struct {
	// LeftDelimiter and RightDelimiter are those of actions. Default: {{ and }}.
	LeftDelimiter, RightDelimiter string
	// Limits bound each execution.
	Limits Limits
}

// Set is a set of templates that may include each other. It is immutable, and safe for concurrent use.
//
// Besides [Functions], templates may call include NAME DATA, which returns the output of a template, and tpl TEXT DATA,
// which returns that of a text. A key that is missing in a map has no value, and no value is printed as nothing.
type Set struct {
	templates   *template.Template
	left, right string
	limits      Limits
}

// noValue is what the template engine prints for a value that is missing.
const noValue = "<no value>"

// Parse parses templates, by name. If a template is defined twice, the definition in the last name counts, in the order
// of the alphabet. The error names the template and the line.
func Parse(templates map[string]string, options Options) (*Set, error) {
	left, right, err := delimiters(options.LeftDelimiter, options.RightDelimiter)
	if err != nil {
		return nil, err
	}
	s := &Set{templates: template.New(""), left: left, right: right, limits: options.Limits}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		text, err := Instrument(name, templates[name], left, right)
		if err != nil {
			return nil, err
		}
		if _, err := s.add(s.templates, name, text); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add adds the templates in a text to others, and returns the one with the name. Functions need not exist yet.
func (s *Set) add(to *template.Template, name, text string) (_ *template.Template, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("template %q cannot be parsed: %v", name, r)
		}
	}()
	root := parse.New(name)
	root.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := root.Parse(text, s.left, s.right, trees); err != nil {
		return nil, err
	}
	if trees[name] == nil {
		trees[name] = root
	}
	for _, defined := range slices.Sorted(maps.Keys(trees)) {
		if _, err := to.AddParseTree(defined, trees[defined]); err != nil {
			return nil, err
		}
	}
	return to.Lookup(name), nil
}

// Execute executes a template of the set with data, and further functions, which win over all others. Each execution
// has its own [Guard]. The error names the template and the line; it shows no values.
func (s *Set) Execute(ctx context.Context, name string, data any, functions template.FuncMap) (string, error) {
	if s == nil || s.templates == nil || s.templates.Lookup(name) == nil {
		return "", fmt.Errorf("there is no template %q", name)
	}
	e := &execution{set: s, guard: NewGuard(ctx, s.limits)}
	defer e.guard.End()
	templates, err := s.templates.Clone()
	if err != nil {
		return "", err
	}
	all := Functions(ctx)
	maps.Copy(all, e.guard.Functions())
	maps.Copy(all, functions)
	templates.Funcs(all)
	e.bind(templates, functions)
	output, err := e.run(templates.Lookup(name), data)
	if limit := e.guard.Err(err); limit != nil {
		return "", limit
	}
	if err != nil {
		return "", WithoutValues(err)
	}
	return output, nil
}

// execution is one execution of a Set.
type execution struct {
	set   *Set
	guard *Guard
}

// bind makes include and tpl for a set of templates, unless the caller has other ones.
func (e *execution) bind(templates *template.Template, others template.FuncMap) {
	own := template.FuncMap{
		"include": func(name string, data any) (string, error) {
			included := templates.Lookup(name)
			if included == nil {
				return "", fmt.Errorf("there is no template %q", name)
			}
			return e.run(included, data)
		},
		"tpl": func(text string, data any) (string, error) {
			clone, err := templates.Clone()
			if err != nil {
				return "", err
			}
			e.bind(clone, others)
			parsed, err := e.set.add(clone.New("tpl"), "tpl", text)
			if err != nil {
				return "", err
			}
			return e.run(parsed, data)
		},
	}
	for name := range others {
		delete(own, name)
	}
	// A clone has not the option, see https://go.dev/issue/43022.
	templates.Option("missingkey=zero").Funcs(own)
}

func (e *execution) run(t *template.Template, data any) (_ string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("template %q failed: %v", t.Name(), r)
		}
	}()
	var output strings.Builder
	if err := t.Execute(&output, data); err != nil {
		return "", err
	}
	return strings.ReplaceAll(output.String(), noValue, ""), nil
}

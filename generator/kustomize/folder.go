package kustomize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// folder is a folder of a kustomization, or a base of it. It is immutable.
type folder struct {
	dir    string
	values map[string]any
	// visible are the files that templates can read.
	visible files
	// plain are the files of the build that are no templates.
	plain files
	// set has the templates, by their path in the folder. outputs maps those that are executed to paths in the build.
	set     *gotemplate.Set
	outputs map[string]string
}

// newFolder sorts the files of a folder. The files of the config and of the rules are not part of a build.
func newFolder(dir string, content files, options Options) (*folder, config, error) {
	settings, err := parseConfig(content[path.Join(dir, configFile)])
	if err != nil {
		return nil, config{}, fmt.Errorf("%s: %w", path.Join(dir, configFile), err)
	}
	rules, err := parseIgnore(content[path.Join(dir, ignoreFile)])
	if err != nil {
		return nil, config{}, fmt.Errorf("%s: %w", path.Join(dir, ignoreFile), err)
	}
	options.TemplateSuffix = cmp.Or(options.TemplateSuffix, ".tpl")
	options = settings.apply(options)
	left, right := cmp.Or(options.LeftDelimiter, "{{"), cmp.Or(options.RightDelimiter, "}}")
	f := &folder{dir: dir, values: settings.values, visible: maps.Clone(content), plain: files{},
		outputs: map[string]string{}}
	templates, taken := map[string]string{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		inner := relative(name, dir)
		if inner == configFile || inner == ignoreFile || rules.match(inner) {
			continue
		}
		output, isTemplate := strings.CutSuffix(name, options.TemplateSuffix)
		if isTemplate {
			templates[inner] = string(content[name])
		}
		err := f.place(name, output, isTemplate && strings.Contains(templates[inner], left), taken)
		if err != nil {
			return nil, config{}, err
		}
	}
	if len(f.outputs) > 0 {
		templates[driver] = left + "range " + functionOutputs + right +
			left + functionEmit + " . (include . (" + functionValues + "))" + right + left + "end" + right
		delimiters := gotemplate.Options{
			LeftDelimiter: options.LeftDelimiter, RightDelimiter: options.RightDelimiter, Limits: options.Limits,
		}
		if f.set, err = gotemplate.Parse(templates, delimiters); err != nil {
			return nil, config{}, fmt.Errorf("folder %s: %w", orDot(dir), err)
		}
	}
	return f, settings, nil
}

// place decides where a file goes in the build. A template without actions is a plain file.
func (f *folder) place(name, output string, executed bool, taken map[string]bool) error {
	if !isWithin(output, f.dir) || strings.HasSuffix(output, "/") || output == f.dir {
		return fmt.Errorf("%s: without the suffix of templates, it has no name", name)
	}
	if taken[output] {
		return fmt.Errorf("%s: there is another file or template for %s", name, output)
	}
	taken[output] = true
	if executed {
		f.outputs[relative(name, f.dir)] = output
	} else {
		f.plain[output] = f.visible[name]
	}
	return nil
}

// include makes files visible to the templates that are outside the folder.
func (f *folder) include(field string, references []string, all files) error {
	for i, reference := range references {
		target, err := resolve(field, i, reference, f.dir)
		if err != nil {
			return err
		}
		found := false
		for name, content := range all {
			if isWithin(name, target) {
				f.visible[name], found = content, true
			}
		}
		if !found {
			return fmt.Errorf("%s[%d]: %q: %w", field, i, reference, errOutside)
		}
	}
	return nil
}

// The driver is a template that executes all others. So the limits are for all of them together, and the set is
// prepared once.
const (
	driver          = "/folder"
	functionOutputs = "folderOutputs"
	functionEmit    = "folderEmit"
	functionValues  = "folderValues"
)

// render adds the files of the folder to those of a build.
func (f *folder) render(
	ctx context.Context, parameters map[string]any, functions template.FuncMap, into files,
) error {
	maps.Copy(into, f.plain)
	if len(f.outputs) == 0 {
		return nil
	}
	all := maps.Clone(functions)
	maps.Copy(all, f.functions())
	all[functionOutputs] = func() []string { return slices.Sorted(maps.Keys(f.outputs)) }
	all[functionEmit] = func(name, text string) string {
		into[f.outputs[name]] = []byte(text)
		return ""
	}
	// A template may change its values, but not those of the next one.
	all[functionValues] = func() map[string]any { return merge(deepCopy(f.values), deepCopy(parameters)) }
	if _, err := f.set.Execute(ctx, driver, nil, all); err != nil {
		return fmt.Errorf("folder %s: %w", orDot(f.dir), err)
	}
	return nil
}

// functions are those that read files. Paths are relative to the folder.
func (f *folder) functions() template.FuncMap {
	locate := func(name string) (string, error) {
		target, ok := join(f.dir, name)
		if !ok || path.IsAbs(name) {
			return "", fmt.Errorf("%q is no relative path in the folder", name)
		}
		return target, nil
	}
	return template.FuncMap{
		"listFiles": f.list,
		"existsFile": func(name string) (bool, error) {
			target, err := locate(name)
			_, ok := f.visible[target]
			return ok, err
		},
		"readFile": func(name string) (string, error) {
			target, err := locate(name)
			if err != nil {
				return "", err
			}
			content, ok := f.visible[target]
			if !ok {
				return "", fmt.Errorf("there is no file %q", name)
			}
			return string(content), nil
		},
	}
}

// list returns the paths of the visible files that match a pattern. A file outside the folder matches only a pattern
// that starts with .. too.
func (f *folder) list(pattern string) ([]string, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, errors.New("listFiles: the pattern is malformed")
	}
	found := []string{}
	for name := range f.visible {
		inner := f.relative(name)
		outside := strings.HasPrefix(inner, "../") && !strings.HasPrefix(pattern, "../")
		if !outside && doublestar.MatchUnvalidated(pattern, inner) {
			found = append(found, inner)
		}
	}
	slices.Sort(found)
	return found, nil
}

// relative returns the path of a file from the folder, with .. for files outside of it.
func (f *folder) relative(name string) string {
	up, dir := "", f.dir
	for !isWithin(name, dir) {
		up += "../"
		if dir = path.Dir(dir); dir == "." {
			dir = ""
		}
	}
	return up + relative(name, dir)
}

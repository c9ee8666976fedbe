// Package preview compares the objects that would be deployed with golden files, for each case of a matrix of versions,
// gates and values.
//
//	func TestPreview(t *testing.T) {
//		preview.Golden(t, preview.Config[Values]{
//			Dir:    "testdata/preview",
//			Scheme: scheme,
//			Render: objects,
//			Cases: preview.Matrix(Values{Replicas: 2},
//				preview.Axis[Values]{
//					"v1": func(v *Values) { v.Version = "1.9.0" },
//					"v2": func(v *Values) { v.Version = "2.0.0" },
//				},
//				preview.Axis[Values]{
//					"plain":  func(v *Values) {},
//					"traced": func(v *Values) { v.Tracing = true },
//				},
//			),
//		})
//	}
//
// [Tree] returns what a whole tree keeps, with its gates and switches. [Generated] calls a generator of a component.
//
// A case named v1/traced has the golden file testdata/preview/v1/traced.yaml. The flag -preview.update writes the
// golden files and removes those without a case; so do a flag -update of the test itself, and the flag
// -rtesting.update.
//
// A golden file has the objects in their order, one YAML document for each, with apiVersion and kind. Times of creation
// that are not set are left out, and so is a status without values. Golden files are kept in a repository: of a Secret
// they have the keys, not the values.
package preview

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/edit"
	"github.com/espalier-dev/espalier/generator"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Config says what is rendered, and where its golden files are.
type Config[Values any] struct {
	// Dir is the folder of the golden files, relative to that of the test. All golden files there, also in folders
	// below, belong to the cases. Other files are left alone. Required.
	Dir string
	// Scheme has the kinds of typed objects. Default: the scheme of client-go.
	Scheme *runtime.Scheme
	// Render returns the objects that would be deployed. It is called twice for each case, and must return the same.
	// It may call [Tree]; [Generated] makes one from a generator. Required.
	Render func(values Values) ([]client.Object, error)
	// Cases are values by the name of their case. A name may have slashes. At least one is required.
	Cases map[string]Values
}

// Golden compares what is rendered for each case with its golden file, and fails the test for each case that differs,
// with the lines that do. A case without a golden file fails, and so does a golden file without a case. With the flag
// -preview.update, the files are written and removed instead.
func Golden[Values any](t testing.TB, config Config[Values]) {
	t.Helper()
	if problem := config.problem(); problem != "" {
		t.Errorf("preview: %s", problem)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(config.Cases)) {
		text, err := config.render(config.Cases[name])
		if err != nil {
			t.Errorf("preview: case %s: %v", name, err)
			continue
		}
		golden(t, config.Dir, name, text)
	}
	stale(t, config.Dir, func(name string) bool {
		_, ok := config.Cases[name]
		return ok
	})
}

// problem returns what is wrong with the config, empty if nothing is.
func (c Config[Values]) problem() string {
	switch {
	case c.Dir == "":
		return "Dir is required"
	case c.Render == nil:
		return "Render is required"
	case len(c.Cases) == 0:
		return "Cases are required"
	}
	for _, name := range slices.Sorted(maps.Keys(c.Cases)) {
		if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `\:*?"<>|`) {
			return fmt.Sprintf("the name of the case %q cannot be that of a file", name)
		}
	}
	return ""
}

func (c Config[Values]) render(values Values) (string, error) {
	var texts [2]string
	for i := range texts {
		objects, err := c.Render(values)
		if err != nil {
			return "", fmt.Errorf("render: %w", err)
		}
		if texts[i], err = Text(objects, c.Scheme); err != nil {
			return "", err
		}
	}
	if texts[0] != texts[1] {
		return "", fmt.Errorf("another call of Render returns something else (-first +second):\n%s",
			difference(texts[0], texts[1]))
	}
	return texts[0], nil
}

// Generated returns a function for Render that calls a generator of a component. The values are the parameters.
// [generator.NewContext] makes a context with the facts that the generator looks for.
func Generated[Parameters generator.Unstructurable](
	ctx context.Context, generator generator.Generator, namespace, name string,
) func(parameters Parameters) ([]client.Object, error) {
	return func(parameters Parameters) ([]client.Object, error) {
		return generator.Generate(ctx, namespace, name, parameters)
	}
}

// Axis has named changes of values, one of which is made in each case of a matrix.
type Axis[Values any] map[string]func(values *Values)

// Matrix returns a case for each combination of one change of each axis. The changes are made in the order of the axes,
// to a copy of base that shares what base points to. The name of a case has the names of the changes, with slashes
// between them.
func Matrix[Values any](base Values, axes ...Axis[Values]) map[string]Values {
	cases := map[string]Values{"": base}
	for _, axis := range axes {
		next := make(map[string]Values, len(cases)*len(axis))
		for name, values := range cases {
			for change, apply := range axis {
				changed := values
				if apply != nil {
					apply(&changed)
				}
				next[path.Join(name, change)] = changed
			}
		}
		cases = next
	}
	return cases
}

// Changes fails the test for each change that is made in no case, and for each case in which it is not known which
// changes are made. The function returns the changes for the values of a case.
func Changes[Values any, T client.Object](
	t testing.TB, cases map[string]Values, changes func(values Values) []edit.Change[T],
) {
	t.Helper()
	made := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		list := changes(cases[name])
		enabled, err := edit.Enabled(list...)
		if err != nil {
			t.Errorf("preview: case %s: %v", name, err)
			continue
		}
		for _, c := range list {
			made[c.Name] = made[c.Name] || slices.Contains(enabled, c.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if !made[name] {
			t.Errorf("preview: the change %q is made in no case", name)
		}
	}
}

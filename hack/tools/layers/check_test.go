package layers

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

const testModule = "example.test/module"

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name string
		// packages are lines such as "a: b c", package a imports b and c; "a test:" and "a xtest:" are its tests,
		// and "a deps:" lists the import paths of all its dependencies.
		packages []string
		want     []string
	}{
		{
			name:     "downwards",
			packages: []string{"stash:", "apis: stash", "generator: apis", "reconcilers: generator stash", "testing: reconcilers"},
		},
		{
			name:     "beside",
			packages: []string{"stash:", "time: stash"},
			want:     []string{"time in layer 1 imports stash beside it"},
		},
		{
			name:     "above",
			packages: []string{"testing:", "reconcilers: testing"},
			want:     []string{"reconcilers in layer 5 imports testing above it, in layer 8"},
		},
		{
			name:     "a test inside the package counts, one outside does not",
			packages: []string{"testing:", "reconcilers test: testing", "apis xtest: testing"},
			want:     []string{"reconcilers in layer 5 imports testing above it, in layer 8"},
		},
		{
			name:     "a package without a layer",
			packages: []string{"util:", "stash/more:", ".:"},
			want: []string{
				"stash/more is a package that has no layer",
				"util is a package that has no layer",
			},
		},
		{
			name:     "another module",
			packages: []string{"reconcilers: generator/helm", "apis xtest: generator/helm"},
			want: []string{
				"apis imports generator/helm, which is another module",
				"reconcilers imports generator/helm, which is another module",
			},
		},
		{
			name:     "internals have the layer of what they import",
			packages: []string{"internal/a:", "internal/b: internal/a stash", "stash: internal/a", "apis: internal/b"},
		},
		{
			name:     "an internal that is not below",
			packages: []string{"stash:", "internal/a: stash", "internal/b: internal/a", "time: internal/b"},
			want:     []string{"time in layer 1 imports internal/b, which by its own imports is not below it"},
		},
		{
			name:     "an internal that is above",
			packages: []string{"generator:", "internal/a: generator", "stash: internal/a"},
			want:     []string{"stash in layer 1 imports internal/a above it, in layer 3"},
		},
		{
			name:     "an internal reaches too high",
			packages: []string{"reconcilers:", "internal/a: reconcilers"},
			want:     []string{"internal/a, which has to be below layer 4, imports reconcilers in layer 5"},
		},
		{
			name: "packages of one unit",
			packages: []string{
				"examples/shop: reconcilers examples/shop/api", "examples/shop/api:", "reconcilers:",
				"internal/a:", "internal/a/atest: internal/a",
				"testing: testing/internal/print", "testing/internal/print: reconcilers",
			},
		},
		{
			name:     "what is internal to a package is in its layer",
			packages: []string{"testing:", "reconcilers/internal/a: testing", "reconcilers:"},
			want:     []string{"reconcilers/internal/a in layer 5 imports testing above it, in layer 8"},
		},
		{
			name:     "one example imports another",
			packages: []string{"examples/shop:", "examples/other: examples/shop"},
			want:     []string{"examples/other in layer 9 imports examples/shop beside it"},
		},
		{
			name:     "component are above reconcilers, and below the harness",
			packages: []string{"component: reconcilers", "testing: component", "reconcilers:"},
		},
		{
			name: "dependencies that are forbidden",
			packages: []string{
				"reconcilers deps: github.com/google/cel-go/cel github.com/google/cel-go/common github.com/google/cel-gopher",
				"component deps: github.com/google/cel-go/cel",
			},
			want: []string{"reconcilers depends on github.com/google/cel-go"},
		},
		{
			name: "dependencies on others than the allowed ones",
			packages: []string{
				"testing/fake deps: k8s.io/api example.test/module/testing/internal/store " +
					"example.test/module/internal/jsonmerge example.test/module/testing example.test/module/duck",
				"testing/preview deps: example.test/module/duck",
			},
			want: []string{
				"testing/fake depends on duck, and may depend on testing/internal and internal/gotype and internal/jsonmerge only",
				"testing/fake depends on testing, and may depend on testing/internal and internal/gotype and internal/jsonmerge only",
			},
		},
		{
			name: "dependencies within the module that are forbidden",
			packages: []string{
				"reconcilers deps: example.test/module/generator example.test/module/generators",
				". deps: example.test/module/component/x github.com/google/cel-go example.test/generator",
				"component deps: example.test/module/generator k8s.io/apiserver/pkg/server",
			},
			want: []string{
				". depends on component",
				". depends on github.com/google/cel-go",
				"component depends on k8s.io/apiserver",
				"reconcilers depends on generator",
			},
		},
		{
			name: "dependencies on others of another module than the allowed ones",
			packages: []string{
				"reconcilers deps: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 " +
					"k8s.io/apiextensions-apiserver/pkg/apihelpers k8s.io/apiextensions-apiserver/pkg/apiserver/schema " +
					"example.test/module/duck",
				"testing deps: k8s.io/apiextensions-apiserver/pkg/apiserver",
			},
			want: []string{
				"reconcilers depends on k8s.io/apiextensions-apiserver/pkg/apiserver/schema, and may depend on " +
					"pkg/apis and pkg/apihelpers only",
			},
		},
		{
			name:     "what is internal to a package may have a layer of its own",
			packages: []string{"testing:", "testing/internal/server: testing"},
			want:     []string{"testing/internal/server, which has to be below layer 4, imports testing in layer 8"},
		},
		{
			name:     "what begins alike is not ours",
			packages: []string{"stash: ../modules/thing"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := espalier.check(testModule, parse(tc.packages))
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(tc.want, "\n\t"))
			}
		})
	}
}

func parse(lines []string) []golist.Package {
	var packages []golist.Package
	for _, line := range lines {
		head, tail, _ := strings.Cut(line, ":")
		name, kind, _ := strings.Cut(head, " ")
		if kind == "deps" {
			packages = append(packages, golist.Package{ImportPath: path(name), Deps: strings.Fields(tail)})
			continue
		}
		imports := []string{"fmt"}
		for _, imported := range strings.Fields(tail) {
			imports = append(imports, path(imported))
		}
		p := golist.Package{ImportPath: path(name)}
		switch kind {
		case "test":
			p.TestImports = imports
		case "xtest":
			p.XTestImports = imports
		default:
			p.Imports = imports
		}
		packages = append(packages, p)
	}
	return packages
}

func path(rel string) string {
	if rel == "." {
		return testModule
	}
	if outside, ok := strings.CutPrefix(rel, "../"); ok {
		return "example.test/" + outside
	}
	return testModule + "/" + rel
}

func TestLayersOfThisRepository(t *testing.T) {
	module, packages, err := golist.Packages(t.Context(), "../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range espalier.check(module, packages) {
		t.Error(violation)
	}
}

// CONTRIBUTING.md has each package of the table in the same layer.
func TestContributingHasTheTable(t *testing.T) {
	content, err := os.ReadFile("../../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	layers := map[string]string{}
	for line := range strings.Lines(string(content)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ", ") {
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "`"), "`")
			layers[name] = strings.TrimPrefix(cells[0], "| ")
		}
	}
	for _, row := range espalier.rows {
		name, want := strings.Replace(row.pattern, "/*", "/…", 1), strconv.Itoa(row.layer)
		switch {
		case row.layer == derived:
			folder, _, _ := strings.Cut(row.pattern, "internal/")
			name, want = folder+"internal/…", "0 to "+strconv.Itoa(highestDerived)
		case name == ".":
			name = "espalier"
		}
		if layers[name] != want {
			t.Errorf("CONTRIBUTING.md has %s in layer %q, want %q", name, layers[name], want)
		}
	}
}

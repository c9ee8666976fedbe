package layers

import "strings"

// table gives each package its layer.
type table struct {
	rows []row
	// forbidden are import paths that a package must not depend on, also not through other packages: those of packages
	// of the module relative to it. A path stands for what is below it, too.
	forbidden map[string][]string
	// only are the packages of the module that a package may depend on, by their paths relative to the module. Others
	// are forbidden. A path stands for what is below it, too.
	only map[string][]string
}

// row is one line of a table. A pattern that ends in "/*" stands for each folder there, with all its subfolders, as a
// unit of its own. Any other unit is one package and what lies in its folder "internal", which the compiler keeps to
// it.
type row struct {
	// pattern is the path of a package relative to the module, or a folder followed by "/*".
	pattern string
	layer   int
}

// derived is the layer of units without a fixed one. Their imports decide their layer.
const derived = -1

// highestDerived is the highest layer that a derived unit may import from.
const highestDerived = 3

var espalier = table{
	rows: []row{
		{"stash", 1},
		{"time", 1},
		{"validation", 1},
		{"tracker", 1},
		{"duck", 1},
		{"feature/gate", 1},
		{"objects", 1},
		{"apis", 2},
		{"edit", 2},
		{"generator", 3},
		{"health", 3},
		// It reads the descriptions of trees, for two packages.
		{"internal/ring", 6},
		{"internal/component/*", derived},
		{"internal/testenv/*", derived},
		{"internal/*", derived},
		{"reconcilers", 5},
		{"component", 6},
		{"feature", 6},
		{".", 7},
		{"manifests", 7},
		{"sharding", 7},
		{"page", 7},
		{"metrics", 7},
		{"tracing", 7},
		{"testing", 8},
		{"testing/fake", 9},
		{"testing/preview", 9},
		{"examples/*", 9},
		{"hack/*", 9},
		{"test/*", 9},
	},
	forbidden: map[string][]string{
		// The engine of faults knows no server, so that what has faults happen can stand on any.
		"internal/fault": {
			"k8s.io/apiserver", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "testing", "reconcilers",
		},
		// Events, and what becomes of an error, are for those who have an object written.
		"internal/write": {
			"k8s.io/client-go/tools/events", "k8s.io/client-go/tools/record", "generator", "reconcilers",
		},
		// They make the binary of each operator larger, and only components need them.
		".":       {"github.com/google/cel-go", "component", "generator", "internal/component"},
		"metrics": {"github.com/google/cel-go", "component", "internal/component"},
		"reconcilers": {
			"github.com/google/cel-go", "github.com/fluxcd/cli-utils", "component", "generator", "internal/component",
		},
	},
	only: map[string][]string{
		// It is for tests of any operator, so it brings nothing but the API server in memory.
		"testing/fake": {"testing/internal", "internal/gotype", "internal/jsonmerge"},
	},
}

// find returns the name and the layer of the unit that a package is in; rel is its path relative to the module.
func (t table) find(rel string) (unit string, layer int, ok bool) {
	for _, r := range t.rows {
		folder, many := strings.CutSuffix(r.pattern, "/*")
		if !many {
			if rel == r.pattern || strings.HasPrefix(rel, r.pattern+"/internal/") {
				return r.pattern, r.layer, true
			}
			continue
		}
		if below, in := strings.CutPrefix(rel, folder+"/"); in {
			first, _, _ := strings.Cut(below, "/")
			return folder + "/" + first, r.layer, true
		}
	}
	return "", 0, false
}

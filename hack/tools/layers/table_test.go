package layers

import "strings"

// table gives each package its layer.
type table struct {
	rows []row
	// forbidden are import paths that a package must not depend on, also not through other packages: those of packages
	// of the module relative to it. A path stands for what is below it, too.
	forbidden map[string][]string
	// only are limits of what a package may depend on, also through other packages.
	only map[string][]limit
}

// limit allows some packages of a module and forbids its others.
type limit struct {
	// of is the path of the module. Empty is the module that is checked.
	of string
	// to are the allowed packages, by their paths relative to the module. A path stands for what is below it, too.
	to []string
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
		// The API server of simulations and clusters, and what it needs. The control plane of tests is such a cluster.
		{"testing/internal/server", derived},
		{"testing/internal/storage", derived},
		{"testing/internal/registry", derived},
		{"testing/internal/store", derived},
		{"testing/internal/crdfile", derived},
		// What a cluster has beside its API server.
		{"testing/internal/controllers", derived},
		{"testing/internal/garbage", derived},
		{"testing/simulation/cluster", 3},
		{"testing", 8},
		{"testing/fake", 9},
		{"testing/preview", 9},
		{"testing/simulation", 9},
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
		".":       {"github.com/google/cel-go", "k8s.io/apiserver", "component", "generator", "internal/component"},
		"metrics": {"github.com/google/cel-go", "component", "internal/component"},
		"reconcilers": {
			"github.com/google/cel-go", "github.com/fluxcd/cli-utils", "k8s.io/apiserver",
			"component", "generator", "internal/component",
		},
		"component": {"k8s.io/apiserver"},
	},
	only: map[string][]limit{
		// No operator has an API server in its binary.
		".":           {definitions},
		"reconcilers": {definitions},
		"component":   {definitions},
		// It is for tests of any operator, so it brings nothing but the API server in memory.
		"testing/fake": {{to: []string{"testing/internal", "internal/gotype", "internal/jsonmerge"}}},
	},
}

// definitions allows the types of custom resource definitions, and what reads their conditions.
var definitions = limit{of: "k8s.io/apiextensions-apiserver", to: []string{"pkg/apis", "pkg/apihelpers"}}

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

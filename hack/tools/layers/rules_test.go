package layers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

// check returns what is wrong with the packages of a module, sorted, a sentence each.
//
// The tests outside a package (package foo_test) may import what is above it: the tests of reconcilers are written with
// the harness. They may not import another module of this repository either, since the main module would have to
// require it.
func (t table) check(module string, packages []golist.Package) []string {
	c := checker{table: t, module: module, packages: map[string]golist.Package{}, layers: map[string]int{}}
	for _, p := range packages {
		c.packages[c.relative(p.ImportPath)] = p
	}
	for rel, p := range c.packages {
		c.checkPackage(rel, p)
	}
	slices.Sort(c.violations)
	return slices.Compact(c.violations)
}

type checker struct {
	table  table
	module string
	// packages are keyed by their paths relative to the module, "." for the package at its root.
	packages map[string]golist.Package
	// layers are the derived layers that are known.
	layers     map[string]int
	violations []string
}

func (c *checker) relative(path string) string {
	if path == c.module {
		return "."
	}
	return strings.TrimPrefix(path, c.module+"/")
}

// ours returns the imported paths that begin with the module's, relative to it.
func (c *checker) ours(imports ...[]string) []string {
	var rels []string
	for _, path := range slices.Concat(imports...) {
		if path == c.module || strings.HasPrefix(path, c.module+"/") {
			rels = append(rels, c.relative(path))
		}
	}
	return rels
}

func (c *checker) report(format string, args ...any) {
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

func (c *checker) checkPackage(rel string, p golist.Package) {
	for _, imported := range c.ours(p.Imports, p.TestImports, p.XTestImports) {
		if _, exists := c.packages[imported]; !exists {
			c.report("%s imports %s, which is another module", rel, imported)
		}
	}
	for _, forbidden := range c.table.forbidden[rel] {
		for _, dependency := range p.Deps {
			if strings.HasPrefix(dependency+"/", forbidden+"/") ||
				strings.HasPrefix(dependency+"/", c.module+"/"+forbidden+"/") {
				c.report("%s depends on %s", rel, forbidden)
			}
		}
	}
	c.checkOnly(rel, p)
	unit, layer, ok := c.table.find(rel)
	if !ok {
		c.report("%s is a package that has no layer", rel)
		return
	}
	for _, imported := range c.ours(p.Imports, p.TestImports) {
		if _, exists := c.packages[imported]; exists {
			c.checkImport(rel, unit, layer, imported)
		}
	}
}

// checkOnly checks a package that may depend on some packages of a module only.
func (c *checker) checkOnly(rel string, p golist.Package) {
	for _, limit := range c.table.only[rel] {
		of := cmp.Or(limit.of, c.module)
		for _, dependency := range p.Deps {
			below, in := strings.CutPrefix(dependency+"/", of+"/")
			allowed := slices.ContainsFunc(limit.to, func(to string) bool { return strings.HasPrefix(below, to+"/") })
			if in && !allowed {
				c.report("%s depends on %s, and may depend on %s only", rel, c.relative(dependency),
					strings.Join(limit.to, " and "))
			}
		}
	}
}

func (c *checker) checkImport(rel, unit string, layer int, imported string) {
	importedUnit, tableLayer, ok := c.table.find(imported)
	if !ok || importedUnit == unit {
		return
	}
	importedLayer := c.layer(imported)
	switch {
	case layer == derived && tableLayer == derived:
		// The compiler rules out cycles, and the layer of this one follows.
	case layer == derived && importedLayer > highestDerived:
		c.report("%s, which has to be below layer %d, imports %s in layer %d",
			rel, highestDerived+1, imported, importedLayer)
	case layer == derived:
	case importedLayer > layer:
		c.report("%s in layer %d imports %s above it, in layer %d", rel, layer, imported, importedLayer)
	case importedLayer == layer && tableLayer == derived:
		c.report("%s in layer %d imports %s, which by its own imports is not below it", rel, layer, imported)
	case importedLayer == layer:
		c.report("%s in layer %d imports %s beside it", rel, layer, imported)
	}
}

// layer returns the layer of the table or, where that has none, the highest one that the package imports from, or 0 if
// it imports nothing of the module. A package may import what has a lower layer in either sense.
func (c *checker) layer(rel string) int {
	_, layer, ok := c.table.find(rel)
	if !ok || layer != derived {
		return layer
	}
	if known, ok := c.layers[rel]; ok {
		return known
	}
	c.layers[rel] = 0 // ends the walk if there is a cycle, which the compiler reports
	highest := 0
	for _, imported := range c.ours(c.packages[rel].Imports) {
		if _, exists := c.packages[imported]; exists {
			highest = max(highest, c.layer(imported))
		}
	}
	c.layers[rel] = highest
	return highest
}

package main

import (
	"fmt"
	"slices"
	"strings"
)

// check returns what is wrong with the packages of a module, sorted, a sentence each.
//
// The tests outside a package (package foo_test) may import what is above it: the tests of reconcilers are written with the
// harness. They may not import a wing either, since the house's go.mod would have to require it.
func (h house) check(module string, packages []goPackage) []string {
	c := checker{house: h, module: module, packages: map[string]goPackage{}, floors: map[string]int{}}
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
	house  house
	module string
	// packages are keyed by their paths relative to the module, "." for the package at its root.
	packages map[string]goPackage
	// floors remembers derived floors.
	floors     map[string]int
	violations []string
}

func (c *checker) relative(path string) string {
	if path == c.module {
		return "."
	}
	return strings.TrimPrefix(path, c.module+"/")
}

// ours returns those of the imported paths that begin with the module's, relative to it.
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

func (c *checker) checkPackage(rel string, p goPackage) {
	for _, imported := range c.ours(p.Imports, p.TestImports, p.XTestImports) {
		if _, exists := c.packages[imported]; !exists {
			c.report("%s imports %s, which is a wing", rel, imported)
		}
	}
	name, floor, ok := c.house.find(rel)
	if !ok {
		c.report("%s is a package that no floor of the house names", rel)
		return
	}
	for _, imported := range c.ours(p.Imports, p.TestImports) {
		if _, exists := c.packages[imported]; exists {
			c.checkImport(rel, name, floor, imported)
		}
	}
}

func (c *checker) checkImport(rel, name string, floor int, imported string) {
	importedName, importedOwnFloor, ok := c.house.find(imported)
	if !ok || importedName == name {
		return
	}
	importedFloor := c.floor(imported)
	switch {
	case floor == derived && importedOwnFloor == derived:
		// The compiler rules out cycles, and the floor of this one follows.
	case floor == derived && importedFloor > highestDerived:
		c.report("%s, at home below floor %d, imports %s on floor %d", rel, highestDerived+1, imported, importedFloor)
	case floor == derived:
	case importedFloor > floor:
		c.report("%s on floor %d imports %s above it, on floor %d", rel, floor, imported, importedFloor)
	case importedFloor == floor && importedOwnFloor == derived:
		c.report("%s on floor %d imports %s, which by its own imports is not below it", rel, floor, imported)
	case importedFloor == floor:
		c.report("%s on floor %d imports %s beside it", rel, floor, imported)
	}
}

// floor is that of the table or, where that has none, the highest one that the package imports from: 0 when it imports
// nothing of the house. A room may import what has a lower floor in either sense.
func (c *checker) floor(rel string) int {
	_, floor, ok := c.house.find(rel)
	if !ok || floor != derived {
		return floor
	}
	if known, ok := c.floors[rel]; ok {
		return known
	}
	c.floors[rel] = 0 // ends the walk should there be a cycle, which the compiler complains about
	highest := 0
	for _, imported := range c.ours(c.packages[rel].Imports) {
		if _, exists := c.packages[imported]; exists {
			highest = max(highest, c.floor(imported))
		}
	}
	c.floors[rel] = highest
	return highest
}

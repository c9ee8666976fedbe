package main

import "strings"

// house maps the rooms to their floors. A pattern that ends in "/*" stands for each folder there, with all its
// subfolders, as a room of its own. Any other room is one package and what lies in its folder "internal", which the
// compiler keeps to it.
type house []room

type room struct {
	// pattern is the path of a package relative to the module, or a folder followed by "/*".
	pattern string
	floor   int
}

// derived is the floor of rooms that have none of their own: they sit on the floor their imports put them on.
const derived = -1

// highestDerived is the highest floor whose rooms such a room may import.
const highestDerived = 3

// espalier is the table of section 2 of the design.
var espalier = house{
	{"stash", 1},
	{"time", 1},
	{"validation", 1},
	{"tracker", 1},
	{"duck", 1},
	{"apis", 2},
	{"component", 3},
	{"internal/component/*", derived},
	{"internal/testenv/*", derived},
	{"internal/*", derived},
	{"reconcilers", 5},
	{"testing", 6},
	{"examples/*", 7},
	{"cmd/*", 7},
}

// find returns the name and the floor of the room that a package is in; rel is its path relative to the module.
func (h house) find(rel string) (name string, floor int, ok bool) {
	for _, r := range h {
		folder, many := strings.CutSuffix(r.pattern, "/*")
		if !many {
			if rel == r.pattern || strings.HasPrefix(rel, r.pattern+"/internal/") {
				return r.pattern, r.floor, true
			}
			continue
		}
		if below, in := strings.CutPrefix(rel, folder+"/"); in {
			first, _, _ := strings.Cut(below, "/")
			return folder + "/" + first, r.floor, true
		}
	}
	return "", 0, false
}

package main

import "strings"

// module is the path of the module whose packages moved.
const module = "github.com/espalier-dev/espalier"

// move is one package that moved.
type move struct {
	// from and to are paths relative to the module, and so are those of all packages below, unless these have a move of
	// their own.
	from, to string
	// names are the exported names that changed, old to new. All others stay.
	names map[string]string
	// fields are the fields of literals that changed, by the old name of their type.
	fields map[string]map[string]string
	// elements are the types of the elements of maps and slices with a name, both by their old names.
	elements map[string]string
}

// moves are those since commit e876758d.
var moves = []move{
	{from: "component", to: "generator"},
	{from: "components", to: "component"},
	{from: "generators", to: "generator"},
	{from: "lifecycle", to: "feature"},
	{from: "feature", to: "feature/gate"},
	{
		from: "mutation", to: "edit",
		names:  map[string]string{"Mutation": "Change"},
		fields: map[string]map[string]string{"Mutation": {"Mutate": "Edit"}},
	},
	{
		from: "suspension", to: "health",
		names:    map[string]string{"Rule": "Suspension", "Rules": "Suspensions"},
		fields:   map[string]map[string]string{"Rule": {"AtRest": "Suspended"}},
		elements: map[string]string{"Rules": "Rule"},
	},
	{from: "generate", to: "manifests"},
	{from: "testing/preview", to: "testing/preview", names: map[string]string{"Mutations": "Changes"}},
	{from: "simulation", to: "testing/simulation"},
	{
		from: "simulation/faults", to: "testing/simulation",
		names: map[string]string{"Sort": "FaultKind", "FromSeed": "PlanFromSeed", "Options": "PlanOptions"},
		fields: map[string]map[string]string{
			"Fault": {"Sort": "Kind"}, "Chance": {"Sort": "Kind"}, "Options": {"Sorts": "Kinds"},
		},
	},
}

// find returns the move of a package, by its import path, and the path that the package has now.
func find(path string) (m move, now string, ok bool) {
	relative, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return move{}, "", false
	}
	longest := -1
	for _, candidate := range moves {
		below, in := strings.CutPrefix(relative+"/", candidate.from+"/")
		if in && len(candidate.from) > longest {
			longest = len(candidate.from)
			m, now, ok = candidate, strings.TrimSuffix(module+"/"+candidate.to+"/"+below, "/"), true
		}
	}
	return m, now, ok
}

// base is the last element of a path, which is the name of each of these packages.
func base(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}

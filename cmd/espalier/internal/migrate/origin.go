package migrate

import (
	"path"
	"strings"
)

// origin is a module that code comes from.
type origin struct {
	module string
	// target returns the import path of a package's counterpart, by its path relative to the module. It is empty if the
	// package has none.
	target func(relative string) string
	// names have the symbols with another name or another package, by the names that symbols gives them. A symbol that
	// is not there keeps its name, in the package that target gives, or stays as it is if the origin is partial.
	names map[string]symbol
	// partial is true if only what names has moves.
	partial bool
	// by hand says what to use instead of a symbol that stays.
	byHand map[string]string
	// differences are the rows of the documentation about what behaves differently.
	differences []difference
	// typed is true if names change, so that a file without types cannot be moved.
	typed bool
}

// symbol is a name of a package. The package is empty if it is the one of the origin's target.
type symbol struct{ pkg, name string }

// runtime is reconciler.io/runtime. Names and signatures are the same here.
var runtime = &origin{
	module: "reconciler.io/runtime",
	target: func(relative string) string {
		switch relative {
		case "apis", "duck", "reconcilers", "stash", "testing", "time", "tracker", "validation":
			return Module + "/" + relative
		}
		return ""
	},
	differences: runtimeDifferences,
}

// origins are all modules that code may come from.
var origins = []*origin{runtime, componentEngine}

// originOf returns the origin of a package.
func originOf(importPath string) (*origin, bool) {
	for _, o := range origins {
		if importPath == o.module || strings.HasPrefix(importPath, o.module+"/") {
			return o, true
		}
	}
	return nil, false
}

// relative is the path of one of the origin's packages in its module.
func (o *origin) relative(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, o.module), "/")
}

// find returns where a symbol of a package is now.
func (o *origin) find(importPath, name string) (symbol, bool) {
	relative := o.relative(importPath)
	now, ok := o.names[relative+"."+name]
	if !ok {
		if o.partial {
			return symbol{}, false
		}
		now.name = name
	}
	if now.pkg == "" {
		now.pkg = o.target(relative)
	}
	return now, now.pkg != ""
}

// packageName is the name of a package of Espalier.
func packageName(importPath string) string { return path.Base(importPath) }

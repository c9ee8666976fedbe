package literal

import (
	"fmt"
	"go/token"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// module is the import path of this module.
var module = strings.TrimSuffix(reflect.TypeFor[Writer]().PkgPath(), "/testing/internal/literal")

const controllerRuntime = "sigs.k8s.io/controller-runtime/"

var versionName = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// nameOf returns the name of a type as written in the package of the expression.
func (w *Writer) nameOf(t reflect.Type) string {
	if t.Name() == "" {
		switch t.Kind() {
		case reflect.Pointer:
			return "*" + w.nameOf(t.Elem())
		case reflect.Slice:
			return "[]" + w.nameOf(t.Elem())
		case reflect.Array:
			return fmt.Sprintf("[%d]%s", t.Len(), w.nameOf(t.Elem()))
		case reflect.Map:
			return "map[" + w.nameOf(t.Key()) + "]" + w.nameOf(t.Elem())
		case reflect.Interface:
			if t.NumMethod() == 0 {
				return "any"
			}
		}
		return t.String()
	}
	if t == reflect.TypeFor[byte]() {
		return "byte"
	}
	if t.PkgPath() == "" {
		return t.Name()
	}
	name, arguments, generic := strings.Cut(t.Name(), "[")
	importPath, pkg := exporter(t.PkgPath(), packageName(t), name)
	if importPath != w.Package && !token.IsExported(name) {
		w.problems = append(w.problems, fmt.Sprintf("the type %s is not exported", t))
	}
	if generic {
		name += "[" + w.argumentsOf(arguments)
	}
	return w.qualified(importPath, pkg, name)
}

// argumentsOf shortens the type arguments of a generic type, which reflect gives with full import paths.
func (w *Writer) argumentsOf(arguments string) string {
	return qualifiedName.ReplaceAllStringFunc(arguments, func(name string) string {
		i := strings.LastIndex(name, ".")
		importPath, pkg := exporter(name[:i], path.Base(name[:i]), name[i+1:])
		return w.qualified(importPath, pkg, name[i+1:])
	})
}

var qualifiedName = regexp.MustCompile(`[\w./~-]+\.\w+`)

// packageName returns the name in the package clause of the package of t.
func packageName(t reflect.Type) string {
	pkg, _, _ := strings.Cut(t.String(), ".")
	return strings.TrimLeft(pkg, "*[]")
}

// exporter returns the package by which tests usually name a type that another package defines.
func exporter(importPath, pkg, name string) (string, string) {
	switch {
	case strings.HasPrefix(importPath, controllerRuntime) && pkg == "cacheapi":
		return controllerRuntime + "pkg/client", "client"
	case importPath == controllerRuntime+"pkg/reconcile" && (name == "Result" || name == "Request"):
		return module + "/reconcilers", "reconcilers"
	}
	return importPath, pkg
}

// in qualifies a name of a well-known package, whose name is the last element of its import path or has a usual form.
func (w *Writer) in(importPath, name string) string {
	return w.qualified(importPath, path.Base(importPath), name)
}

// qualified returns a name as written in the package of the expression: with the import name of its package, or alone
// in the package itself.
func (w *Writer) qualified(importPath, pkg, name string) string {
	if importPath == w.Package {
		return name
	}
	as, ok := w.Names[importPath]
	switch {
	case !ok || as == "_":
		as = w.importName(importPath, pkg)
	case as == "":
		as = pkg
	}
	if as == "." {
		return name
	}
	if w.imports == nil {
		w.imports = map[string]string{}
	}
	w.imports[as] = importPath
	return as + "." + name
}

// importName returns the usual import name of a package, changed if something else has that name.
func (w *Writer) importName(importPath, pkg string) string {
	usual := usualName(importPath, pkg)
	as := usual
	for n := 2; w.taken(as, importPath); n++ {
		as = fmt.Sprintf("%s%d", usual, n)
	}
	return as
}

func (w *Writer) taken(as, importPath string) bool {
	if other, ok := w.imports[as]; ok && other != importPath {
		return true
	}
	for otherPath, name := range w.Names {
		if name == as || name == "" && path.Base(otherPath) == as {
			return true
		}
	}
	return slices.Contains(w.Taken, as)
}

// usualName returns the usual import name of a package, by its path and its own name.
func usualName(importPath, pkg string) string {
	switch {
	case importPath == module+"/testing":
		return "rtesting"
	case importPath == module+"/time":
		return "rtime"
	case !versionName.MatchString(pkg):
		return pkg
	}
	group := path.Base(path.Dir(importPath))
	group, _, _ = strings.Cut(group, ".")
	group = strings.ReplaceAll(group, "-", "")
	if strings.Contains(importPath, "/applyconfigurations/") {
		return group + pkg + "ac"
	}
	return group + pkg
}

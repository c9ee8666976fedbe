package literal

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"
)

var versionName = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// nameOf returns the name of a type as written in another package.
func nameOf(t reflect.Type) string {
	if t.Name() == "" {
		switch t.Kind() {
		case reflect.Pointer:
			return "*" + nameOf(t.Elem())
		case reflect.Slice:
			return "[]" + nameOf(t.Elem())
		case reflect.Array:
			return fmt.Sprintf("[%d]%s", t.Len(), nameOf(t.Elem()))
		case reflect.Map:
			return "map[" + nameOf(t.Key()) + "]" + nameOf(t.Elem())
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
	if generic {
		name += "[" + argumentsOf(arguments)
	}
	return alias(t) + "." + name
}

// argumentsOf shortens the type arguments of a generic type, which reflect gives with full import paths.
func argumentsOf(arguments string) string {
	return qualified.ReplaceAllStringFunc(arguments, func(name string) string {
		i := strings.LastIndex(name, ".")
		return aliasOf(name[:i], path.Base(name[:i])) + name[i:]
	})
}

var qualified = regexp.MustCompile(`[\w./~-]+\.\w+`)

// alias returns the usual import name of the package of t.
func alias(t reflect.Type) string {
	pkg, _, _ := strings.Cut(t.String(), ".")
	return aliasOf(t.PkgPath(), strings.TrimLeft(pkg, "*[]"))
}

// aliasOf is alias for a package by its path and its own name.
func aliasOf(importPath, name string) string {
	switch {
	case strings.HasSuffix(importPath, "espalier/testing"):
		return "rtesting"
	case strings.HasSuffix(importPath, "espalier/time"):
		return "rtime"
	case strings.HasPrefix(importPath, "sigs.k8s.io/controller-runtime/") && name == "cacheapi":
		// Where controller-runtime defines what its package client exports.
		return "client"
	case !versionName.MatchString(name):
		return name
	}
	group := path.Base(path.Dir(importPath))
	group, _, _ = strings.Cut(group, ".")
	group = strings.ReplaceAll(group, "-", "")
	if strings.Contains(importPath, "/applyconfigurations/") {
		return group + name + "ac"
	}
	return group + name
}

package migrate

import (
	"go/types"
	"strings"
)

// symbols are the exported names of the packages of an origin: "reconcilers.Config" for a name of a package, with the
// path of the package in its module, and "reconcilers.Config.Tracker" for a field or a method of a type.
type symbols struct {
	of   *origin
	seen map[*types.Package]bool
	name map[types.Object]string
}

// newSymbols returns the names of the origin that a package may use.
func newSymbols(of *origin, user *types.Package) *symbols {
	s := &symbols{of: of, seen: map[*types.Package]bool{}, name: map[types.Object]string{}}
	for _, pkg := range user.Imports() {
		s.add(pkg)
	}
	return s
}

// find returns the name of an object, if its package is one of the origin.
func (s *symbols) find(object types.Object) (string, bool) {
	if object == nil || object.Pkg() == nil {
		return "", false
	}
	switch o := object.(type) {
	case *types.Var:
		object = o.Origin()
	case *types.Func:
		object = o.Origin()
	}
	if _, ok := s.name[object]; !ok {
		s.add(object.Pkg())
	}
	name, ok := s.name[object]
	return name, ok
}

// add adds the names of a package.
func (s *symbols) add(pkg *types.Package) {
	if of, ok := originOf(pkg.Path()); !ok || of != s.of || s.seen[pkg] || strings.Contains(pkg.Path(), "/internal/") {
		return
	}
	s.seen[pkg] = true
	prefix := s.of.relative(pkg.Path()) + "."
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		s.name[object] = prefix + name
		if _, ok := object.(*types.TypeName); ok {
			s.addMembers(object.Type(), prefix+name)
		}
	}
}

// addMembers adds the fields and methods of a type.
func (s *symbols) addMembers(t types.Type, prefix string) {
	named, _ := types.Unalias(t).(*types.Named)
	if named == nil {
		return
	}
	named = named.Origin()
	s.addMember(named.Obj(), prefix)
	for method := range named.Methods() {
		s.addMember(method, prefix+"."+method.Name())
	}
	switch underlying := named.Underlying().(type) {
	case *types.Struct:
		for field := range underlying.Fields() {
			s.addMember(field, prefix+"."+field.Name())
		}
	case *types.Interface:
		for method := range underlying.ExplicitMethods() {
			s.addMember(method, prefix+"."+method.Name())
		}
	}
}

// addMember adds a member of a type, unless the type is an alias for one of another module.
func (s *symbols) addMember(member types.Object, name string) {
	if member.Pkg() == nil {
		return
	}
	if of, ok := originOf(member.Pkg().Path()); ok && of == s.of && s.name[member] == "" {
		s.name[member] = name
	}
}

package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

const (
	module        = "github.com/espalier-dev/espalier"
	clientPackage = "sigs.k8s.io/controller-runtime/pkg/client"
)

// program is a package in static single assignment form, with what the analyzers look up in it.
type program struct {
	*ssa.Program
	functions []*ssa.Function
	// stored are the values that the package stores in a global variable or in a field.
	stored map[any][]ssa.Value
	// calls are the calls of a function of the package, by the function.
	calls map[*ssa.Function][]ssa.CallInstruction
	// closures are the places where a function literal is evaluated.
	closures map[*ssa.Function][]*ssa.MakeClosure
	// handed are the functions that the package hands over to Espalier.
	handed []handedOver
}

// handedOver is a function that Espalier calls. Its role is the name of the field that has it, of the function that got
// it, or of the method that it is.
type handedOver struct {
	function *ssa.Function
	role     string
	// by is the call that hands the function over, or nil.
	by *ssa.Call
}

var programs = &analysis.Analyzer{
	Name:       "espalierprogram",
	Doc:        "find the functions that a package hands over to Espalier",
	ResultType: reflect.TypeFor[*program](),
	Run:        newProgram,
}

func programOf(pass *analysis.Pass) *program { return pass.ResultOf[programs].(*program) }

func newProgram(pass *analysis.Pass) (any, error) {
	p := &program{
		stored:   map[any][]ssa.Value{},
		calls:    map[*ssa.Function][]ssa.CallInstruction{},
		closures: map[*ssa.Function][]*ssa.MakeClosure{},
	}
	if !usesEspalier(pass.Pkg) {
		return p, nil
	}
	// The analyzer buildssa would have all dependencies analyzed before, to know which functions do not return.
	p.Program = ssa.NewProgram(pass.Fset, 0)
	for _, imported := range pass.Pkg.Imports() {
		p.CreatePackage(imported, nil, nil, true)
	}
	built := p.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	built.Build()
	p.addFunction(built.Func("init"))
	for _, file := range pass.Files {
		for _, declaration := range file.Decls {
			if declared, ok := declaration.(*ast.FuncDecl); ok {
				p.addFunction(p.FuncValue(pass.TypesInfo.Defs[declared.Name].(*types.Func)))
			}
		}
	}
	p.each(p.index)
	p.each(p.findHanded)
	for _, f := range p.functions {
		if isNode(f) || isGenerator(f) {
			p.handed = append(p.handed, handedOver{function: f, role: f.Name()})
		}
	}
	return p, nil
}

// usesEspalier reports whether the package imports one of Espalier.
func usesEspalier(pkg *types.Package) bool {
	return slices.ContainsFunc(pkg.Imports(), func(imported *types.Package) bool {
		return imported.Path() == module || strings.HasPrefix(imported.Path(), module+"/")
	})
}

// addFunction adds the function, and the literals in it.
func (p *program) addFunction(f *ssa.Function) {
	p.functions = append(p.functions, f)
	for _, literal := range f.AnonFuncs {
		p.addFunction(literal)
	}
}

func (p *program) each(do func(instruction ssa.Instruction)) {
	for _, f := range p.functions {
		eachOf(f, do)
	}
}

func eachOf(f *ssa.Function, do func(instruction ssa.Instruction)) {
	for _, block := range f.Blocks {
		for _, instruction := range block.Instrs {
			do(instruction)
		}
	}
}

func (p *program) index(instruction ssa.Instruction) {
	switch i := instruction.(type) {
	case *ssa.Store:
		switch address := i.Addr.(type) {
		case *ssa.Global:
			p.stored[address] = append(p.stored[address], i.Val)
		case *ssa.FieldAddr:
			field := fieldOf(address)
			p.stored[field] = append(p.stored[field], i.Val)
		}
	case *ssa.MakeClosure:
		f := i.Fn.(*ssa.Function)
		p.closures[f] = append(p.closures[f], i)
	}
	if call, ok := instruction.(ssa.CallInstruction); ok {
		if f := p.body(call.Common().StaticCallee()); f != nil {
			p.calls[f] = append(p.calls[f], call)
		}
	}
}

func (p *program) findHanded(instruction ssa.Instruction) {
	switch i := instruction.(type) {
	case *ssa.Store:
		if address, ok := i.Addr.(*ssa.FieldAddr); ok && isOurs(fieldOf(address)) {
			p.handOver(i.Val, fieldOf(address).Name(), nil)
		}
	case *ssa.Call:
		f := i.Call.StaticCallee()
		if f == nil || !isOurs(f.Object()) {
			return
		}
		for _, argument := range i.Call.Args {
			p.handOver(argument, f.Object().Name(), i)
		}
	case *ssa.ChangeType:
		if named := namedOf(i.Type()); named != nil && isOurs(named.Obj()) {
			p.handOver(i.X, named.Obj().Name(), nil)
		}
	}
}

func (p *program) handOver(value ssa.Value, role string, by *ssa.Call) {
	if _, ok := value.Type().Underlying().(*types.Signature); !ok {
		return
	}
	for _, f := range p.resolve(value) {
		p.handed = append(p.handed, handedOver{f, role, by})
	}
}

// reached are the functions of the package that the function calls, itself included, and the literals in them.
func (p *program) reached(f *ssa.Function) []*ssa.Function {
	found := []*ssa.Function{}
	seen := map[*ssa.Function]bool{}
	var visit func(f *ssa.Function)
	visit = func(f *ssa.Function) {
		if f == nil || seen[f] {
			return
		}
		seen[f] = true
		found = append(found, f)
		for _, literal := range f.AnonFuncs {
			visit(literal)
		}
		eachOf(f, func(instruction ssa.Instruction) {
			if call, ok := instruction.(ssa.CallInstruction); ok && !call.Common().IsInvoke() {
				for _, callee := range p.resolve(call.Common().Value) {
					visit(callee)
				}
			}
		})
	}
	visit(f)
	return found
}

// parameters are the parameters of a function that Espalier calls: those from the context on, or all.
func parameters(f *ssa.Function) []*ssa.Parameter {
	for i, parameter := range f.Params {
		if isContext(parameter.Type()) {
			return f.Params[i:]
		}
	}
	if f.Signature.Recv() != nil && len(f.Params) > 0 {
		return f.Params[1:]
	}
	return f.Params
}

// resourceOf is the resource of a request that the function gets after the context, or after a client too, or nil.
func resourceOf(f *ssa.Function) *ssa.Parameter {
	got := parameters(f)
	if len(got) < 2 || !isContext(got[0].Type()) {
		return nil
	}
	if isNamed(got[1].Type(), clientPackage, "Client") && len(got) > 2 {
		got = got[1:]
	}
	if !isObject(got[1].Type()) {
		return nil
	}
	return got[1]
}

// isNode reports whether the function is the method Reconcile of a node.
func isNode(f *ssa.Function) bool {
	return f.Name() == "Reconcile" && f.Signature.Recv() != nil && resourceOf(f) != nil &&
		f.Signature.Results().Len() == 2
}

// isGenerator reports whether the function is the method Generate of a generator.
func isGenerator(f *ssa.Function) bool {
	if f.Name() != "Generate" || f.Signature.Recv() == nil || f.Signature.Params().Len() != 4 {
		return false
	}
	named := namedOf(f.Signature.Params().At(3).Type())
	return named != nil && isOurs(named.Obj()) && named.Obj().Name() == "Unstructurable"
}

// isOurs reports whether the object is one of Espalier, but for its packages for tests.
func isOurs(object types.Object) bool {
	if object == nil || object.Pkg() == nil {
		return false
	}
	path, ok := strings.CutPrefix(object.Pkg().Path(), module)
	return ok && (path == "" || path[0] == '/') && !strings.HasPrefix(path, "/testing") &&
		!strings.HasPrefix(path, "/examples") && !strings.HasPrefix(path, "/cmd")
}

func isContext(t types.Type) bool { return isNamed(t, "context", "Context") }

// isObject reports whether the type is an API object, as client.Object is.
func isObject(t types.Type) bool {
	for _, method := range []string{"GetObjectKind", "DeepCopyObject", "GetResourceVersion"} {
		if found, _, _ := types.LookupFieldOrMethod(t, false, nil, method); found == nil {
			return false
		}
	}
	return true
}

func isNamed(t types.Type, path, name string) bool {
	named := namedOf(t)
	return named != nil && named.Obj().Name() == name && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == path
}

// namedOf is the named type of t, or of what t points to.
func namedOf(t types.Type) *types.Named {
	t = types.Unalias(t)
	if pointer, ok := t.(*types.Pointer); ok {
		t = types.Unalias(pointer.Elem())
	}
	named, _ := t.(*types.Named)
	return named
}

// calleeOf is the function that the call calls, or the method of an interface, or nil.
func calleeOf(call ssa.CallInstruction) types.Object {
	if call.Common().IsInvoke() {
		return call.Common().Method
	}
	if f := call.Common().StaticCallee(); f != nil {
		return f.Object()
	}
	return nil
}

// fieldOf is the field that the instruction takes the address of.
func fieldOf(address *ssa.FieldAddr) *types.Var {
	struc := address.X.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct)
	return struc.Field(address.Field).Origin()
}

// refersTo returns the instructions that use the value.
func refersTo(v ssa.Value) []ssa.Instruction {
	if v.Referrers() == nil {
		return nil
	}
	return *v.Referrers()
}

// positionOf is where the instruction is, or the next thing that it is made of.
func positionOf(instruction ssa.Instruction) token.Pos {
	if instruction.Pos().IsValid() {
		return instruction.Pos()
	}
	for _, operand := range instruction.Operands(nil) {
		if *operand != nil && (*operand).Pos().IsValid() {
			return (*operand).Pos()
		}
	}
	return instruction.Parent().Pos()
}

// isReference reports whether the value refers to what others may have as well.
func isReference(v ssa.Value) bool {
	switch v.Type().Underlying().(type) {
	case *types.Pointer, *types.Map, *types.Slice, *types.Interface:
		return true
	}
	return false
}

// switchesOf are the methods that the package calls on the node that the call returns, by their names. It has all
// calls in which the node, or what such a method returns, gets.
func (p *program) switchesOf(call *ssa.Call) map[string]*ssa.Call {
	found := map[string]*ssa.Call{}
	if call == nil {
		return found
	}
	p.flow(call, func(_ ssa.Value, by ssa.Instruction) []ssa.Value {
		call, ok := by.(*ssa.Call)
		if !ok || !isOurs(calleeOf(call)) || namedOf(call.Type()) == nil || !isOurs(namedOf(call.Type()).Obj()) {
			return nil
		}
		found[calleeOf(call).Name()] = call
		return []ssa.Value{call}
	})
	return found
}

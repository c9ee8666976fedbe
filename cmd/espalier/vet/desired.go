package vet

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Desired finds desired functions that return another object each time.
var Desired = &analysis.Analyzer{
	Name: "desired",
	Doc: "report a desired function that depends on the time, on randomness, or on the order of a map\n\n" +
		"An object that is another one in each request is written again and again, and wakes its resource\n" +
		"each time. A function that first looks at what is there, and makes a value only if it is missing, is\n" +
		"not reported; nor is a time that is only compared or logged, nor a random value of a node with\n" +
		"CreateOnly.",
	Requires: []*analysis.Analyzer{programs},
	Run:      runDesired,
}

// desiredRoles are the roles of functions that return objects as they should be.
var desiredRoles = []string{
	"DesiredChild", "DesiredChildren", "DesiredResource", "Owns", "OwnsEach", "GeneratorFunc", "Generate",
}

func runDesired(pass *analysis.Pass) (any, error) {
	p, r := programOf(pass), newReporter(pass)
	for _, desired := range p.handed {
		if !slices.Contains(desiredRoles, desired.role) {
			continue
		}
		switches := p.switchesOf(desired.by)
		if switches["ReadOnly"] != nil || switches["CreateOnly"] != nil || switches["Absent"] != nil {
			continue
		}
		if what := unstable(desired.function); what != "" && desired.by != nil {
			r.add(desired.by.Pos(), "%s returns %s each time: use CreateOnly", desired.function.Name(), what)
		}
		reached := p.reached(desired.function)
		looks := slices.ContainsFunc(reached, looksAtCluster)
		for _, f := range reached {
			p.reportUnstable(r, desired, f, looks)
			reportMapOrder(r, pass, f, reached)
		}
	}
	r.report()
	return nil, nil
}

// reportUnstable reports the values of f that are others each time, and get into what is desired. Looks is true if the
// desired function looks at the cluster, so that it may make a value only if it is missing.
func (p *program) reportUnstable(r *reporter, desired handedOver, f *ssa.Function, looks bool) {
	eachOf(f, func(instruction ssa.Instruction) {
		value, what := p.unstableValue(instruction)
		if what == "" || looks && !runsAlways(instruction.Block()) || !p.matters(value, what, map[ssa.Value]bool{}) {
			return
		}
		r.add(positionOf(instruction),
			"the function given to %s must return the same each time, and depends on %s", desired.role, what)
	})
}

// unstableValue returns the value of an instruction that is another one each time, and what it is.
func (p *program) unstableValue(instruction ssa.Instruction) (value ssa.Value, what string) {
	switch i := instruction.(type) {
	case *ssa.Call:
		if i.Call.IsInvoke() {
			if i.Call.Method.Name() == "Now" && isNamed(i.Type(), "time", "Time") {
				return i, theTime
			}
			return nil, ""
		}
		for _, f := range p.resolve(i.Call.Value) {
			if what := unstable(f); what != "" {
				return i, what
			}
		}
	case *ssa.UnOp:
		if global, ok := i.X.(*ssa.Global); ok && global.String() == "crypto/rand.Reader" {
			return i, aRandomValue
		}
	}
	return nil, ""
}

const (
	theTime      = "the time"
	aRandomValue = "a random value"
)

// unstableFunctions are functions that return another value each time, by package. Without names, all functions do
// but those that begin with New or Seed.
var unstableFunctions = map[string]struct {
	what  string
	names []string
}{
	"time":                                 {theTime, []string{"Now", "Since", "Until"}},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {theTime, []string{"Now", "NowMicro"}},
	module + "/time":                       {theTime, []string{"RetrieveNow"}},
	module + "/objects":                    {aRandomValue, []string{"GeneratedSecret"}},
	"math/rand":                            {aRandomValue, nil},
	"math/rand/v2":                         {aRandomValue, nil},
	"crypto/rand":                          {aRandomValue, nil},
	"k8s.io/apimachinery/pkg/util/rand": {aRandomValue,
		[]string{"Int", "Intn", "IntnRange", "Int63nRange", "Perm", "String"}},
	"k8s.io/apimachinery/pkg/util/uuid": {aRandomValue, []string{"NewUUID"}},
	"github.com/google/uuid": {aRandomValue,
		[]string{"New", "NewString", "NewRandom", "NewUUID", "NewV6", "NewV7"}},
	"golang.org/x/crypto/bcrypt": {aRandomValue, []string{"GenerateFromPassword"}},
}

// unstable says what the function returns if that is another value each time, else "".
func unstable(f *ssa.Function) string {
	object := f.Object()
	if object == nil || object.Pkg() == nil || f.Signature.Recv() != nil {
		return ""
	}
	listed := unstableFunctions[object.Pkg().Path()]
	name := object.Name()
	if slices.Contains(listed.names, name) ||
		listed.names == nil && !strings.HasPrefix(name, "New") && !strings.HasPrefix(name, "Seed") {
		return listed.what
	}
	return ""
}

// matters reports whether the value gets into what a function returns or changes, and is not only logged. A time that
// is only compared does not matter: what is desired then changes once.
func (p *program) matters(v ssa.Value, what string, seen map[ssa.Value]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	return slices.ContainsFunc(refersTo(v), func(user ssa.Instruction) bool {
		return p.mattersFor(v, user, what, seen)
	})
}

func (p *program) mattersFor(v ssa.Value, user ssa.Instruction, what string, seen map[ssa.Value]bool) bool {
	switch user := user.(type) {
	case *ssa.Store:
		return user.Val == v && p.mattersAt(user.Addr, what, seen)
	case *ssa.MapUpdate, *ssa.Send:
		return true
	case *ssa.If:
		return what == aRandomValue
	case *ssa.Return:
		calls := p.calls[user.Parent()]
		return len(calls) == 0 || slices.ContainsFunc(calls, func(call ssa.CallInstruction) bool {
			return call.Value() != nil && p.matters(call.Value(), what, seen)
		})
	case *ssa.BinOp:
		return (what == aRandomValue || !isComparison(user.Op)) && p.matters(user, what, seen)
	case ssa.CallInstruction:
		return p.mattersInCall(v, user, what, seen)
	case ssa.Value:
		return p.matters(user, what, seen)
	}
	return false
}

// mattersAt reports whether what is stored at the address matters.
func (p *program) mattersAt(address ssa.Value, what string, seen map[ssa.Value]bool) bool {
	made := madeAt(address)
	return made == nil || p.matters(made, what, seen)
}

func (p *program) mattersInCall(v ssa.Value, call ssa.CallInstruction, what string, seen map[ssa.Value]bool) bool {
	common := call.Common()
	callee := common.StaticCallee()
	if isLogged(call) {
		return false
	}
	result := call.Value()
	if callee == nil {
		return result == nil || p.matters(result, what, seen)
	}
	if f := p.body(callee); len(f.Blocks) > 0 {
		for i, argument := range common.Args {
			if argument == v && i < len(f.Params) && p.matters(f.Params[i], what, seen) {
				return true
			}
		}
		return false
	}
	comparisons := []string{"After", "Before", "Equal", "Compare", "IsZero"}
	if what == theTime && slices.Contains(comparisons, callee.Name()) {
		return false
	}
	if result == nil || callee.Signature.Results().Len() == 0 {
		return true
	}
	return p.matters(result, what, seen)
}

// isLogged reports whether the call writes a log, a metric or an event.
func isLogged(call ssa.CallInstruction) bool {
	object := calleeOf(call)
	if object == nil || object.Pkg() == nil {
		return false
	}
	path := object.Pkg().Path()
	return path == "fmt" && strings.HasPrefix(object.Name(), "Print") || path == "log" || path == "context" ||
		strings.HasPrefix(path, "log/") || strings.Contains(path, "logr") || strings.Contains(path, "klog") ||
		strings.Contains(path, "prometheus") || strings.Contains(path, "opentelemetry") ||
		strings.HasSuffix(path, "tools/record") || strings.HasSuffix(path, "tools/events")
}

func isComparison(op token.Token) bool {
	return op == token.EQL || op == token.NEQ || op == token.LSS || op == token.LEQ || op == token.GTR ||
		op == token.GEQ
}

// looksAtCluster reports whether the function reads objects, the status of a resource, or what earlier nodes stored.
func looksAtCluster(f *ssa.Function) (looks bool) {
	eachOf(f, func(instruction ssa.Instruction) {
		switch i := instruction.(type) {
		case *ssa.FieldAddr:
			looks = looks || fieldOf(i).Name() == "Status"
		case *ssa.Call:
			callee := calleeOf(i)
			if callee == nil {
				return
			}
			name := callee.Name()
			looks = looks || name == "Get" || name == "List" || strings.HasPrefix(name, "TrackAnd") ||
				strings.HasPrefix(name, "Retrieve") && name != "RetrieveNow"
		}
	})
	return looks
}

// runsAlways reports whether each call of the function that returns no error runs the block.
func runsAlways(block *ssa.BasicBlock) bool {
	seen := map[*ssa.BasicBlock]bool{block: true}
	var passes func(at *ssa.BasicBlock) bool
	passes = func(at *ssa.BasicBlock) bool {
		if seen[at] {
			return false
		}
		seen[at] = true
		if end, ok := at.Instrs[len(at.Instrs)-1].(*ssa.Return); ok {
			return returnsNoError(end)
		}
		return slices.ContainsFunc(at.Succs, passes)
	}
	return !passes(block.Parent().Blocks[0])
}

func returnsNoError(end *ssa.Return) bool {
	if len(end.Results) == 0 {
		return true
	}
	last := end.Results[len(end.Results)-1]
	if !types.Identical(last.Type(), types.Universe.Lookup("error").Type()) {
		return true
	}
	constant, ok := last.(*ssa.Const)
	return ok && constant.IsNil()
}

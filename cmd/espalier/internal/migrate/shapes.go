package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// The finders of this file look for the shape of code.

const (
	resultType = "sigs.k8s.io/controller-runtime/pkg/reconcile.Result"
	apierrors  = "k8s.io/apimachinery/pkg/api/errors"
	meta       = "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var quiet = uses("reconcilers.ErrQuiet", "reconcilers.ErrHaltSubReconcilers")

// delays finds results that ask for a delay.
func delays(f *facts) []token.Pos {
	return f.matching(func(l literal) bool { return isResult(l) && l.sets("RequeueAfter", "Requeue") > 0 })
}

func isResult(l literal) bool { return l.of == resultType || l.of == "reconcilers.Result" }

func negativeDelays(f *facts) []token.Pos {
	return f.matching(func(l literal) bool { return isResult(l) && f.negative(l.fields["RequeueAfter"]) })
}

// delayedErrors finds returns of a delay together with an error.
func delayedErrors(f *facts) []token.Pos {
	return delayedReturns(f, func(err ast.Expr) bool { return !f.info.Types[err].IsNil() })
}

// delayedQuiet finds returns of a delay together with a quiet error.
func delayedQuiet(f *facts) []token.Pos {
	places := quiet(f)
	return delayedReturns(f, func(err ast.Expr) bool { return mentions(err, places) })
}

func delayedReturns(f *facts, wanted func(err ast.Expr) bool) []token.Pos {
	at := delays(f)
	var found []token.Pos
	for _, r := range f.returns {
		if len(r.Results) == 2 && mentions(r.Results[0], at) && wanted(r.Results[1]) {
			found = append(found, r.Pos())
		}
	}
	return found
}

// joined finds calls of errors.Join that get one of the places.
func joined(places finder) finder {
	return func(f *facts) []token.Pos {
		at := places(f)
		var found []token.Pos
		for _, call := range f.calls {
			if f.isCall(call, "errors", "Join") && mentions(call, at) {
				found = append(found, call.Pos())
			}
		}
		return found
	}
}

// isCall reports whether a call is one of a function.
func (f *facts) isCall(call *ast.CallExpr, path, name string) bool {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	object := f.info.Uses[selector.Sel]
	return object != nil && object.Pkg() != nil && object.Pkg().Path() == path && object.Name() == name
}

// unsteady finds desired functions that use the time or chance.
func unsteady(f *facts) []token.Pos {
	places := anyOf(
		uses("time.RetrieveNow"), usesOf("time", "Now", "Since"),
		usesOf("github.com/google/uuid", "New", "NewString", "NewRandom"),
		usesOf("k8s.io/apimachinery/pkg/util/uuid", "NewUUID"),
		usesOf("k8s.io/apimachinery/pkg/util/rand", "String", "Int", "Intn"), usesOf(meta, "Now"),
	)(f)
	for name, at := range f.others {
		if strings.HasPrefix(name, "math/rand.") || strings.HasPrefix(name, "math/rand/v2.") {
			places = append(places, at...)
		}
	}
	var found []token.Pos
	for _, l := range f.literals {
		for _, field := range []string{"DesiredChild", "DesiredChildren"} {
			body := f.body(l.fields[field])
			for _, at := range places {
				if isChild(l) && mentions(body, []token.Pos{at}) {
					found = append(found, at)
				}
			}
		}
	}
	return found
}

func isChild(l literal) bool {
	return l.of == "reconcilers.ChildReconciler" || l.of == "reconcilers.ChildSetReconciler"
}

// nilChildren finds returns of no child from a desired function.
func nilChildren(f *facts) []token.Pos {
	var found []token.Pos
	for _, l := range f.literals {
		body := f.body(l.fields["DesiredChild"])
		if !isChild(l) || body == nil {
			continue
		}
		for _, r := range f.returns {
			if len(r.Results) == 2 && mentions(body, []token.Pos{r.Pos()}) &&
				f.info.Types[r.Results[0]].IsNil() && f.info.Types[r.Results[1]].IsNil() {
				found = append(found, r.Pos())
			}
		}
	}
	return found
}

// ownManagers finds nodes with an object manager that is not the one of the package.
func ownManagers(names ...string) finder {
	return func(f *facts) []token.Pos {
		return f.matching(func(l literal) bool {
			for _, of := range names {
				for _, field := range []string{"ChildObjectManager", "AggregateObjectManager"} {
					if l.of != of || l.fields[field] == nil {
						continue
					}
					named := namedOf(f.info.TypeOf(l.fields[field]))
					if named == nil || f.symbols.name[named.Obj()] != "reconcilers.UpdatingObjectManager" {
						return true
					}
				}
			}
			return false
		})
	}
}

// sameChildren is the type of a child whose node does not say which children are its own.
func sameChildren(_ *facts, l literal) string {
	if !isChild(l) || l.inTest || l.sets("OurChild", "ListOptions") > 0 {
		return ""
	}
	return l.typeArgument(0) + " " + l.typeArgument(1)
}

// sharedChildren is the type of a child whose node says which children are its own.
func sharedChildren(_ *facts, l literal) string {
	if !isChild(l) || l.inTest || l.fields["OurChild"] == nil {
		return ""
	}
	return l.typeArgument(0) + " " + l.typeArgument(1)
}

func rootKind(_ *facts, l literal) string {
	if l.of != "reconcilers.ResourceReconciler" || l.inTest {
		return ""
	}
	return l.typeArgument(0)
}

func finalizerName(f *facts, l literal) string {
	if l.of != "reconcilers.WithFinalizer" || l.inTest {
		return ""
	}
	name, _ := f.text(l.fields["Finalizer"])
	return name
}

// bareFinalizers finds names of finalizers that have no domain.
func bareFinalizers(f *facts) []token.Pos {
	var found []token.Pos
	bare := func(e ast.Expr) {
		if text, ok := f.text(e); ok && text != "" && !strings.Contains(text, "/") {
			found = append(found, e.Pos())
		}
	}
	for _, l := range f.literals {
		switch l.of {
		case "reconcilers.WithFinalizer", "reconcilers.ChildSetReconciler", "reconcilers.UpdatingObjectManager":
			bare(l.fields["Finalizer"])
		}
	}
	places := uses("reconcilers.AddFinalizer", "reconcilers.ClearFinalizer")(f)
	for _, call := range f.calls {
		if len(call.Args) == 3 && mentions(call.Fun, places) {
			bare(call.Args[2])
		}
	}
	return found
}

// unusualNames finds names with a colon of what is tracked.
func unusualNames(f *facts) []token.Pos {
	return f.matching(func(l literal) bool {
		text, ok := f.text(l.fields["Name"])
		return ok && strings.Contains(text, ":") &&
			(l.of == "tracker.Reference" || l.of == "k8s.io/apimachinery/pkg/types.NamespacedName")
	})
}

// untypedNodes finds nodes of unstructured objects.
func untypedNodes(names ...string) finder {
	return func(f *facts) []token.Pos {
		return f.matching(func(l literal) bool {
			for i := range l.named.TypeArgs().Len() {
				if strings.Contains(l.typeArgument(i), "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.") {
					return slices.Contains(names, l.of)
				}
			}
			return false
		})
	}
}

// sameCasts finds casts to the resource's own type, or to an interface.
func sameCasts(f *facts) []token.Pos {
	return f.matching(func(l literal) bool {
		if l.of != "reconcilers.CastResource" || l.named.TypeArgs().Len() != 2 {
			return false
		}
		_, isInterface := l.named.TypeArgs().At(1).Underlying().(*types.Interface)
		return isInterface || types.Identical(l.named.TypeArgs().At(0), l.named.TypeArgs().At(1))
	})
}

// negativeLoops finds loops with a limit below zero.
func negativeLoops(f *facts) []token.Pos {
	return f.matching(func(l literal) bool {
		return l.of == "reconcilers.While" && f.negative(l.fields["MaxIterations"])
	})
}

// unobserved finds conditions of tables without the generation.
func unobserved(f *facts) []token.Pos {
	return f.matching(func(l literal) bool {
		return l.inTest && l.of == meta+".Condition" && l.fields["ObservedGeneration"] == nil
	})
}

// reflecting finds nodes whose list of reflected reasons has one of the names, or that have the default list.
func reflecting(reason string) finder {
	return func(f *facts) []token.Pos {
		return f.matching(func(l literal) bool {
			if !isChild(l) {
				return false
			}
			reasons := l.fields["ReflectedChildErrorReasons"]
			if reasons == nil {
				return true
			}
			found := false
			ast.Inspect(reasons, func(node ast.Node) bool {
				if e, ok := node.(ast.Expr); ok {
					text, ok := f.text(e)
					found = found || ok && text == reason
				}
				return !found
			})
			return found
		})
	}
}

// expectingNothing finds rows of roots that say nothing of what is to happen.
func expectingNothing(f *facts) []token.Pos {
	return f.matching(func(l literal) bool {
		if l.of != "testing.ReconcilerTestCase" || l.fields["Request"] == nil {
			return false
		}
		for field := range l.fields {
			if strings.HasPrefix(field, "Expect") || field == "ShouldErr" || field == "Verify" {
				return false
			}
		}
		return true
	})
}

// requiredFields are fields without which a node does not work; one of each group has to be set.
var requiredFields = map[string][][]string{
	"reconcilers.ResourceReconciler":      {{"Reconciler"}},
	"reconcilers.AggregateReconciler":     {{"Reconciler", "DesiredResource"}, {"Request"}},
	"reconcilers.AdmissionWebhookAdapter": {{"Reconciler"}},
	"reconcilers.SyncReconciler":          {{"Sync", "SyncWithResult"}},
	"reconcilers.ChildReconciler": {
		{"DesiredChild"}, {"ChildObjectManager", "MergeBeforeUpdate"},
		{"ReflectChildStatusOnParent", "ReflectChildStatusOnParentWithError"},
	},
	"reconcilers.ChildSetReconciler": {
		{"DesiredChildren"}, {"ChildObjectManager", "MergeBeforeUpdate"}, {"IdentifyChild"},
		{"ReflectChildrenStatusOnParent", "ReflectChildrenStatusOnParentWithError"},
	},
	"reconcilers.UpdatingObjectManager":   {{"MergeBeforeUpdate"}},
	"reconcilers.Advice":                  {{"Reconciler"}, {"Before", "Around", "After"}},
	"reconcilers.IfThen":                  {{"If"}, {"Then"}},
	"reconcilers.While":                   {{"Condition"}, {"Reconciler"}},
	"reconcilers.ForEach":                 {{"Items"}, {"Reconciler"}},
	"reconcilers.TryCatch":                {{"Try"}},
	"reconcilers.OverrideSetup":           {{"Reconciler"}},
	"reconcilers.CastResource":            {{"Reconciler"}},
	"reconcilers.WithConfig":              {{"Config"}, {"Reconciler"}},
	"reconcilers.WithFinalizer":           {{"Finalizer"}, {"Reconciler"}},
	"reconcilers.SuppressTransientErrors": {{"Reconciler"}},
}

// incomplete finds literals of nodes that lack a function or a node.
func incomplete(f *facts) []token.Pos {
	return f.matching(func(l literal) bool {
		for _, group := range requiredFields[l.of] {
			if l.sets(group...) == 0 {
				return true
			}
		}
		return false
	})
}

// argument finds calls of a function of the origin whose first argument is a text.
func argument(name, text string) finder {
	return func(f *facts) []token.Pos {
		places := f.uses[name]
		var found []token.Pos
		for _, call := range f.calls {
			if len(call.Args) == 0 || !mentions(call.Fun, places) {
				continue
			}
			if got, ok := f.text(call.Args[0]); ok && got == text {
				found = append(found, call.Pos())
			}
		}
		return found
	}
}

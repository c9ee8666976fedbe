package component_test

import (
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/component"
)

// said returns what v says about its deployment namespace.
func said(v any) string {
	placement, ok := component.Lookup[component.PlacementConfiguration](v)
	if !ok {
		return "nothing"
	}
	return placement.GetDeploymentNamespace()
}

type (
	placedSpec  struct{ component.PlacementSpec }
	pointerSpec struct{ *component.PlacementSpec }
	plainSpec   struct{ A string }
)

type (
	withField        struct{ Spec placedSpec }
	withPointer      struct{ Spec *placedSpec }
	withInterface    struct{ Spec any }
	withPlain        struct{ Spec plainSpec }
	withNilEmbedded  struct{ Spec pointerSpec }
	withPromotion    struct{ *withField }
	hidden           struct{ Spec placedSpec }
	withHidden       struct{ hidden }
	withMap          struct{ Spec component.UnstructurableMap }
	withUnexported   struct{ spec placedSpec }
	withGetter       struct{ other placedSpec }
	withValueGetter  struct{ other placedSpec }
	withBoth         struct{ Spec placedSpec }
	withNilGetter    struct{ Spec placedSpec }
	withOddGetter    struct{ Spec placedSpec }
	withPanic        struct{ Spec placedSpec }
	withCrash        struct{ other *placedSpec }
	withOwn          struct{ Spec placedSpec }
	withValueMethods struct{ Spec valueSpec }
	valueSpec        struct{ namespace string }
)

func (w *withGetter) GetSpec() any                 { return &w.other }
func (w withValueGetter) GetSpec() placedSpec      { return w.other }
func (w *withBoth) GetSpec() *plainSpec            { return &plainSpec{} }
func (w *withNilGetter) GetSpec() *placedSpec      { return nil }
func (w *withOddGetter) GetSpec(int) (any, error)  { return nil, nil }
func (w *withPanic) GetSpec() any                  { panic("a secret") }
func (w *withCrash) GetSpec() any                  { return &plainSpec{w.other.Name} }
func (w *withOwn) GetDeploymentNamespace() string  { return "own" }
func (w *withOwn) GetDeploymentName() string       { return "" }
func (v valueSpec) GetDeploymentNamespace() string { return v.namespace }
func (v valueSpec) GetDeploymentName() string      { return "" }

// Lookup finds what a spec implements, although the resource does not, and never panics.
func TestLookup(t *testing.T) {
	placed := placedSpec{component.PlacementSpec{Namespace: "spec"}}
	for name, tc := range map[string]struct {
		resource any
		want     string
	}{
		"nil":                      {nil, "nothing"},
		"nil pointer":              {(*withOwn)(nil), "nothing"},
		"no struct":                {42, "nothing"},
		"map":                      {map[string]any{"Spec": placed}, "nothing"},
		"resource wins":            {&withOwn{placed}, "own"},
		"Spec field":               {&withField{placed}, "spec"},
		"Spec field of a value":    {withField{placed}, "spec"},
		"Spec pointer":             {&withPointer{&placed}, "spec"},
		"Spec pointer, nil":        {&withPointer{}, "nothing"},
		"Spec interface":           {&withInterface{placed}, "spec"},
		"Spec interface, pointer":  {&withInterface{&placed}, "spec"},
		"Spec interface, nil":      {&withInterface{}, "nothing"},
		"Spec without it":          {&withPlain{}, "nothing"},
		"Spec map":                 {&withMap{component.UnstructurableMap{}}, "nothing"},
		"spec, unexported":         {&withUnexported{placed}, "nothing"},
		"nil embedded in the spec": {&withNilEmbedded{}, ""},
		"promoted Spec":            {&withPromotion{&withField{placed}}, "spec"},
		"promoted through nil":     {&withPromotion{}, "nothing"},
		"promoted, hidden":         {&withHidden{hidden{placed}}, "spec"},
		"value methods":            {&withValueMethods{valueSpec{"value"}}, "value"},
		"GetSpec":                  {&withGetter{placed}, "spec"},
		"GetSpec of a value":       {&withValueGetter{placed}, "spec"},
		"GetSpec, then field":      {&withBoth{placed}, "spec"},
		"GetSpec nil, then field":  {&withNilGetter{placed}, "spec"},
		"GetSpec, other signature": {&withOddGetter{placed}, "spec"},
		"GetSpec panics":           {&withPanic{placed}, "nothing"},
		"GetSpec dereferences nil": {&withCrash{}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(tc.resource); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLookupReachesTheSpecItself(t *testing.T) {
	resource := &withField{placedSpec{component.PlacementSpec{Namespace: "before"}}}
	placement, _ := component.Lookup[component.PlacementConfiguration](resource)
	resource.Spec.Namespace = "after"
	if got := placement.GetDeploymentNamespace(); got != "after" {
		t.Errorf("a copy of the spec was looked up: %q", got)
	}
}

func TestSpecOf(t *testing.T) {
	resource := &withField{}
	if got, err := component.SpecOf(resource); err != nil || got != any(&resource.Spec) {
		t.Errorf("got %v, %v", got, err)
	}
	getter := &withGetter{}
	if got, err := component.SpecOf(getter); err != nil || got != any(&getter.other) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, none := range []any{nil, 42, (*withField)(nil), &withPointer{}} {
		if got, err := component.SpecOf(none); err != nil || got != nil {
			t.Errorf("%T: got %v, %v", none, got, err)
		}
	}
	if got, err := component.SpecOf(&withPanic{}); errorText(err) != "GetSpec panicked" || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
	_, err := component.SpecOf(&withCrash{})
	if want := "GetSpec panicked: runtime error: invalid memory address or nil pointer dereference"; errorText(err) != want {
		t.Errorf("got %v", err)
	}
	var crash interface{ RuntimeError() }
	if !errors.As(err, &crash) {
		t.Error("the cause is lost")
	}
}

package generator_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/validation"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errBroken = errors.New("broken")

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func names(objects []client.Object) []string {
	var out []string
	for _, object := range objects {
		out = append(out, object.GetName())
	}
	return out
}

// one generates one ConfigMap that is named after the parameter "name".
var one = generator.GeneratorFunc(func(_ context.Context, _, _ string, parameters generator.Unstructurable) ([]client.Object, error) {
	name, _ := parameters.ToUnstructured()["name"].(string)
	return []client.Object{configMap(name)}, nil
})

func suffixParameter(suffix string) generator.ParameterTransformer {
	return generator.ParameterTransformerFunc(func(_, _ string, parameters generator.Unstructurable) (generator.Unstructurable, error) {
		m := parameters.ToUnstructured()
		name, _ := m["name"].(string)
		m["name"] = name + suffix
		return generator.UnstructurableMap(m), nil
	})
}

func addObject(name string) generator.ObjectTransformer {
	return generator.ObjectTransformerFunc(func(_, _ string, objects []client.Object) ([]client.Object, error) {
		return append(objects, configMap(name)), nil
	})
}

func TestTransformableGenerator(t *testing.T) {
	brokenParameters := generator.ParameterTransformerFunc(func(string, string, generator.Unstructurable) (generator.Unstructurable, error) {
		return nil, errBroken
	})
	brokenObjects := generator.ObjectTransformerFunc(func(string, string, []client.Object) ([]client.Object, error) {
		return nil, errBroken
	})
	noParameters := generator.ParameterTransformerFunc(func(string, string, generator.Unstructurable) (generator.Unstructurable, error) {
		return nil, nil
	})
	broken := generator.GeneratorFunc(func(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
		return nil, errBroken
	})
	for name, tc := range map[string]struct {
		generator *generator.TransformableGenerator
		want      []string
		err       string
	}{
		"nothing added":            {generator.NewGenerator(one), []string{"rose"}, ""},
		"in order of registration": {generator.NewGenerator(one).WithParameterTransformer(suffixParameter("-a")).WithObjectTransformer(addObject("x")).WithParameterTransformer(suffixParameter("-b")).WithObjectTransformer(addObject("y")), []string{"rose-a-b", "x", "y"}, ""},
		"nested":                   {generator.NewGenerator(generator.NewGenerator(one).WithObjectTransformer(addObject("x"))).WithObjectTransformer(addObject("y")), []string{"rose", "x", "y"}, ""},
		"parameter error":          {generator.NewGenerator(one).WithParameterTransformer(suffixParameter("-a")).WithParameterTransformer(brokenParameters), nil, "parameter transformer 1: broken"},
		"parameters lost":          {generator.NewGenerator(one).WithParameterTransformer(noParameters), nil, "parameter transformer 0: it returned no parameters"},
		"object error":             {generator.NewGenerator(one).WithObjectTransformer(brokenObjects), nil, "object transformer 0: broken"},
		"generator error":          {generator.NewGenerator(broken).WithObjectTransformer(addObject("x")), nil, "broken"},
		"no generator":             {generator.NewGenerator(nil), nil, "there is no generator"},
		"nil function":             {generator.NewGenerator(generator.GeneratorFunc(nil)), nil, "there is no generator"},
		"nil itself":               {nil, nil, "there is no generator"},
		"nil transformer":          {generator.NewGenerator(one).WithParameterTransformer(nil), nil, "parameter transformer 0: there is no transformer"},
		"nil transformer function": {generator.NewGenerator(one).WithObjectTransformer(addObject("x")).WithObjectTransformer(generator.ObjectTransformerFunc(nil)), nil, "object transformer 1: there is no transformer"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := tc.generator.Generate(context.Background(), "ns", "name", generator.UnstructurableMap{"name": "rose"})
			if got := errorText(err); got != tc.err {
				t.Fatalf("error %q, want %q", got, tc.err)
			}
			if got := names(objects); !slices.Equal(got, tc.want) {
				t.Errorf("objects %v, want %v", got, tc.want)
			}
			if tc.err == "broken" && !errors.Is(err, errBroken) {
				t.Errorf("the error is %v, want %v in it", err, errBroken)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNilFunctionsAreErrors(t *testing.T) {
	if _, err := generator.GeneratorFunc(nil).Generate(context.Background(), "", "", nil); err == nil {
		t.Error("a nil generator function generates, want an error")
	}
	if _, err := generator.ParameterTransformerFunc(nil).TransformParameters("", "", nil); err == nil {
		t.Error("a nil parameter transformer function transforms, want an error")
	}
	if _, err := generator.ObjectTransformerFunc(nil).TransformObjects("", "", nil); err == nil {
		t.Error("a nil object transformer function transforms, want an error")
	}
}

func TestParametersStayAsTheyAre(t *testing.T) {
	build := func() generator.UnstructurableMap {
		return generator.UnstructurableMap{
			"deep":  map[string]any{"list": []any{map[string]any{"a": "b"}}},
			"typed": map[string]string{"a": "b"},
			"lists": map[string][]string{"a": {"b"}},
		}
	}
	parameters := build()
	vandal := func(m map[string]any) {
		m["new"] = true
		m["typed"].(map[string]string)["a"] = "x"
		m["lists"].(map[string][]string)["a"][0] = "x"
		m["deep"].(map[string]any)["list"].([]any)[0].(map[string]any)["a"] = "x"
	}
	generator := generator.NewGenerator(one).
		WithParameterTransformer(generator.ParameterTransformerFunc(func(_, _ string, p generator.Unstructurable) (generator.Unstructurable, error) {
			vandal(p.ToUnstructured())
			return p, nil
		})).
		WithParameterTransformer(generator.ParameterTransformerFunc(func(_, _ string, p generator.Unstructurable) (generator.Unstructurable, error) {
			vandal(p.(generator.UnstructurableMap))
			return p, nil
		}))
	if _, err := generator.Generate(context.Background(), "", "", parameters); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(build(), parameters); diff != "" {
		t.Errorf("the caller's parameters were changed, want them as they were (-want +got):\n%s", diff)
	}
}

func TestUnstructurableMapIsNeverNil(t *testing.T) {
	generator.UnstructurableMap(nil).ToUnstructured()["a"] = 1
	m := generator.UnstructurableMap{"a": nil, "b": map[string]any(nil), "c": []any(nil), "d": map[string]any{"e": []any{nil, 1.5}}, "f": []map[string]any{{"g": nil}}, "h": map[string][]string{"i": nil}}
	if diff := cmp.Diff(map[string]any(m), m.ToUnstructured()); diff != "" {
		t.Errorf("the copy differs, want the same (-want +got):\n%s", diff)
	}
	// No parameters at all are none, rather than nil.
	objects, err := generator.NewGenerator(one).Generate(context.Background(), "", "", nil)
	if err != nil || len(objects) != 1 {
		t.Errorf("the objects are %v (%v), want one", objects, err)
	}
}

type promise bool

func (p promise) Deterministic() bool { return bool(p) }

type promisingGenerator struct {
	promise
	generator.Generator
}

type promisingTransformer struct {
	promise
	generator.ParameterTransformer
	generator.ObjectTransformer
}

func TestDeterministic(t *testing.T) {
	sure := promisingGenerator{true, one}
	sureTransformer := promisingTransformer{true, suffixParameter("x"), addObject("x")}
	for name, tc := range map[string]struct {
		generator generator.Generator
		want      bool
	}{
		"no promise":                {one, false},
		"promise not made":          {promisingGenerator{false, one}, false},
		"promise":                   {sure, true},
		"wrapped":                   {generator.NewGenerator(sure), true},
		"wrapped without promise":   {generator.NewGenerator(one), false},
		"all promise":               {generator.NewGenerator(sure).WithParameterTransformer(sureTransformer).WithObjectTransformer(sureTransformer), true},
		"parameter transformer not": {generator.NewGenerator(sure).WithParameterTransformer(suffixParameter("x")), false},
		"object transformer not":    {generator.NewGenerator(sure).WithObjectTransformer(addObject("x")), false},
		"wrapped nil":               {generator.NewGenerator(nil), false},
		"no generator":              {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := generator.IsDeterministic(tc.generator); got != tc.want {
				t.Errorf("it is deterministic: %t, want %t", got, tc.want)
			}
		})
	}
}

type extender struct{ generator.Generator }

func (extender) AddToScheme(scheme *runtime.Scheme) error { return corev1.AddToScheme(scheme) }

func (extender) Validate(context.Context) error { return errBroken }

func (extender) TransformParameters(_, _ string, p generator.Unstructurable) (generator.Unstructurable, error) {
	return p, nil
}

func (extender) TransformObjects(_, _ string, o []client.Object) ([]client.Object, error) {
	return o, nil
}

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := generator.NewGenerator(one).AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := generator.NewGenerator(generator.NewGenerator(extender{one})).AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if _, _, err := scheme.ObjectKinds(&corev1.ConfigMap{}); err != nil {
		t.Errorf("the types of the wrapped generator are not registered (%v), want them to be", err)
	}
	if err := generator.NewGenerator(nil).AddToScheme(scheme); err == nil {
		t.Error("a generator that is not there registers its types, want an error")
	}
}

func TestTransformableGeneratorValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		generator      *generator.TransformableGenerator
		flat, thorough string
	}{
		"valid":                 {generator.NewGenerator(one), "", ""},
		"no generator":          {generator.NewGenerator(nil), "there is no generator", "there is no generator"},
		"generator":             {generator.NewGenerator(extender{}), "", "broken"},
		"parameter transformer": {generator.NewGenerator(one).WithParameterTransformer(extender{}), "", "parameter transformer 0: broken"},
		"object transformer":    {generator.NewGenerator(one).WithObjectTransformer(addObject("x")).WithObjectTransformer(extender{}), "", "object transformer 1: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := errorText(tc.generator.Validate(context.Background())); got != tc.flat {
				t.Errorf("flat: %q, want %q", got, tc.flat)
			}
			if got := errorText(tc.generator.Validate(validation.WithRecursive(context.Background()))); got != tc.thorough {
				t.Errorf("recursive: %q, want %q", got, tc.thorough)
			}
		})
	}
}

type namedClient struct {
	client.Client
	name string
}

type ctxKey struct{}

// getters return what a context carries, as comparable values.
var getters = map[string]func(ctx context.Context) (any, error){
	"reconciler name":     func(ctx context.Context) (any, error) { return generator.ReconcilerNameFromContext(ctx) },
	"local client":        func(ctx context.Context) (any, error) { return generator.LocalClientFromContext(ctx) },
	"client":              func(ctx context.Context) (any, error) { return generator.ClientFromContext(ctx) },
	"discovery client":    func(ctx context.Context) (any, error) { return generator.DiscoveryFromContext(ctx) },
	"component":           func(ctx context.Context) (any, error) { return generator.ComponentFromContext(ctx) },
	"component name":      func(ctx context.Context) (any, error) { return generator.ComponentNameFromContext(ctx) },
	"component namespace": func(ctx context.Context) (any, error) { return generator.ComponentNamespaceFromContext(ctx) },
	"component digest":    func(ctx context.Context) (any, error) { return generator.ComponentDigestFromContext(ctx) },
	"component revision":  func(ctx context.Context) (any, error) { return generator.ComponentRevisionFromContext(ctx) },
}

func TestContext(t *testing.T) {
	local, target, resource := &namedClient{name: "local"}, &namedClient{name: "target"}, configMap("garden")
	discoverer := &discovery.DiscoveryClient{LegacyPrefix: "/api"}
	base := context.WithValue(context.Background(), ctxKey{}, "kept")
	full := generator.NewContext(base).
		WithReconcilerName("platform.example.com").
		WithLocalClient(local).
		WithClient(target).
		WithDiscovery(discoverer).
		WithComponent(resource).
		WithComponentName("garden").
		WithComponentNamespace("").
		WithComponentDigest("abc").
		WithComponentRevision(0)
	want := map[string]any{
		"reconciler name": "platform.example.com", "local client": client.Client(local), "client": client.Client(target),
		"discovery client": discovery.DiscoveryInterface(discoverer),
		"component":        client.Object(resource), "component name": "garden", "component namespace": "", "component digest": "abc",
		"component revision": int64(0),
	}
	derived, cancel := context.WithCancel(full)
	defer cancel()
	for what, get := range getters {
		if got, err := get(derived); err != nil || got != want[what] {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, want[what])
		}
		if _, err := get(base); err == nil || err.Error() != what+" not found in context" {
			t.Errorf("%s: the error of an empty context is %v, want that it is not found", what, err)
		}
		if _, err := get(generator.NewContext(base).WithClient(nil).WithDiscovery(nil).WithLocalClient(nil).
			WithComponent(nil)); err == nil {
			t.Errorf("%s: nil counts as known, want an error", what)
		}
	}
	if full.Value(ctxKey{}) != "kept" {
		t.Errorf("the value of the context beneath is %v, want kept", full.Value(ctxKey{}))
	}
}

func TestContextBranches(t *testing.T) {
	trunk := generator.NewContext(context.Background()).WithComponentName("trunk")
	left, right := trunk.WithComponentDigest("left"), trunk.WithComponentDigest("right")
	for want, ctx := range map[string]context.Context{"left": left, "right": right} {
		if got, err := generator.ComponentDigestFromContext(ctx); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if got, err := generator.ComponentNameFromContext(ctx); err != nil || got != "trunk" {
			t.Errorf("the name is %q (%v), want trunk", got, err)
		}
	}
	if _, err := generator.ComponentDigestFromContext(trunk); err == nil {
		t.Error("a branch changed the trunk, want no digest in it")
	}
	// A context that is made from another one has what that has.
	if got, err := generator.ComponentNameFromContext(generator.NewContext(left).WithComponentRevision(1)); err != nil || got != "trunk" {
		t.Errorf("the name is %q (%v), want trunk", got, err)
	}
}

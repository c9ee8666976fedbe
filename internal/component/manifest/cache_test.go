package manifest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// converted counts how often its content is asked for.
type converted struct {
	unstructured.Unstructured
}

var conversions int

func (c *converted) UnstructuredContent() map[string]any {
	conversions++
	return c.Object
}

// conversionsOf returns how many objects are converted meanwhile.
func conversionsOf(do func()) int {
	before := conversions
	do()
	return conversions - before
}

func TestWhatIsGeneratedTheSameIsNotPreparedAgain(t *testing.T) {
	cache := &manifest.Cache{}
	generate := func() []client.Object {
		return []client.Object{
			&converted{*object("v1 ConfigMap", "a", m{"data": m{"a": "b"}})},
			&converted{*object("v1 List", "l", m{"items": []any{object("v1 ConfigMap", "b").Object, object("v1 Secret", "c").Object}})},
			&converted{*annotated(object("v1 ConfigMap", "d"), "reconcile-policy", "on-object-or-component-change")},
		}
	}
	if n := conversionsOf(func() { prepareWith(t, options(), cache, generate()...) }); n != 3 {
		t.Errorf("there are %d conversions of what is new, want 3", n)
	}
	for name, change := range map[string]func(*manifest.Options){
		"nothing":   func(*manifest.Options) {},
		"component": func(o *manifest.Options) { o.ComponentDigest = "state2" },
	} {
		var second []manifest.Object
		if n := conversionsOf(func() { second = prepareWith(t, options(change), cache, generate()...) }); n > 0 {
			t.Errorf("%s: %d objects were prepared again, want none", name, n)
		}
		fresh := prepareWith(t, options(change), nil, generate()...)
		if diff := cmp.Diff(views(t, fresh), views(t, second)); diff != "" {
			t.Errorf("%s: unexpected (-want, +got):\n%s", name, diff)
		}
	}

	moved := generate()
	slices.Reverse(moved)
	var third []manifest.Object
	if n := conversionsOf(func() { third = prepareWith(t, options(), cache, moved...) }); n > 0 {
		t.Errorf("%d objects at another place were prepared again, want none", n)
	}
	if diff := cmp.Diff(views(t, prepareWith(t, options(), nil, moved...)), views(t, third)); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
}

// Whatever was cached before, the result is that without a cache.
func TestCachedResultsAreThoseWithoutACache(t *testing.T) {
	cluster := func(schema.GroupVersionKind) (bool, bool, error) { return false, true, nil }
	unknown := func(schema.GroupVersionKind) (bool, bool, error) { return false, false, nil }
	broken := func(schema.GroupVersionKind) (bool, bool, error) { return false, false, errors.New("broken") }
	a := func() client.Object { return object("v1 ConfigMap", "a") }
	b := func() client.Object { return annotated(object("v1 ConfigMap", "a"), "apply-order", "1") }
	widget := func() client.Object { return object("example.com/v1 Widget", "w") }
	component := func() client.Object {
		return annotated(object("v1 ConfigMap", "c"), "reconcile-policy", "on-object-or-component-change")
	}
	type pass struct {
		options func(*manifest.Options)
		objects []client.Object
	}
	no := func(*manifest.Options) {}
	passes := map[string]pass{
		"none":      {no, nil},
		"one":       {no, []client.Object{a()}},
		"changed":   {no, []client.Object{b()}},
		"twice":     {no, []client.Object{a(), a()}},
		"more":      {no, []client.Object{component(), a(), crd("example.com", "Widget", "Namespaced"), widget()}},
		"other CRD": {no, []client.Object{component(), a(), crd("example.com", "Widget", "Cluster"), widget()}},
		"no CRD":    {no, []client.Object{component(), a(), widget()}},
		"faulty":    {no, []client.Object{a(), object("v1 ConfigMap", "b", m{"x": make(chan int)}), object("v1 ConfigMap", "")}},
		"prefix":    {func(o *manifest.Options) { o.Prefix = "b.example.com" }, []client.Object{a(), component()}},
		"namespace": {func(o *manifest.Options) { o.Namespace = "b" }, []client.Object{a(), component()}},
		"state":     {func(o *manifest.Options) { o.ComponentDigest = "state2" }, []client.Object{a(), component()}},
		"cluster":   {func(o *manifest.Options) { o.Namespaced = cluster }, []client.Object{a(), component()}},
		"conflict":  {func(o *manifest.Options) { o.Namespaced = cluster }, []client.Object{object("v1 ConfigMap", "x/a"), object("v1 ConfigMap", "y/a")}},
		"peace":     {no, []client.Object{object("v1 ConfigMap", "x/a"), object("v1 ConfigMap", "y/a")}},
		"unknown":   {func(o *manifest.Options) { o.Namespaced = unknown }, []client.Object{a(), object("v1 ConfigMap", "y/a")}},
		"broken":    {func(o *manifest.Options) { o.Namespaced = broken }, []client.Object{a(), object("v1 ConfigMap", "y/a")}},
		"adoption":  {func(o *manifest.Options) { o.AdoptionPolicy = apis.AdoptAlways }, []client.Object{a(), component()}},
		"reconcile": {func(o *manifest.Options) { o.ReconcilePolicy = apis.ReconcileOnce }, []client.Object{a(), component()}},
		"update":    {func(o *manifest.Options) { o.UpdatePolicy = apis.UpdateReplace }, []client.Object{a(), component()}},
		"delete":    {func(o *manifest.Options) { o.DeletePolicy = apis.DeleteOrphan }, []client.Object{a(), component()}},
		"prune":     {func(o *manifest.Options) { o.PrunePolicy = apis.PruneAfter }, []client.Object{a(), component()}},
		"interval":  {func(o *manifest.Options) { o.ReapplyInterval = time.Hour }, []client.Object{a(), component()}},
		"scheme":    {func(o *manifest.Options) { o.Scheme = runtime.NewScheme() }, []client.Object{a(), component()}},
	}
	for before, p := range passes {
		for after, q := range passes {
			cache := &manifest.Cache{}
			for _, step := range []pass{p, q, q, p} {
				o := options(step.options)
				want, wantErr := manifest.Prepare(step.objects, o, nil)
				got, err := manifest.Prepare(step.objects, o, cache)
				if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%s, then %s: the error is\n%v\nbut wanted\n%v", before, after, err, wantErr)
				}
				if diff := cmp.Diff(views(t, want), views(t, got)); diff != "" {
					t.Errorf("%s, then %s: unexpected (-want, +got):\n%s", before, after, diff)
				}
			}
		}
	}
}

func TestGoodObjectsAreKeptWhileAnotherIsFaulty(t *testing.T) {
	cache := &manifest.Cache{}
	good, bad := &converted{*object("v1 ConfigMap", "a")}, object("v1 ConfigMap", "")
	if _, err := manifest.Prepare([]client.Object{good, bad}, options(), cache); err == nil {
		t.Fatal("the preparation has no error, want one")
	}
	asked := 0
	o := options(func(o *manifest.Options) {
		o.Namespaced = func(schema.GroupVersionKind) (bool, bool, error) { asked++; return true, true, nil }
	})
	n := conversionsOf(func() {
		prepareWith(t, o, cache, good)
		prepareWith(t, o, cache, good, object("v1 ConfigMap", "b"))
	})
	if n > 0 {
		t.Errorf("the good object was converted %d times more, want none", n)
	}
	if asked != 2 {
		t.Errorf("the scope was asked for %d times, want 2", asked)
	}
}

// A generator may keep what it has returned, and change it.
func TestNothingOfTheGeneratedObjectsIsKept(t *testing.T) {
	cache := &manifest.Cache{}
	generated := object("v1 ConfigMap", "a", m{"data": m{"a": "b"}, "list": []any{m{"a": "b"}}, "typed": map[string]string{"a": "b"}})
	first := prepareWith(t, options(), cache, generated)[0]
	before := made(t, first)
	want := before.DeepCopy()
	generated.Object["data"].(m)["a"] = "c"
	generated.Object["list"].([]any)[0].(m)["a"] = "c"
	generated.Object["typed"].(map[string]string)["a"] = "c"
	generated.Object["metadata"].(m)["labels"] = m{"a": "b"}
	if diff := cmp.Diff(want, before); diff != "" {
		t.Errorf("what was made has changed (-was +is), want it unchanged:\n%s", diff)
	}
	if _, err := first.Manifest(); !errors.Is(err, manifest.ErrChanged) {
		t.Errorf("the error after the change is %v, want %v", err, manifest.ErrChanged)
	}
	second := prepareWith(t, options(), cache, generated)[0]
	if got := made(t, second).Object["data"].(m)["a"]; got != "c" || second.Desired.Digest == first.Desired.Digest {
		t.Errorf(`the value is %v and the digest %s, want "c" and another digest than %s`, got, second.Desired.Digest,
			first.Desired.Digest)
	}
}

// The result belongs to the caller, who may sort it.
func TestTheResultIsNotThatOfTheNextRequest(t *testing.T) {
	cache := &manifest.Cache{}
	objects := []client.Object{object("v1 ConfigMap", "a"), object("v1 ConfigMap", "b")}
	first := prepareWith(t, options(), cache, objects...)
	slices.Reverse(first)
	second := prepareWith(t, options(), cache, objects...)
	if second[0].Desired.Name != "a" {
		t.Errorf("the first object is %s, want a, whatever the order of the caller", second[0].Desired.Name)
	}
}

func TestScopesAreAskedForOncePerKind(t *testing.T) {
	asked := map[string]int{}
	o := options(func(o *manifest.Options) {
		o.Namespaced = func(kind schema.GroupVersionKind) (bool, bool, error) {
			asked[kind.Kind]++
			return namespaced(kind)
		}
	})
	prepareWith(t, o, nil, object("v1 ConfigMap", "a"), object("v1 Secret", "a"), object("v1 ConfigMap", "b"),
		crd("example.com", "Widget", "Cluster"), object("example.com/v1 Widget", "a"))
	if diff := cmp.Diff(map[string]int{"ConfigMap": 1, "Secret": 1, "CustomResourceDefinition": 1}, asked); diff != "" {
		t.Errorf("unexpected (-want, +got):\n%s", diff)
	}
}

// many returns objects as a chart would have them.
func many(n int) []client.Object {
	objects := make([]client.Object, n)
	for i := range objects {
		objects[i] = &unstructured.Unstructured{Object: m{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": m{"name": fmt.Sprintf("deployment-%05d", i), "labels": m{"app.kubernetes.io/name": "a", "app.kubernetes.io/part-of": "b"}},
			"spec": m{
				"replicas": int64(3), "selector": m{"matchLabels": m{"app.kubernetes.io/name": "a"}},
				"template": m{
					"metadata": m{"labels": m{"app.kubernetes.io/name": "a"}},
					"spec": m{"containers": []any{m{
						"name": "main", "image": "registry.example.com/image:1.2.3", "args": []any{"--verbose", "--port=8080"},
						"ports": []any{m{"containerPort": int64(8080), "name": "http"}},
					}}},
				},
			},
		}}
	}
	return objects
}

func TestPreparingUnchangedObjectsAllocatesNextToNothing(t *testing.T) {
	cache, objects, o := &manifest.Cache{}, many(100), options()
	prepareWith(t, o, cache, objects...)
	got := testing.AllocsPerRun(10, func() {
		_, _ = manifest.Prepare(objects, o, cache)
	})
	if got > 30 {
		t.Errorf("there are %v allocations for 100 objects, want at most 30", got)
	}
}

func BenchmarkPrepareUnchanged(b *testing.B) {
	cache, objects, o := &manifest.Cache{}, many(10_000), options()
	if _, err := manifest.Prepare(objects, o, cache); err != nil {
		b.Fatal(err)
	}
	benchmark(b, objects, o, func() *manifest.Cache { return cache })
}

func BenchmarkPrepareNew(b *testing.B) {
	benchmark(b, many(10_000), options(), func() *manifest.Cache { return nil })
}

func benchmark(b *testing.B, objects []client.Object, o manifest.Options, cache func() *manifest.Cache) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Prepare(objects, o, cache()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(objects)), "ns/object")
}

// What was prepared can be prepared again without the objects, and is the same. They are generated again if a manifest is asked for.
func TestPrepareAgain(t *testing.T) {
	cache, calls := &manifest.Cache{}, 0
	objects := func() []client.Object {
		return append(marked(), annotated(object("v1 ConfigMap", "g"), "reconcile-policy", "on-object-or-component-change"))
	}
	generate := func() ([]client.Object, error) { calls++; return objects(), nil }
	again := func(change ...func(*manifest.Options)) ([]manifest.Object, bool, error) {
		return manifest.PrepareAgain(generate, options(change...), cache)
	}
	if _, ok, err := again(); ok || err != nil {
		t.Errorf("before anything was prepared, ok is %v and the error %v, want false and none", ok, err)
	}
	prepareWith(t, options(), cache, objects()...)
	for name, change := range map[string]func(*manifest.Options){
		"nothing":   func(*manifest.Options) {},
		"component": func(o *manifest.Options) { o.ComponentDigest = "state2" },
	} {
		got, ok, err := again(change)
		if !ok || err != nil || calls > 0 {
			t.Fatalf("%s: ok is %v and the error %v after %d calls, want true and none without a call", name, ok, err,
				calls)
		}
		if diff := cmp.Diff(views(t, prepareWith(t, options(change), nil, objects()...)), views(t, got)); diff != "" {
			t.Errorf("%s: unexpected (-want, +got):\n%s", name, diff)
		}
		if calls != 1 {
			t.Errorf("%s: there are %d calls for all manifests, want 1", name, calls)
		}
		calls = 0
	}
	if _, ok, err := again(func(o *manifest.Options) { o.UpdatePolicy = apis.UpdateReplace }); ok || err != nil {
		t.Errorf("with other options, ok is %v and the error %v, want false and none", ok, err)
	}
	broken := errors.New("broken")
	if _, ok, err := again(func(o *manifest.Options) {
		o.Namespaced = func(schema.GroupVersionKind) (bool, bool, error) { return false, false, broken }
	}); ok || !errors.Is(err, broken) {
		t.Errorf("with a scope that cannot be found out, ok is %v and the error %v, want false and %v", ok, err, broken)
	}
	if _, ok, _ := again(); ok {
		t.Error("after an error, the objects are not needed, want them asked for")
	}
}

// What a generator returns then, and did not return before, is never written.
func TestPrepareAgainRefusesOtherObjects(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		objects []client.Object
		err     error
		want    error
	}{
		"another":  {[]client.Object{object("v1 ConfigMap", "b")}, nil, manifest.ErrChanged},
		"none":     {nil, nil, manifest.ErrChanged},
		"an error": {nil, broken, broken},
	} {
		cache := &manifest.Cache{}
		prepareWith(t, options(), cache, object("v1 ConfigMap", "a"))
		again, ok, err := manifest.PrepareAgain(func() ([]client.Object, error) { return test.objects, test.err }, options(), cache)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		for range 2 {
			if _, err := again[0].Manifest(); !errors.Is(err, test.want) {
				t.Errorf("%s: the error is %v, want %v", name, err, test.want)
			}
		}
	}
}

// Unchanged is true only of what the cache has, all of it, in its order.
func TestUnchangedObjects(t *testing.T) {
	cache, prepared := &manifest.Cache{}, options()
	a, b := object("v1 ConfigMap", "a"), object("v1 ConfigMap", "b")
	if cache.Unchanged([]client.Object{a, b}, &prepared) {
		t.Error("the objects count as unchanged before any were prepared, want that they do not")
	}
	prepareWith(t, prepared, cache, a, b)
	other := options(func(o *manifest.Options) { o.UpdatePolicy = apis.UpdateReplace })
	for name, test := range map[string]struct {
		objects []client.Object
		options *manifest.Options
		want    bool
	}{
		"the same":      {[]client.Object{a.DeepCopy(), b}, &prepared, true},
		"moved":         {[]client.Object{b, a}, &prepared, false},
		"less":          {[]client.Object{a}, &prepared, false},
		"more":          {[]client.Object{a, b, a}, &prepared, false},
		"changed":       {[]client.Object{a, object("v1 ConfigMap", "b", m{"data": m{"a": "b"}})}, &prepared, false},
		"faulty":        {[]client.Object{a, object("v1 ConfigMap", "b", m{"x": make(chan int)})}, &prepared, false},
		"other options": {[]client.Object{a, b}, &other, false},
	} {
		if got := cache.Unchanged(test.objects, test.options); got != test.want {
			t.Errorf("%s: that the objects are unchanged is %v, want %v", name, got, test.want)
		}
	}
	if _, err := manifest.Prepare([]client.Object{a, a}, prepared, cache); err == nil || cache.Unchanged([]client.Object{a, a}, &prepared) {
		t.Errorf("the error is %v, or objects that do not go together count as unchanged, want an error and not",
			err)
	}
}

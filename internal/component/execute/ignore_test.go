package execute_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec:
  replicas: 2
  minReadySeconds: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: a, image: a, env: [{name: V, value: "1"}]}
`

// autoscale sets the replicas as an autoscaler does.
func (b *bench) autoscale(ctx context.Context, o client.Object, replicas string) {
	b.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":`+replicas+`}}`))
	if err := b.SubResource("scale").Patch(ctx, named(o), patch, client.FieldOwner("autoscaler")); err != nil {
		b.Fatal(err)
	}
}

// Ignored fields are created, and left to others from then on.
func TestIgnoredFields(t *testing.T) {
	for _, action := range []plan.Action{plan.ActionApply, plan.ActionReplace, plan.ActionAdopt} {
		t.Run(string(action), func(t *testing.T) {
			b := newBench(t)
			o := b.desire(deployment, "d1", ignoring("/spec/replicas", "/spec/paused"))
			created := b.create(o)
			if got := number(created, "spec", "replicas"); got != 2 {
				t.Fatalf("the object was created with %d replicas, want 2", got)
			}
			b.autoscale(t.Context(), o, "7")
			b.patch(t.Context(), o, "somebody", `{"spec":{"minReadySeconds":9,"paused":true}}`)
			b.nothingToMerge()
			o.SetUID(created.GetUID())
			op := operation(action, o)
			if result := b.run(op); result.Err != nil {
				t.Fatal(result.Err)
			}
			live := b.live(o)
			if got := number(live, "spec", "replicas"); got != 7 {
				t.Errorf("there are %d replicas, want 7", got)
			}
			if got := number(live, "spec", "minReadySeconds"); got != 1 {
				t.Errorf("a field that is not ignored is %d, want 1", got)
			}
			if got, _, _ := unstructured.NestedBool(live.Object, "spec", "paused"); !got {
				t.Errorf("the ignored field spec.paused, which is not desired, is %t, want true", got)
			}
			b.do(op, 2)
		})
	}
}

// An ignored field that others took away stays away.
func TestIgnoredFieldThatIsGone(t *testing.T) {
	b := newBench(t)
	o := b.desire(configMap, "d1", ignoring("/data/b"))
	created := b.create(o)
	b.patch(t.Context(), o, "somebody", `{"data":{"b":null}}`)
	o.SetUID(created.GetUID())
	for _, action := range []plan.Action{plan.ActionApply, plan.ActionReplace} {
		b.do(operation(action, o), 2)
		if got := dataOf(b.live(o)); len(got) != 1 {
			t.Errorf("%s: the data are %v, want one value", action, got)
		}
	}
}

// A field that is ignored, and dropped from what is desired, stays as it is.
func TestIgnoredFieldThatIsDropped(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(configMap, "d1", ignoring("/data/b")))
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {c: "3"}}`, "d2", ignoring("/data/b"))
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionApply, o), 3)
	if got := dataOf(b.live(o)); len(got) != 2 || got["b"] != "2" || got["c"] != "3" {
		t.Errorf("the data are %v, want two values: b is 2, c is 3", got)
	}
}

// What another writer writes to an ignored field between the look and the write is not undone.
func TestIgnoredFieldRace(t *testing.T) {
	for _, action := range []plan.Action{plan.ActionApply, plan.ActionReplace} {
		t.Run(string(action), func(t *testing.T) {
			var b *bench
			calls := 0
			scale := func(ctx context.Context) {
				if calls++; calls == 1 {
					b.autoscale(ctx, b.object(deployment), "9")
				}
			}
			b = newBench(t, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					scale(ctx)
					return c.Apply(ctx, o, opts...)
				},
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					scale(ctx)
					return c.Update(ctx, o, opts...)
				},
			})
			o := b.desire(deployment, "d1", ignoring("/spec/replicas"))
			o.SetUID(b.create(o).GetUID())
			if result := b.run(operation(action, o)); result.Err != nil || calls != 2 {
				t.Fatalf("the error is %v after %d calls, want none after 2", result.Err, calls)
			}
			if got := number(b.live(o), "spec", "replicas"); got != 9 {
				t.Errorf("there are %d replicas, want 9", got)
			}
		})
	}
}

func TestWithIgnored(t *testing.T) {
	for _, test := range []struct {
		name, content, live, want string
		pointers                  []string
		add                       bool
	}{
		{name: "value", content: `{a: 1, b: 1}`, live: `{a: 2, b: 2}`, pointers: []string{"/a"}, want: `{a: 2, b: 1}`},
		{name: "nested", content: `{a: {b: 1, c: 1}}`, live: `{a: {b: 2, c: 2}}`, pointers: []string{"/a/b"}, want: `{a: {b: 2, c: 1}}`},
		{name: "absent from live", content: `{a: {b: 1, c: 1}}`, live: `{a: {}}`, pointers: []string{"/a/b"}, want: `{a: {c: 1}}`},
		{name: "parent absent from live", content: `{a: {b: 1, c: 1}}`, live: `{}`, pointers: []string{"/a/b"}, want: `{a: {c: 1}}`},
		{name: "parent of another shape in live", content: `{a: {b: 1, c: 1}}`, live: `{a: [1]}`, pointers: []string{"/a/b"}, want: `{a: {c: 1}}`},
		{name: "not desired", content: `{a: 1}`, live: `{a: 1, b: {c: 2}}`, pointers: []string{"/b/c"}, want: `{a: 1}`},
		{name: "not desired, added", content: `{a: 1}`, live: `{a: 1, b: {c: 2, d: 2}}`, pointers: []string{"/b/c"}, add: true, want: `{a: 1, b: {c: 2}}`},
		{name: "nowhere, added", content: `{a: 1}`, live: `{a: 1, b: 2}`, pointers: []string{"/b/c", "/c/d", "/a/b"}, add: true, want: `{a: 1}`},
		{name: "escapes", content: `{"a/b": 1, "c~d": 1}`, live: `{"a/b": 2, "c~d": 2}`, pointers: []string{"/a~1b", "/c~0d"}, want: `{"a/b": 2, "c~d": 2}`},
		{name: "malformed", content: `{a: 1}`, live: `{a: 2}`, pointers: []string{"", "a"}, want: `{a: 1}`},
		{name: "null", content: `{a: null, b: 1}`, live: `{a: 2, b: null}`, pointers: []string{"/a", "/b"}, want: `{a: 2, b: null}`},
		{name: "element by name", content: `{l: [{name: x, v: 1}, {name: y, v: 1}]}`, live: `{l: [{name: z, v: 3}, {name: y, v: 2}, {name: x, v: 2}]}`,
			pointers: []string{"/l/0/v"}, want: `{l: [{name: x, v: 2}, {name: y, v: 1}]}`},
		{name: "new element", content: `{l: [{name: x, v: 1}]}`, live: `{l: [{name: z, v: 3}]}`, pointers: []string{"/l/0/v"}, want: `{l: [{name: x, v: 1}]}`},
		{name: "element by index", content: `{l: [1, 1, 1]}`, live: `{l: [2, 2]}`, pointers: []string{"/l/1"}, want: `{l: [1, 2, 1]}`},
		{name: "element absent from live", content: `{l: [1, 1, 1]}`, live: `{l: [2, 2]}`, pointers: []string{"/l/2"}, want: `{l: [1, 1]}`},
		{name: "no such element", content: `{l: [1]}`, live: `{l: [2, 2]}`, pointers: []string{"/l/1", "/l/-", "/l/-1", "/l/x"}, add: true, want: `{l: [1]}`},
		{name: "list instead of map in live", content: `{l: [{v: 1}]}`, live: `{l: {v: 2}}`, pointers: []string{"/l/0/v"}, want: `{l: [{v: 1}]}`},
		{name: "name that is no text", content: `{l: [{name: {a: 1}, v: 1}]}`, live: `{l: [{name: {a: 1}, v: 2}]}`, pointers: []string{"/l/0/v"}, want: `{l: [{name: {a: 1}, v: 2}]}`},
		{name: "name that is no text in live", content: `{l: [{name: x, v: 1}]}`, live: `{l: [{name: {a: 1}, v: 2}, 3]}`, pointers: []string{"/l/0/v"}, want: `{l: [{name: x, v: 1}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			content, live, want := parse(t, test.content), parse(t, test.live), parse(t, test.want)
			got := execute.WithIgnored(content, live, test.pointers, test.add)
			if !equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if !equal(content, parse(t, test.content)) || !equal(live, parse(t, test.live)) {
				t.Errorf("the arguments are now %v and %v, want %s and %s", content, live, test.content, test.live)
			}
		})
	}
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

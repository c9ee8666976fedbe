package server_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// row makes twelve calls, as a reconciler with a few children does.
func (w world) row() {
	given, custom := configMap("given"), widget("w", 1)
	for range 5 {
		w.get(given)
	}
	for range 2 {
		w.must(w.List(w.ctx, &corev1.ConfigMapList{}, client.InNamespace("default")))
	}
	w.create(configMap("child"))
	applied := corev1apply.ConfigMap("applied", "default").WithData(map[string]string{"a": "1"})
	w.must(w.Apply(w.ctx, applied, client.FieldOwner("one")))
	w.must(w.Patch(w.ctx, given, client.RawPatch(types.MergePatchType, []byte(`{"data":{"b":"1"}}`))))
	w.get(custom)
	custom.Object["status"] = map[string]any{"ready": true}
	w.must(w.Status().Update(w.ctx, custom))
}

// BenchmarkWorldRow measures rows of a table, each in a world.
func BenchmarkWorldRow(b *testing.B) {
	base := newWorld(b)
	base.create(widgets(), configMap("given"), widget("w", 1))
	run := func(name string, row func(b *testing.B, i int)) {
		b.Run(name, func(b *testing.B) {
			before, i := processorTime(b), 0
			for b.Loop() {
				row(b, i)
				i++
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
	run("outside", func(*testing.B, int) { base.fork().row() })
	run("bubble", func(b *testing.B, _ int) {
		inBubble(b, func() { base.fork().row() })
	})
	run("own definition", func(_ *testing.B, i int) {
		w := newWorld(b)
		w.create(widgetsWith(fmt.Sprint(i+2)), configMap("given"), widget("w", 1))
		w.row()
	})
	run("fork", func(*testing.B, int) { base.Fork(nil) })
}

// inBubble calls f in a bubble of its own, which benchmarks have no function for.
func inBubble(b *testing.B, f func()) {
	ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "bubble", F: func(t *testing.T) { synctest.Test(t, func(*testing.T) { f() }) },
	}})
	if !ok {
		b.Fatal("the row failed")
	}
}

// BenchmarkWorldCall measures single calls in a world.
func BenchmarkWorldCall(b *testing.B) {
	w := newWorld(b)
	given, custom, n := configMap("given"), widget("w", 1), 0
	w.create(widgets(), given, custom)
	next := func() string { n++; return fmt.Sprint("a", n) }
	for name, call := range map[string]func(){
		"get":        func() { w.get(given) },
		"get custom": func() { w.get(custom) },
		"create":     func() { w.create(configMap(next())) },
		"update":     func() { given.Data["a"] = next(); w.must(w.Update(w.ctx, given)) },
		"apply": func() {
			applied := corev1apply.ConfigMap("applied", "default").WithData(map[string]string{"a": next()})
			w.must(w.Apply(w.ctx, applied, client.FieldOwner("one")))
		},
	} {
		b.Run(name, func(b *testing.B) {
			before := processorTime(b)
			for b.Loop() {
				call()
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// BenchmarkWorldKind finds kinds in a world with twenty definitions.
func BenchmarkWorldKind(b *testing.B) {
	w := newWorld(b)
	for i := range 20 {
		d := widgets()
		name := "widget" + string(rune('a'+i))
		d.Name, d.Spec.Names.Plural, d.Spec.Names.Singular = name+"s.example.com", name+"s", name
		d.Spec.Names.Kind, d.Spec.Names.ListKind = "W"+name[1:], "W"+name[1:]+"List"
		w.give(d)
	}
	world := w.world()
	for _, kind := range []schema.GroupKind{
		{Kind: "ConfigMap"}, {Group: "example.com", Kind: "Widgett"}, {Group: "nodot", Kind: "Planet"},
	} {
		b.Run(kind.String(), func(b *testing.B) {
			for b.Loop() {
				if _, ok := world.Kind(kind); !ok {
					b.Fatal("the kind is not served")
				}
			}
		})
	}
}

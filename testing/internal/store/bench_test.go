package store_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// newFilledStore returns a store with 50 ConfigMaps.
func newFilledStore(b *testing.B) *store.Store {
	s := newStore(b)
	for i := range 50 {
		give(b, s, configMap(fmt.Sprintf("given-%d", i)))
	}
	return s
}

func BenchmarkFork(b *testing.B) {
	s := newFilledStore(b)
	b.ReportAllocs()
	for b.Loop() {
		s.Fork()
	}
}

func BenchmarkCreate(b *testing.B) {
	s := newFilledStore(b)
	c, n := s.Fork().Client(store.ClientOptions{}), 0
	b.ReportAllocs()
	for b.Loop() {
		if n++; n%50 == 0 {
			c = s.Fork().Client(store.ClientOptions{})
		}
		must(b, c.Create(b.Context(), configMap(fmt.Sprintf("one-%d", n))))
	}
}

func BenchmarkCreateGoType(b *testing.B) {
	s := newFilledStore(b)
	c, n := s.Fork().Client(store.ClientOptions{}), 0
	b.ReportAllocs()
	for b.Loop() {
		if n++; n%50 == 0 {
			c = s.Fork().Client(store.ClientOptions{})
		}
		must(b, c.Create(b.Context(), app(fmt.Sprintf("one-%d", n))))
	}
}

func BenchmarkCreateDefined(b *testing.B) {
	s := newFilledStore(b)
	give(b, s, widgets())
	c, n := s.Fork().Client(store.ClientOptions{}), 0
	b.ReportAllocs()
	for b.Loop() {
		if n++; n%50 == 0 {
			c = s.Fork().Client(store.ClientOptions{})
		}
		must(b, c.Create(b.Context(), widget(fmt.Sprintf("one-%d", n))))
	}
}

func BenchmarkGetDefined(b *testing.B) {
	s := newFilledStore(b)
	give(b, s, widgets(), widget("one"))
	c := s.Client(store.ClientOptions{})
	b.ReportAllocs()
	for b.Loop() {
		read(b, c, widget("one"))
	}
}

func BenchmarkList(b *testing.B) {
	c := newFilledStore(b).Client(store.ClientOptions{})
	b.ReportAllocs()
	for b.Loop() {
		must(b, c.List(b.Context(), &corev1.ConfigMapList{}))
	}
}

func BenchmarkGet(b *testing.B) {
	s := newFilledStore(b)
	c := s.Client(store.ClientOptions{})
	cm, key := &corev1.ConfigMap{}, client.ObjectKey{Namespace: "ns", Name: "given-1"}
	b.ReportAllocs()
	for b.Loop() {
		must(b, c.Get(b.Context(), key, cm))
	}
}

func BenchmarkUpdateOfNothing(b *testing.B) {
	s := newFilledStore(b)
	c := s.Client(store.ClientOptions{})
	cm := read(b, c, configMap("given-1"))
	b.ReportAllocs()
	for b.Loop() {
		must(b, c.Update(b.Context(), cm))
	}
}

func BenchmarkUpdate(b *testing.B) {
	s := newFilledStore(b)
	c, n := s.Client(store.ClientOptions{}), 0
	cm := read(b, c, configMap("given-1"))
	b.ReportAllocs()
	for b.Loop() {
		n++
		cm.Data["n"] = fmt.Sprint(n)
		must(b, c.Update(b.Context(), cm))
	}
}

func BenchmarkPatch(b *testing.B) {
	s := newFilledStore(b)
	c, n := s.Client(store.ClientOptions{}), 0
	cm := read(b, c, configMap("given-1"))
	b.ReportAllocs()
	for b.Loop() {
		n++
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n))
		must(b, c.Patch(b.Context(), cm, patch))
	}
}

func BenchmarkApply(b *testing.B) {
	s := newFilledStore(b)
	c, n := s.Client(store.ClientOptions{FieldManager: "bench"}), 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		cm := configMap("given-1")
		cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		cm.Data["n"] = fmt.Sprint(n)
		//lint:ignore SA1019 it converts nothing
		must(b, c.Patch(b.Context(), cm, client.Apply, client.ForceOwnership))
	}
}

func BenchmarkCollectNoGarbage(b *testing.B) {
	s := newFilledStore(b)
	b.ReportAllocs()
	for b.Loop() {
		f := s.Fork()
		f.CollectGarbage()
	}
}

// BenchmarkNew makes a store and uses two kinds, as a test does.
func BenchmarkNew(b *testing.B) {
	scheme := newScheme()
	b.ReportAllocs()
	for b.Loop() {
		s := store.New(store.Options{Scheme: scheme})
		must(b, s.Give(app("one"), configMap("one")))
	}
}

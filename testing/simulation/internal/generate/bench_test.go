package generate_test

import (
	"testing"
)

func BenchmarkResource(b *testing.B) {
	for kind := range definitions {
		b.Run(kind, func(b *testing.B) {
			g, r := generator(b, kind), source(1)
			for b.Loop() {
				draw(b, g, r)
			}
		})
	}
}

func BenchmarkEdit(b *testing.B) {
	for kind := range definitions {
		b.Run(kind, func(b *testing.B) {
			g, r := generator(b, kind), source(1)
			obj := draw(b, g, r)
			for b.Loop() {
				obj = g.Edit(r, obj)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for kind := range definitions {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				generator(b, kind)
			}
		})
	}
}

package inventory_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
)

func BenchmarkObjects(b *testing.B) {
	many := large(false)
	prepare := func(b *testing.B) (*inventory.Objects, []apis.InventoryRecord) {
		store := open(b, optionsFor(newWorld(b).link(b), ""))
		mustLoad(b, store)
		all := records(many, ready)
		mustSave(b, store, all)
		b.ReportAllocs()
		b.ResetTimer()
		return store, all
	}
	b.Run("Load", func(b *testing.B) {
		store, _ := prepare(b)
		for b.Loop() {
			mustLoad(b, store)
		}
	})
	b.Run("SaveNothingChanged", func(b *testing.B) {
		store, all := prepare(b)
		for b.Loop() {
			mustSave(b, store, all)
		}
	})
	b.Run("SaveOneChanged", func(b *testing.B) {
		store, all := prepare(b)
		for b.Loop() {
			all[many/2].Generation++
			mustSave(b, store, all)
		}
	})
	b.Run("SaveAllNew", func(b *testing.B) {
		all := records(many, record)
		b.ReportAllocs()
		for b.Loop() {
			store := open(b, optionsFor(newWorld(b).link(b), ""))
			mustLoad(b, store)
			mustSave(b, store, all)
		}
	})
}

func BenchmarkStatus(b *testing.B) {
	const fit = 3000
	status := &apis.ComponentStatus{Inventory: compacted(records(fit, ready))}
	all := records(fit, ready)
	b.Run("Load", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mustLoad(b, inventory.NewStatus(status))
		}
	})
	b.Run("SaveNothingChanged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mustSave(b, inventory.NewStatus(status), all)
		}
	})
}

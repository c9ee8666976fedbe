package tenant_test

import (
	"testing"

	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// TestL11Faults tells a short story of a tenant with a fault at each request of the operator, one at a time: the
// tenant is created and deleted. Deleted, it is gone from the directory, too.
func TestL11Faults(t *testing.T) {
	before, after := &stories.End{Kinds: kinds}, &stories.End{Kinds: kinds}
	simulation.RunFaults(t, cluster(t), func(w *simulation.World) {
		dir := directories.Of(w)
		tenant := newTenant("acme")
		w.Create(tenant)
		w.Rest()
		isReady(w, tenant)
		isListed(w, dir, tenant)
		before.Compare(w)
		w.Delete(tenant)
		w.Rest()
		if _, _, listed := dir.Lookup(tenant.Name); listed || w.Exists(tenant) {
			w.Errorf("of the deleted tenant there is still something; in the directory: %t", listed)
		}
		after.Compare(w)
	})
}

package store_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	for _, obj := range []client.Object{configMap("one"), app("one")} {
		c := newClient(t)
		must(t, c.Create(t.Context(), obj))
		if obj.GetUID() == "" || obj.GetResourceVersion() != "1000" || !obj.GetCreationTimestamp().Time.Equal(now) {
			t.Errorf("got %+v", obj)
		}
		if got := read(t, c, obj); got.GetUID() != obj.GetUID() {
			t.Errorf("got %+v, want %+v", got, obj)
		}
	}
}

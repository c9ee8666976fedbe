package foreign_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
)

func TestCheckOfWhatIsGoneOrDefinesNoTypes(t *testing.T) {
	t.Parallel()
	g := newGuard(t, plane.Config(t))
	gone := keyOf(crdOf("Gone"))
	service := plan.Key{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.gone.example.com"}
	for _, key := range []plan.Key{gone, service} {
		use, err := g.Check(t.Context(), key, true)
		assertUse(t, use, err, none)
		use, err = g.Delete(t.Context(), key, "uid")
		assertUse(t, use, err, none)
		if err := g.Lift(t.Context(), key); err != nil {
			t.Error(err)
		}
		if _, err := g.Delete(t.Context(), key, ""); err == nil {
			t.Error("deleted without a UID")
		}
	}
	other := plan.Key{Kind: "ConfigMap", Namespace: "app", Name: "x"}
	const want = "ConfigMap app/x: defines no types"
	if _, err := g.Check(t.Context(), other, false); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	if _, err := g.Delete(t.Context(), other, "uid"); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	if err := g.Lift(t.Context(), other); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
}

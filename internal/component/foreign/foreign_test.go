package foreign_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
)

func TestCheckOfWhatIsGoneOrDefinesNoTypes(t *testing.T) {
	t.Parallel()
	g := newGuard(t, plane.Config(t))
	gone := keyOf(crdOf("Gone"))
	use, err := checkOne(t.Context(), g, gone, true)
	assertUse(t, use, err, none)
	use, err = deleteOne(t.Context(), g, gone, "uid")
	assertUse(t, use, err, none)
	if err := g.Lift(t.Context(), gone); err != nil {
		t.Error(err)
	}
	if _, err := deleteOne(t.Context(), g, gone, ""); err == nil {
		t.Error("deleted without a UID")
	}
	other := plan.Key{Kind: "ConfigMap", Namespace: "app", Name: "x"}
	const want = "ConfigMap app/x: defines no types"
	if _, err := checkOne(t.Context(), g, other, false); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	if _, err := deleteOne(t.Context(), g, other, "uid"); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	if err := g.Lift(t.Context(), other); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
}

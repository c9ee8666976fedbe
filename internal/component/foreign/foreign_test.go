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
		t.Error("the delete without a UID has no error, want one")
	}
	other := plan.Key{Kind: "ConfigMap", Namespace: "app", Name: "x"}
	const want = "ConfigMap app/x: defines no types"
	if _, err := checkOne(t.Context(), g, other, false); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
	if _, err := deleteOne(t.Context(), g, other, "uid"); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
	if err := g.Lift(t.Context(), other); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

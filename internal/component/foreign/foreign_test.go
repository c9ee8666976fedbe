package foreign_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/foreign"
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

// The annotation under the prefix of the component comes before the one under the shared prefix.
func TestIgnoresForeign(t *testing.T) {
	const key = "garden.example.com/foreign-instances"
	const shared = "espalier.dev/foreign-instances"
	for _, test := range []struct {
		annotations map[string]string
		want        bool
	}{
		{nil, false},
		{map[string]string{key: " Ignore"}, true},
		{map[string]string{shared: "ignore"}, true},
		{map[string]string{key: "block", shared: "ignore"}, false},
		{map[string]string{"other.example.com/foreign-instances": "ignore"}, false},
	} {
		if got := foreign.IgnoresForeign(test.annotations, key); got != test.want {
			t.Errorf("with %v, foreign instances are ignored: %t, want %t", test.annotations, got, test.want)
		}
	}
}

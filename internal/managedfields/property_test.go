package managedfields_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// randomContent is some content, of maps mostly.
func randomContent(r *rand.Rand, depth int) any {
	kind := r.IntN(10)
	if depth == 0 {
		kind = 4 + r.IntN(6)
	}
	switch kind {
	case 0, 1, 2:
		members := map[string]any{}
		for range r.IntN(4) {
			members[[]string{"a", "a.b", "name", "", `k:{"x":1}`, "f:a", "."}[r.IntN(7)]] = randomContent(r, depth-1)
		}
		return members
	case 3:
		var items []any
		for range r.IntN(4) {
			items = append(items, randomContent(r, depth-1))
		}
		return items
	case 4, 5:
		return int64(r.IntN(3))
	case 6:
		return r.IntN(2) == 0
	case 7:
		return float64(r.IntN(4)) / 2
	default:
		return []string{"", "x", "1"}[r.IntN(3)]
	}
}

// What has just been applied is in sync: by the very sets of fields that the API machinery makes, and with nothing
// owned beyond. With one field more or less it is not.
func TestWhatWasAppliedIsInSync(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		body := map[string]any{"spec": randomContent(r, 4), "kept": "x"}
		value, err := typed.DeducedParseableType.FromUnstructured(body)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := value.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := fields.ToJSON()
		if err != nil {
			t.Fatal(err)
		}
		entries := []metav1.ManagedFieldsEntry{managedEntry("me", metav1.ManagedFieldsOperationApply, string(raw))}
		wanted := runtime.DeepCopyJSON(body)
		wanted["apiVersion"], wanted["kind"] = "v1", "A"
		there := runtime.DeepCopyJSON(wanted)
		there["status"] = map[string]any{"x": "y"}
		if found := differences(wanted, there, entries, false); len(found) > 0 {
			t.Fatalf("%d: %v is not in sync with itself, given %s: %v", i, wanted, raw, found)
		}

		less := runtime.DeepCopyJSON(wanted)
		delete(less, "kept")
		more := runtime.DeepCopyJSON(wanted)
		more["more"] = "x"
		other := runtime.DeepCopyJSON(there)
		other["kept"] = "y"
		for what, found := range map[string][]string{
			".kept left over": differences(less, there, entries, false),
			".more not ours":  differences(more, there, entries, false),
			".kept differs":   differences(wanted, other, entries, false),
		} {
			if fmt.Sprint(found) != "["+what+"]" {
				t.Fatalf("%d: %v, given %s: found %v, want %s", i, wanted, raw, found, what)
			}
		}
	}
}

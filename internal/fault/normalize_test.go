package fault_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/fault"
)

func TestNamesNormalize(t *testing.T) {
	t.Parallel()
	made := fault.Made{GenerateName: "x-", Fields: func() map[string]any { return nil }}
	names := fault.NewNames(map[fault.Key]*fault.Made{{Name: "x-7"}: &made})
	got := names.Normalize(map[string]any{
		"metadata": map[string]any{
			"name": "x-7", "uid": "u", "resourceVersion": "1", "generation": int64(2), "managedFields": []any{},
			"finalizers":        []any{"b", "a"},
			"deletionTimestamp": "2026-01-01T00:00:00Z",
			"labels":            map[string]any{"x-7": "until 2026-01-01T00:00:00.5+01:00!"},
		},
		"status": map[string]any{
			"observedGeneration": int64(1),
			"items":              []any{map[string]any{"observedGeneration": int64(9), "n": int64(1)}},
			"active": []any{map[string]any{
				"kind": "Job", "namespace": "a", "name": "x-7", "uid": "u", "resourceVersion": "7",
			}},
			"seen": map[string]any{"name": "n", "resourceVersion": "7", "attempts": int64(1)},
			"conditions": []any{
				map[string]any{"type": "B", "observedGeneration": int64(2)},
				map[string]any{"type": "A", "lastTransitionTime": "2026-01-01T00:00:00Z"},
			},
		},
	}, "")
	want := map[string]any{
		"metadata": map[string]any{
			"name": "x-*", "finalizers": []any{"a", "b"}, "deletionTimestamp": "a time",
			"labels": map[string]any{"x-*": "until a time!"},
		},
		"status": map[string]any{
			"observedGeneration": "outdated", "items": []any{map[string]any{"n": int64(1)}},
			"active": []any{map[string]any{"kind": "Job", "namespace": "a", "name": "x-*"}},
			"seen":   map[string]any{"name": "n", "resourceVersion": "7", "attempts": int64(1)},
			"conditions": []any{
				map[string]any{"type": "A"}, map[string]any{"type": "B", "observedGeneration": "current"},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

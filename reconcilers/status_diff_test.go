package reconcilers_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The log has what changes in a status, and of a large inventory only how many objects are in which phase.
func TestStatusDiff(t *testing.T) {
	for name, tc := range map[string]struct {
		records       int
		want, without string
	}{
		"few records":  {20, `"phase": "Ready"`, "map["},
		"many records": {21, `"inventory": "map[Ready:21]"`, `"phase"`},
	} {
		t.Run(name, func(t *testing.T) {
			assembly := resources.NewAssembly(widgetKey.Namespace, widgetKey.Name)
			expect := rtesting.ExpectConfig{
				Scheme: resources.NewScheme(), GivenObjects: []client.Object{assembly}, StatusSubResourceTypes: []client.Object{assembly},
			}
			root := &reconcilers.ResourceReconciler[*resources.Assembly]{
				Config: expect.Config(),
				Reconciler: &reconcilers.SyncReconciler[*resources.Assembly]{
					Sync: func(_ context.Context, assembly *resources.Assembly) error {
						for i := range tc.records {
							assembly.Status.Inventory = append(assembly.Status.Inventory, apis.InventoryRecord{
								Version: "v1", Kind: "ConfigMap", Name: strconv.Itoa(i), Phase: apis.PhaseReady,
							})
						}
						return nil
					},
				},
			}
			var diff string
			logger := funcr.NewJSON(func(line string) {
				var entry struct{ Diff string }
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Error(err)
				}
				diff += entry.Diff
			}, funcr.Options{Verbosity: 2})
			if _, err := root.Reconcile(logr.NewContext(t.Context(), logger), widgetRequest); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(diff, tc.want) || strings.Contains(diff, tc.without) {
				t.Errorf("the log has\n%s\nwant %s in it and not %s", diff, tc.want, tc.without)
			}
		})
	}
}

func TestIgnoreAllUnexported(t *testing.T) {
	type fields struct {
		Exported   any
		unexported any
		_          int
	}
	for name, tc := range map[string]struct {
		a, b any
		want bool
	}{
		"unexported":             {fields{unexported: 1}, fields{unexported: 2}, true},
		"unexported, deeper":     {[]any{&fields{Exported: fields{unexported: 1}}}, []any{&fields{Exported: fields{unexported: 2}}}, true},
		"exported":               {fields{Exported: 1}, fields{Exported: 2}, false},
		"exported, of interface": {fields{Exported: fields{Exported: 1}}, fields{Exported: fields{Exported: 2}}, false},
		"key of a map":           {map[string]int{".key": 1}, map[string]int{".key": 2}, false},
		"element":                {[]int{1}, []int{2}, false},
		"value":                  {1, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cmp.Equal(tc.a, tc.b, reconcilers.IgnoreAllUnexported); got != tc.want {
				t.Errorf("equal is %t, want %t", got, tc.want)
			}
		})
	}
}

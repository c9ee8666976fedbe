package inventory

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSizeIsThatOfTheJSON(t *testing.T) {
	full := apis.InventoryRecord{
		Group: "g", Version: "v1", Kind: "Kind", Namespace: "ns", Name: "name", UID: "uid",
		AdoptionPolicy: apis.AdoptAlways, ReconcilePolicy: apis.ReconcileOnce, UpdatePolicy: apis.UpdateRecreate,
		DeletePolicy: apis.DeleteOrphan, PrunePolicy: apis.PruneAfter,
		ApplyOrder: math.MinInt16, PurgeOrder: new(int16), DeleteOrder: math.MaxInt16,
		ManagedTypes: []apis.ManagedType{{Group: "g", Version: "*", Kind: "K"}, {}}, IgnoreForeignInstances: true,
		Digest: "d", Fields: "f", Generation: math.MaxInt64,
		Phase: apis.PhaseScheduledForApplication, Status: apis.ObjectTerminating, Message: "m",
		LastAppliedAt: &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("east", 3600))},
	}
	value := reflect.ValueOf(full)
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Errorf("the record of the test lacks %s", value.Type().Field(i).Name)
		}
	}
	all := []apis.InventoryRecord{full, {}}
	for _, message := range []string{
		"plain", `"quotes" and \`, "\n\r\t\b\f", "\x00\x1f\x7f", "<a & b>", "ünïcödé 🌳", "\u2028 \u2029", "\xff broken \xc3", "\ufffd",
	} {
		all = append(all, apis.InventoryRecord{Message: message})
	}
	for i := range all {
		raw, err := json.Marshal(all[i])
		if err != nil {
			t.Fatal(err)
		}
		if got := size(&all[i]); got != len(raw) {
			t.Errorf("%d instead of %d bytes for %s", got, len(raw), raw)
		}
	}
	for n := range all {
		raw, err := json.Marshal(all[:n])
		if err != nil {
			t.Fatal(err)
		}
		if got := sizeOf(all[:n]); got != len(raw) {
			t.Errorf("%d instead of %d bytes for %d records", got, len(raw), n)
		}
	}
}

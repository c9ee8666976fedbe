package inventory_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCompact: defaults take no room.
func TestCompact(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("x", inventory.MaxMessage)
	tests := map[string]struct{ given, want apis.InventoryRecord }{
		"defaults go": {
			given: apis.InventoryRecord{
				AdoptionPolicy: apis.AdoptNever, ReconcilePolicy: apis.ReconcileOnObjectChange, UpdatePolicy: apis.UpdateApply,
				DeletePolicy: apis.DeleteDelete, Phase: apis.PhaseReady, Status: apis.ObjectCurrent,
				ManagedTypes: []apis.ManagedType{}, LastAppliedAt: &metav1.Time{},
			},
			want: apis.InventoryRecord{Phase: apis.PhaseReady},
		},
		"what differs stays": {
			given: apis.InventoryRecord{
				AdoptionPolicy: apis.AdoptIfUnowned, Adopted: true, ReconcilePolicy: apis.ReconcileOnce, UpdatePolicy: apis.UpdateReplace,
				DeletePolicy: apis.DeleteOrphan, PrunePolicy: apis.PruneAfter, Phase: apis.PhaseReady, Status: apis.ObjectFailed,
				PurgeOrder: new(int16),
			},
			want: apis.InventoryRecord{
				AdoptionPolicy: apis.AdoptIfUnowned, Adopted: true, ReconcilePolicy: apis.ReconcileOnce, UpdatePolicy: apis.UpdateReplace,
				DeletePolicy: apis.DeleteOrphan, PrunePolicy: apis.PruneAfter, Phase: apis.PhaseReady, Status: apis.ObjectFailed,
				PurgeOrder: new(int16),
			},
		},
		// It is not the default of an object that holds data.
		"the prune policy with stays": {
			given: apis.InventoryRecord{PrunePolicy: apis.PruneWith}, want: apis.InventoryRecord{PrunePolicy: apis.PruneWith},
		},
		"Current says something in another phase": {
			given: apis.InventoryRecord{Phase: apis.PhaseUpdating, Status: apis.ObjectCurrent},
			want:  apis.InventoryRecord{Phase: apis.PhaseUpdating, Status: apis.ObjectCurrent},
		},
		"times have seconds": {
			given: apis.InventoryRecord{LastAppliedAt: &metav1.Time{Time: noon.Add(999 * time.Millisecond)}},
			want:  apis.InventoryRecord{LastAppliedAt: &metav1.Time{Time: noon}},
		},
		"a message that fits stays":  {given: apis.InventoryRecord{Message: long}, want: apis.InventoryRecord{Message: long}},
		"a long message is cut":      {given: apis.InventoryRecord{Message: long + "x"}, want: apis.InventoryRecord{Message: long[:253] + "…"}},
		"a rune is not cut in two":   {given: apis.InventoryRecord{Message: long[:252] + "ééé"}, want: apis.InventoryRecord{Message: long[:252] + "…"}},
		"a message is made to text":  {given: apis.InventoryRecord{Message: "a\xff\xfeb"}, want: apis.InventoryRecord{Message: "a\ufffdb"}},
		"nothing comes from nothing": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := inventory.Compact(tc.given)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := inventory.Compact(got); !reflect.DeepEqual(again, got) {
				t.Errorf("what is compact changed to %v, want %v", again, got)
			}
			if len(got.Message) > inventory.MaxMessage || !utf8.ValidString(got.Message) {
				t.Errorf("the message is %q, want valid UTF-8 of at most %d bytes", got.Message, inventory.MaxMessage)
			}
			if !inventory.Equal([]apis.InventoryRecord{tc.given}, []apis.InventoryRecord{got}) {
				t.Errorf("the compact record %v does not equal %v, want that it does", got, tc.given)
			}
		})
	}
}

// TestEqualSeesEachField finds a field that is added to the record and not compared.
func TestEqualSeesEachField(t *testing.T) {
	fields := reflect.TypeFor[apis.InventoryRecord]()
	for i := range fields.NumField() {
		t.Run(fields.Field(i).Name, func(t *testing.T) {
			a, b := ready(1), ready(1)
			a.Status, b.Status = apis.ObjectFailed, apis.ObjectFailed
			change(t, reflect.ValueOf(&b).Elem().Field(i))
			if inventory.Equal([]apis.InventoryRecord{a}, []apis.InventoryRecord{b}) {
				t.Errorf("%v and %v are equal, want that they are not", a, b)
			}
			if !inventory.Equal([]apis.InventoryRecord{b}, []apis.InventoryRecord{b}) {
				t.Errorf("%v is not equal to itself, want that it is", b)
			}
		})
	}
}

// change gives a field a value that is neither what it was nor a default.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case *metav1.Time:
		v.Set(reflect.ValueOf(&metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}))
		return
	case *int16:
		v.Set(reflect.ValueOf(new(int16)))
		return
	case []apis.ManagedType:
		v.Set(reflect.ValueOf([]apis.ManagedType{{Group: "g", Version: "v", Kind: "k"}, {Kind: "*"}}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("Another")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int16, reflect.Int64:
		v.SetInt(v.Int() - 77)
	default:
		t.Fatalf("the type to change is %s, want one that the test knows how to change", v.Type())
	}
}

func TestEqual(t *testing.T) {
	three := records(3, ready)
	reversed := slices.Clone(three)
	slices.Reverse(reversed)
	tests := map[string]struct {
		a, b []apis.InventoryRecord
		want bool
	}{
		"nothing":              {want: true},
		"nil and empty":        {b: []apis.InventoryRecord{}, want: true},
		"the same":             {a: three, b: three, want: true},
		"in another order":     {a: three, b: reversed, want: true},
		"one less":             {a: three, b: three[:2]},
		"another one":          {a: three, b: append(slices.Clone(three[:2]), ready(4))},
		"another content":      {a: three, b: append(slices.Clone(three[:2]), record(2))},
		"one of them twice":    {a: three, b: append(slices.Clone(three[:2]), three[0])},
		"the other way round":  {a: append(slices.Clone(three[:2]), three[0]), b: three},
		"defaults spelled out": {a: records(1, ready), b: []apis.InventoryRecord{inventory.Compact(ready(0))}, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := inventory.Equal(tc.a, tc.b); got != tc.want {
				t.Errorf("that the records are equal is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	got := inventory.Keys(records(2, ready))
	want := map[plan.Key]struct{}{
		{Kind: "ConfigMap", Namespace: "team-0", Name: "settings-of-service-0"}: {},
		{Kind: "ConfigMap", Namespace: "team-1", Name: "settings-of-service-1"}: {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	with := func(f func(*apis.InventoryRecord)) []apis.InventoryRecord {
		all := records(3, ready)
		f(&all[1])
		return all
	}
	const second = "record 1 of the inventory (ConfigMap team-1/settings-of-service-1)"
	tests := map[string]struct {
		records []apis.InventoryRecord
		want    string
	}{
		"none":    {},
		"good":    {records: records(30, ready)},
		"no kind": {records: with(func(r *apis.InventoryRecord) { r.Kind = "" }), want: "record 1 of the inventory ( team-1/settings-of-service-1): it has no kind"},
		"no name": {records: with(func(r *apis.InventoryRecord) { r.Name = "" }), want: "record 1 of the inventory (ConfigMap team-1/): it has no name"},
		"no text": {
			records: with(func(r *apis.InventoryRecord) { r.Group = "\xff" }),
			want:    second + `: "\xff" is no text`,
		},
		"no part of a path": {
			records: with(func(r *apis.InventoryRecord) { r.Name = "a/b" }),
			want:    `record 1 of the inventory (ConfigMap team-1/a/b): "a/b" may not contain '/'`,
		},
		"twice": {
			records: append(records(3, ready), record(1)),
			want:    "record 3 of the inventory (ConfigMap team-1/settings-of-service-1) is about the same object as record 1",
		},
		"a version more is the same object": {
			records: append(records(2, ready), func() apis.InventoryRecord { r := record(1); r.Version = "v2"; return r }()),
			want:    "record 2 of the inventory (ConfigMap team-1/settings-of-service-1) is about the same object as record 1",
		},
		"adoption policy":  {records: with(func(r *apis.InventoryRecord) { r.AdoptionPolicy = "Odd" }), want: second + `: its adoption policy is "Odd", which is not known`},
		"reconcile policy": {records: with(func(r *apis.InventoryRecord) { r.ReconcilePolicy = "Odd" }), want: second + `: its reconcile policy is "Odd", which is not known`},
		"update policy":    {records: with(func(r *apis.InventoryRecord) { r.UpdatePolicy = "Odd" }), want: second + `: its update policy is "Odd", which is not known`},
		"delete policy":    {records: with(func(r *apis.InventoryRecord) { r.DeletePolicy = "Odd" }), want: second + `: its delete policy is "Odd", which is not known`},
		"prune policy":     {records: with(func(r *apis.InventoryRecord) { r.PrunePolicy = "Odd" }), want: second + `: its prune policy is "Odd", which is not known`},
		"phase":            {records: with(func(r *apis.InventoryRecord) { r.Phase = "Odd" }), want: second + `: its phase is "Odd", which is not known`},
		"status":           {records: with(func(r *apis.InventoryRecord) { r.Status = "Odd" }), want: second + `: its status is "Odd", which is not known`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := inventory.Validate(tc.records); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

package fieldmanager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

type object = map[string]any

// configMaps returns what manages the fields of ConfigMaps.
func configMaps() *fieldmanager.Manager {
	return fieldmanager.New(corev1.SchemeGroupVersion.WithKind("ConfigMap"), fieldmanager.BuiltIn,
		func() client.Object { return &corev1.ConfigMap{} }, none)
}

// none is what no request cannot write.
func none(string) map[fieldpath.APIVersion]*fieldpath.Set { return nil }

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: data}
}

// applied returns what is sent to apply an object with a field.
func applied(version, kind, field string, value any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": version, "kind": kind, "metadata": object{"namespace": "default", "name": "one"}, field: value,
	}}
}

// Replays make the same applies again and again.
func TestEqualAppliesAreComputedOnce(t *testing.T) {
	t.Parallel()
	type request struct {
		live   *corev1.ConfigMap
		config *unstructured.Unstructured
		force  bool
		write  fieldmanager.Write
	}
	newRequest := func() *request {
		return &request{
			configMap(map[string]string{"l": "1"}), applied("v1", "ConfigMap", "data", object{"k": "1"}), false,
			fieldmanager.Write{Manager: "a", Time: time.Unix(0, 0)},
		}
	}
	apply := func(t *testing.T, m *fieldmanager.Manager, r *request) (client.Object, *fieldmanager.Fields) {
		t.Helper()
		obj, fields, err := m.Applied(r.live, nil, r.config, r.force, r.write)
		if err != nil {
			t.Fatal(err)
		}
		return obj, fields
	}
	for name, tc := range map[string]struct {
		change func(*request)
		known  bool
	}{
		"equal":               {change: func(*request) {}, known: true},
		"another live object": {change: func(r *request) { r.live.Data["l"] = "2" }},
		"another value":       {change: func(r *request) { r.config.Object["data"] = object{"k": "2"} }},
		"another name":        {change: func(r *request) { r.config.SetName("two") }},
		"another manager":     {change: func(r *request) { r.write.Manager = "b" }},
		"another subresource": {change: func(r *request) { r.write.Subresource = "status" }},
		"another time":        {change: func(r *request) { r.write.Time = time.Unix(1, 0) }},
		"force":               {change: func(r *request) { r.force = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, first, second := configMaps(), newRequest(), newRequest()
			before, fieldsBefore := apply(t, m, first)
			tc.change(second)
			want, wantedFields := apply(t, configMaps(), second)
			got, fields := apply(t, m, second)
			if diff := cmp.Diff(want, got) + cmp.Diff(wantedFields.Entries(), fields.Entries()); diff != "" {
				t.Errorf("the answer differs from that of a manager that knows nothing (-want, +got):\n%s", diff)
			}
			if (fields == fieldsBefore) != tc.known {
				t.Errorf("known: %v, wanted %v", !tc.known, tc.known)
			}
			again, _ := apply(t, m, second)
			if got == before || again == got {
				t.Error("two answers are one object")
			}
		})
	}
}

// The result belongs to the caller, who completes it.
func TestAppliedResultIsACopy(t *testing.T) {
	t.Parallel()
	config := applied("example.com/v1", "Gadget", "spec", object{"list": []any{object{"k": "v"}}})
	m := fieldmanager.New(config.GroupVersionKind(), managedfields.NewDeducedTypeConverter,
		func() client.Object { return &unstructured.Unstructured{Object: object{}} }, none)
	live, fields, err := m.Applied(nil, nil, config, false, fieldmanager.Write{Manager: "a"})
	if err != nil {
		t.Fatal(err)
	}
	other := applied("example.com/v1", "Gadget", "data", "1")
	result, _, err := m.Applied(live, fields, other, false, fieldmanager.Write{Manager: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{result, live} {
		firstItem(obj)["k"] = "changed"
		if got := firstItem(config)["k"]; got != "v" {
			t.Fatalf("a change of a result changes what was applied to %v", got)
		}
		if got := firstItem(live)["k"]; obj == result && got != "v" {
			t.Fatalf("a change of a result changes the live object to %v", got)
		}
	}
}

// firstItem returns the first item of the list of a Gadget.
func firstItem(obj client.Object) object {
	items, _, _ := unstructured.NestedFieldNoCopy(obj.(*unstructured.Unstructured).Object, "spec", "list")
	return items.([]any)[0].(object)
}

func TestCausesOfAConflictAreInOrder(t *testing.T) {
	t.Parallel()
	m, live, fields := configMaps(), client.Object(nil), (*fieldmanager.Fields)(nil)
	data := object{}
	for _, manager := range []string{"e", "b", "d", "a", "c"} {
		data[manager] = "other"
		config := applied("v1", "ConfigMap", "data", object{manager: "1"})
		var err error
		if live, fields, err = m.Applied(live, fields, config, false, fieldmanager.Write{Manager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := m.Applied(live, fields, applied("v1", "ConfigMap", "data", data), false, fieldmanager.Write{})
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		t.Fatalf("got the error %v, want a conflict", err)
	}
	var got []string
	for _, cause := range status.Status().Details.Causes {
		got = append(got, cause.Field)
	}
	if want := []string{".data.a", ".data.b", ".data.c", ".data.d", ".data.e"}; !slices.Equal(got, want) {
		t.Errorf("the causes are about %v, want %v", got, want)
	}
}

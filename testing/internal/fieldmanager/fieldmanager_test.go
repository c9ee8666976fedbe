package fieldmanager_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

// configMap returns a ConfigMap with data.
func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: data}
}

// applied returns what is sent to apply a ConfigMap with data.
func applied(data object) *unstructured.Unstructured {
	config := testKinds["ConfigMap"].identity()
	config["data"] = data
	return &unstructured.Unstructured{Object: config}
}

func configMaps() *fieldmanager.Manager {
	kind := testKinds["ConfigMap"]
	return fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create)
}

// owners returns the owned fields by "manager operation subresource version".
func owners(fields *fieldmanager.Fields) map[string]string {
	owned := map[string]string{}
	for _, e := range fields.Entries() {
		owned[fmt.Sprintf("%s %s %s %s", e.Manager, e.Operation, e.Subresource, e.APIVersion)] = e.FieldsV1.GetRawString()
	}
	return owned
}

func TestAppliedToAnObjectOfUnknownManagers(t *testing.T) {
	t.Parallel()
	live := configMap(map[string]string{"k": "1"})
	live.UID, live.ManagedFields = "given", []metav1.ManagedFieldsEntry{{Manager: "ignored"}}
	live.SetGroupVersionKind(testKinds["ConfigMap"].GroupVersionKind)
	m := configMaps()
	if fields := m.Updated(live, live, nil, fieldmanager.Write{Manager: "a"}); fields != nil {
		t.Errorf("an update made %v known", owners(fields))
	}
	result, fields, err := m.Applied(live, nil, applied(object{"l": "1"}), false, fieldmanager.Write{Manager: "a"})
	if err != nil || result.GetManagedFields() != nil {
		t.Fatalf("the object has managed fields %v, error %v", result.GetManagedFields(), err)
	}
	want := map[string]string{
		"before-first-apply Update  v1": `{"f:data":{".":{},"f:k":{}}}`,
		"a Apply  v1":                   `{"f:data":{"f:l":{}}}`,
	}
	if diff := cmp.Diff(want, owners(fields)); diff != "" {
		t.Errorf("managed fields differ (-want, +got):\n%s", diff)
	}
}

func TestAppliedWithoutChange(t *testing.T) {
	t.Parallel()
	m, config, then := configMaps(), applied(object{"k": "1"}), time.Unix(1_000, 0)
	live, fields, err := m.Applied(nil, nil, config, false, fieldmanager.Write{Manager: "a", Time: then})
	if err != nil {
		t.Fatal(err)
	}
	later := fieldmanager.Write{Manager: "a", Time: then.Add(time.Hour + time.Millisecond)}
	again, fieldsAgain, err := m.Applied(live, fields, config, false, later)
	if err != nil || again != live || fieldsAgain != fields {
		t.Errorf("the same apply again changed something, error %v", err)
	}
	later.Manager = "b"
	again, fieldsAgain, err = m.Applied(live, fields, config, false, later)
	if err != nil || again != live || fieldsAgain.SameOwners(fields) || len(fieldsAgain.Entries()) != 2 {
		t.Errorf("the same apply by another manager has to add an owner alone, error %v", err)
	}
	later.Manager = "a"
	moved, fieldsAgain, err := m.Applied(live, fields, applied(object{"k": "2"}), false, later)
	if err != nil || moved == live || !fieldsAgain.SameOwners(fields) {
		t.Errorf("an apply of another value has to keep the owners, error %v", err)
	}
	if got := fieldsAgain.Entries()[0].Time; !got.Time.Equal(then.Add(time.Hour)) {
		t.Errorf("the time of the change is %v", got)
	}
}

// Replays make the same applies again and again.
func TestEqualAppliesAreComputedOnce(t *testing.T) {
	t.Parallel()
	type request struct {
		live *corev1.ConfigMap
		step
	}
	newRequest := func() *request {
		return &request{configMap(map[string]string{"l": "1"}), step{
			config: applied(object{"k": "1"}), write: fieldmanager.Write{Manager: "a"},
		}}
	}
	for name, tc := range map[string]struct {
		change func(*request)
		known  bool
	}{
		"equal":               {change: func(*request) {}, known: true},
		"another live object": {change: func(r *request) { r.live.Data["l"] = "2" }},
		"another value":       {change: func(r *request) { r.config = applied(object{"k": "2"}) }},
		"another name":        {change: func(r *request) { r.config.SetName("two") }},
		"another manager":     {change: func(r *request) { r.write.Manager = "b" }},
		"another subresource": {change: func(r *request) { r.write.Subresource = "status" }},
		"another time":        {change: func(r *request) { r.write.Time = time.Unix(1, 0) }},
		"force":               {change: func(r *request) { r.force = true }},
		"status apart":        {change: func(r *request) { r.write.HasStatus = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, first, second := configMaps(), newRequest(), newRequest()
			before, fieldsBefore, err := writeOurs(m, first.live, nil, first.step)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(second)
			want, wantedFields, _ := writeOurs(configMaps(), second.live, nil, second.step)
			got, fields, err := writeOurs(m, second.live, nil, second.step)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got) + cmp.Diff(wantedFields.Entries(), fields.Entries()); diff != "" {
				t.Errorf("the answer differs from that of a manager that knows nothing (-want, +got):\n%s", diff)
			}
			if (fields == fieldsBefore) != tc.known {
				t.Errorf("known: %v, wanted %v", !tc.known, tc.known)
			}
			again, _, _ := writeOurs(m, second.live, nil, second.step)
			if got == before || again == got {
				t.Error("two answers are one object")
			}
		})
	}
}

// The result belongs to the caller, who completes it.
func TestAppliedResultIsACopy(t *testing.T) {
	t.Parallel()
	kind := testKinds["Gadget"]
	m := fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create)
	config := &unstructured.Unstructured{Object: kind.identity()}
	set(config.Object, "spec.list", list(object{"k": "v"}))
	live, fields, err := m.Applied(nil, nil, config, false, fieldmanager.Write{Manager: "a"})
	if err != nil {
		t.Fatal(err)
	}
	other := &unstructured.Unstructured{Object: kind.identity()}
	set(other.Object, "spec.a", "1")
	result, _, err := m.Applied(live, fields, other, false, fieldmanager.Write{Manager: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{result, live} {
		firstItem(obj)["k"] = "changed"
		if got := firstItem(config)["k"]; got != "v" {
			t.Fatal("a change of a result changes what was applied")
		}
		if got := firstItem(live)["k"]; obj == result && got != "v" {
			t.Fatal("a change of a result changes the live object")
		}
	}
}

// firstItem returns the first item of the list of a Gadget.
func firstItem(obj client.Object) object {
	items, _, _ := unstructured.NestedFieldNoCopy(obj.(*unstructured.Unstructured).Object, "spec", "list")
	return items.([]any)[0].(object)
}

func TestConflictsAreWordedAsByAnAPIServer(t *testing.T) {
	t.Parallel()
	m := configMaps()
	live := configMap(map[string]string{"k": "1", "l": "1"})
	fields := m.Updated(nil, live, nil, fieldmanager.Write{Manager: "b"})
	result, fields, err := m.Applied(live, fields, applied(object{"m": "1"}), false, fieldmanager.Write{Manager: "c"})
	if err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string]object{
		`Apply failed with 1 conflict: conflict with "c": .data.m`:          {"m": "2"},
		`Apply failed with 1 conflict: conflict with "b" using v1: .data.k`: {"k": "2"},
		"Apply failed with 3 conflicts: conflicts with \"b\" using v1:\n- .data.k\n- .data.l\n" +
			"conflicts with \"c\":\n- .data.m": {"k": "2", "l": "2", "m": "2"},
	} {
		_, _, err := m.Applied(result, fields, applied(data), false, fieldmanager.Write{Manager: "a"})
		if !apierrors.IsConflict(err) || err.Error() != want {
			t.Errorf("want a conflict %q, got %v", want, err)
		}
	}
}

func TestEntriesOfOtherVersions(t *testing.T) {
	t.Parallel()
	kind := testKinds["Deployment"]
	m := fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create)
	content := kind.identity()
	set(content, "spec.replicas", int64(1))
	live := kind.asObject(content)
	for version, kept := range map[string]bool{"apps/v1beta2": true, "extensions/v1beta1": false} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			fields, err := fieldmanager.Decode([]metav1.ManagedFieldsEntry{{
				Manager: "other", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
			}})
			if err != nil {
				t.Fatal(err)
			}
			config := &unstructured.Unstructured{Object: kind.identity()}
			set(config.Object, "spec.replicas", int64(2))
			_, _, err = m.Applied(live, fields, config, false, fieldmanager.Write{Manager: "a"})
			if apierrors.IsConflict(err) != kept || (err != nil && !kept) {
				t.Errorf("got error %v, a conflict is wanted: %v", err, kept)
			}
		})
	}
}

// A manager that applies by way of another version still removes what it applied before.
func TestAppliedByWayOfAnotherVersion(t *testing.T) {
	t.Parallel()
	kind := testKinds["Gadget"]
	var live client.Object
	var fields *fieldmanager.Fields
	for _, version := range []string{"v1", "v2"} {
		kind.Version = version
		m := fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create)
		config := &unstructured.Unstructured{Object: kind.identity()}
		set(config.Object, "spec."+version, "applied")
		if live != nil {
			live.(*unstructured.Unstructured).SetAPIVersion(kind.GroupVersion().String())
		}
		var err error
		if live, fields, err = m.Applied(live, fields, config, false, fieldmanager.Write{Manager: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(object{"v2": "applied"}, live.(*unstructured.Unstructured).Object["spec"]); diff != "" {
		t.Errorf("the spec differs (-want, +got):\n%s", diff)
	}
	want := map[string]string{"a Apply  example.com/v2": `{"f:spec":{".":{},"f:v2":{}}}`}
	if diff := cmp.Diff(want, owners(fields)); diff != "" {
		t.Errorf("managed fields differ (-want, +got):\n%s", diff)
	}
}

func TestApplyConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(config *unstructured.Unstructured)
		want   string
	}{
		"another kind": {
			change: func(config *unstructured.Unstructured) { config.SetKind("Secret") },
			want:   "invalid object type: /v1, Kind=Secret",
		},
		"managed fields": {
			change: func(config *unstructured.Unstructured) { config.SetManagedFields([]metav1.ManagedFieldsEntry{{}}) },
			want:   "metadata.managedFields must be nil",
		},
		"an unknown field": {
			change: func(config *unstructured.Unstructured) { config.Object["typo"] = "1" },
			want: "failed to create typed patch object (default/one; /v1, Kind=ConfigMap): " +
				".typo: field not declared in schema",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := applied(object{"k": "1"})
			tc.change(config)
			_, _, err := configMaps().Applied(nil, nil, config, true, fieldmanager.Write{Manager: "a"})
			if err == nil || err.Error() != tc.want {
				t.Errorf("want error %q, got %v", tc.want, err)
			}
		})
	}
}

func TestDecodeRefusesInvalidEntries(t *testing.T) {
	t.Parallel()
	valid := metav1.ManagedFieldsEntry{
		Manager: "a", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
	}
	for name, change := range map[string]func(*metav1.ManagedFieldsEntry){
		"operation":  func(e *metav1.ManagedFieldsEntry) { e.Operation = "Patch" },
		"apiVersion": func(e *metav1.ManagedFieldsEntry) { e.APIVersion = "" },
		"fieldsType": func(e *metav1.ManagedFieldsEntry) { e.FieldsType = "" },
		"entry 1":    func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = metav1.NewFieldsV1("{") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invalid := valid
			change(&invalid)
			if _, err := fieldmanager.Decode([]metav1.ManagedFieldsEntry{valid, invalid}); err == nil ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("the error does not speak of %s: %v", name, err)
			}
		})
	}
	if fields, err := fieldmanager.Decode(nil); fields != nil || err != nil {
		t.Errorf("no entries are %v, %v", fields, err)
	}
}

// Of a kind without a published schema, lists are replaced as a whole.
func TestBuiltInOrDeduced(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"Deployment": 2, "Gadget": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := testKinds[name]
			m := fieldmanager.New(kind.GroupVersionKind, fieldmanager.BuiltInOrDeduced, kind.create)
			var live client.Object
			var fields *fieldmanager.Fields
			for _, container := range []string{"one", "two"} {
				config := &unstructured.Unstructured{Object: kind.identity()}
				set(config.Object, "spec.template.spec.containers."+container+".image", "image")
				var err error
				live, fields, err = m.Applied(live, fields, config, true, fieldmanager.Write{Manager: container})
				if err != nil {
					t.Fatal(err)
				}
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
			if err != nil {
				t.Fatal(err)
			}
			containers, _, _ := unstructured.NestedSlice(content, "spec", "template", "spec", "containers")
			if len(containers) != want {
				t.Errorf("want %d containers, got %v", want, containers)
			}
		})
	}
}

// Objects are shared by all forks of a store.
func TestFieldsAreSharedByGoroutines(t *testing.T) {
	t.Parallel()
	m := configMaps()
	var live client.Object
	var fields *fieldmanager.Fields
	for i := range 20 {
		next := configMap(map[string]string{"k": fmt.Sprint(i)})
		fields = m.Updated(live, next, fields, fieldmanager.Write{Manager: fmt.Sprint("m", i%3)})
		live = next
	}
	var group errgroup.Group
	for i := range 4 {
		group.Go(func() error {
			_, _, err := m.Applied(live, fields, applied(object{"k": "x"}), true, fieldmanager.Write{Manager: fmt.Sprint(i)})
			if len(fields.Entries()) != 2 {
				return fmt.Errorf("got %v", owners(fields))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// An API server joins the oldest entries of updates when there are more than ten.
func TestEntriesOfOldUpdatesAreJoined(t *testing.T) {
	t.Parallel()
	fieldmanager.BuiltIn()
	synctest.Test(t, func(t *testing.T) {
		kind := testKinds["ConfigMap"]
		ours, theirs := fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create), newReference(kind)
		var expected, live client.Object
		var fields *fieldmanager.Fields
		content := kind.identity()
		for i := range 30 {
			time.Sleep(time.Duration(i%2) * time.Second)
			set(content, fmt.Sprintf("data.%d", i), "1")
			// The names are in another order than the times.
			s := step{
				next:  kind.asObject(content),
				write: fieldmanager.Write{Manager: fmt.Sprint("m", i*7%30), Time: time.Now()},
			}
			var err error
			if expected, err = theirs.write(expected, s); err != nil {
				t.Fatal(err)
			}
			live, fields, _ = writeOurs(ours, live, fields, s)
			if diff := cmp.Diff(expected.GetManagedFields(), fields.Entries()); diff != "" {
				t.Fatalf("after update %d, managed fields differ (-API server, +this package):\n%s", i, diff)
			}
		}
		if got := len(fields.Entries()); got != 10 {
			t.Errorf("%d entries are left", got)
		}
	})
}

package testing_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "github.com/espalier-dev/espalier/testing"
)

func TestPatchesAreComparedAsStructures(t *testing.T) {
	merge, jsonPatch, apply := types.MergePatchType, types.JSONPatchType, types.ApplyPatchType
	for name, tc := range map[string]struct {
		patchType        types.PatchType
		expected, actual string
		differ           bool
	}{
		"the order of members":  {merge, `{"a":1,"b":{"c":2,"d":[]}}`, `{ "b": {"d":[],"c":2}, "a":1 }`, false},
		"a value":               {merge, `{"a":1}`, `{"a":2}`, true},
		"a large number":        {merge, `{"a":9007199254740993}`, `{"a":9007199254740992}`, true},
		"null is not absent":    {merge, `{"a":null}`, `{}`, true},
		"empty is not absent":   {types.StrategicMergePatchType, `{"a":{}}`, `{}`, true},
		"the order of a list":   {types.StrategicMergePatchType, `{"a":[1,2]}`, `{"a":[2,1]}`, true},
		"members of operations": {jsonPatch, `[{"op":"remove","path":"/a"}]`, `[{"path":"/a","op":"remove"}]`, false},
		"the order of operations": {
			jsonPatch,
			`[{"op":"remove","path":"/a"},{"op":"remove","path":"/b"}]`,
			`[{"op":"remove","path":"/b"},{"op":"remove","path":"/a"}]`,
			true,
		},
		"an applied object":            {apply, `{"kind":"A","spec":{"b":1}}`, `{"spec":{"b":1},"kind":"A"}`, false},
		"an applied object in YAML":    {apply, "kind: A\nspec: {b: 1}", `{"spec":{"b":1},"kind":"A"}`, false},
		"another applied object":       {apply, "kind: A", `{"kind":"B"}`, true},
		"YAML where there can be none": {merge, "a: 1", `{"a":1}`, true},
		"bytes":                        {merge, `{"a"`, `{"a"`, false},
		"other bytes":                  {merge, `{"a"`, `{"a" `, true},
		"no bytes":                     {merge, ``, `{}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			diff := rtesting.DefaultDiffer.PatchRef(
				rtesting.PatchRef{PatchType: tc.patchType, Patch: []byte(tc.expected)},
				rtesting.PatchRef{PatchType: tc.patchType, Patch: []byte(tc.actual)},
			)
			if (diff != "") != tc.differ {
				t.Errorf("difference wanted %v, got %s", tc.differ, diff)
			}
		})
	}
	ref := func(patch string) rtesting.PatchRef {
		return rtesting.PatchRef{PatchType: merge, Patch: []byte(patch)}
	}
	diff := rtesting.DefaultDiffer.PatchRef(ref(`{"a":{"b":1},"c":true}`), ref(`{"a":{"b":2},"c":true}`))
	want := `- "a": map[string]any{"b": int64(1)}, + "a": map[string]any{"b": int64(2)}, "c": bool(true),`
	if !strings.Contains(strings.Join(strings.Fields(diff), " "), want) {
		t.Errorf("the difference is not one of structures:\n%s", diff)
	}
}

// A condition has the time of the run, so a patch with one is another in each run.
func TestTransitionTimesOfPatches(t *testing.T) {
	merge, jsonPatch, apply := types.MergePatchType, types.JSONPatchType, types.ApplyYAMLPatchType
	const condition = `{"type":"Ready","status":"True","lastTransitionTime":"2026-01-0%dT00:00:00Z"}`
	for name, tc := range map[string]struct {
		patchType        types.PatchType
		expected, actual string
		differ           bool
	}{
		"a condition": {
			merge, `{"status":{"conditions":[` + fmt.Sprintf(condition, 1) + `]}}`,
			`{"status":{"conditions":[` + fmt.Sprintf(condition, 2) + `]}}`, false,
		},
		"a condition without a time": {
			merge, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
			`{"status":{"conditions":[` + fmt.Sprintf(condition, 2) + `]}}`, false,
		},
		"an applied condition in YAML": {
			apply, "status: {conditions: [" + fmt.Sprintf(condition, 1) + "]}",
			"status: {conditions: [" + fmt.Sprintf(condition, 2) + "]}", false,
		},
		"an added condition": {
			jsonPatch, `[{"op":"add","path":"/status/conditions/0","value":` + fmt.Sprintf(condition, 1) + `}]`,
			`[{"op":"add","path":"/status/conditions/0","value":` + fmt.Sprintf(condition, 2) + `}]`, false,
		},
		"a replaced time": {
			jsonPatch, `[{"op":"replace","path":"/status/conditions/0/lastTransitionTime","value":"a"}]`,
			`[{"op":"replace","path":"/status/conditions/0/lastTransitionTime","value":"b"}]`, false,
		},
		"another operation": {
			jsonPatch, `[{"op":"replace","path":"/status/conditions/0/lastTransitionTime","value":"a"}]`,
			`[{"op":"replace","path":"/status/conditions/1/lastTransitionTime","value":"a"}]`, true,
		},
		"another condition": {
			merge, `{"status":{"conditions":[{"type":"Live","lastTransitionTime":"a"}]}}`,
			`{"status":{"conditions":[{"type":"Ready","lastTransitionTime":"a"}]}}`, true,
		},
		"another time": {merge, `{"status":{"renewTime":"a"}}`, `{"status":{"renewTime":"b"}}`, true},
		"text":         {merge, `{"data":{"a":"lastTransitionTime"}}`, `{"data":{"a":"lastTransitionTimes"}}`, true},
		"a large number": {
			merge, `{"a":9007199254740993,"lastTransitionTime":"a"}`, `{"a":9007199254740992,"lastTransitionTime":"a"}`, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			expected := rtesting.PatchRef{PatchType: tc.patchType, Patch: []byte(tc.expected)}
			actual := rtesting.PatchRef{PatchType: tc.patchType, Patch: []byte(tc.actual)}
			if diff := rtesting.DefaultDiffer.PatchRef(expected, actual); (diff != "") != tc.differ {
				t.Errorf("difference wanted %v, got %s", tc.differ, diff)
			}
			if diff := rtesting.StrictDiffer.PatchRef(expected, actual); diff == "" {
				t.Error("want StrictDiffer to compare them")
			}
			if string(expected.Patch) != tc.expected || string(actual.Patch) != tc.actual {
				t.Error("the comparison changes a patch")
			}
		})
	}
	for differ, differs := range map[rtesting.Differ]bool{rtesting.DefaultDiffer: false, rtesting.StrictDiffer: true} {
		ref := func(day int) rtesting.ApplyRef {
			return rtesting.ApplyRef{ApplyConfiguration: client.ApplyConfigurationFromUnstructured(
				&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
					map[string]any{"type": "Ready", "lastTransitionTime": fmt.Sprintf("2026-01-0%dT00:00:00Z", day)},
				}}}},
			)}
		}
		if diff := differ.ApplyRef(ref(1), ref(2)); (diff != "") != differs {
			t.Errorf("difference wanted %v, got %s", differs, diff)
		}
	}
}

// applied is a typed object that can be applied, as code has it that renders objects rather than apply configurations.
type applied struct{ *corev1.ConfigMap }

func (applied) IsApplyConfiguration() {}

func TestAppliesAreComparedAsStructures(t *testing.T) {
	typed := applied{&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
		Data:       map[string]string{"k": "w"},
	}}
	dynamic := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "settings", "namespace": "default"},
		"data":     map[string]any{"k": "w"},
	}}
	// Each is made anew: the client fills what it is given with the answer.
	configurations := map[string]func() runtime.ApplyConfiguration{
		"apply configuration": func() runtime.ApplyConfiguration {
			return corev1ac.ConfigMap("settings", "default").WithData(map[string]string{"k": "w"})
		},
		"unstructured": func() runtime.ApplyConfiguration {
			return client.ApplyConfigurationFromUnstructured(dynamic.DeepCopy())
		},
		"typed object": func() runtime.ApplyConfiguration { return &applied{typed.DeepCopy()} },
	}
	for sent, send := range configurations {
		for expected, expect := range configurations {
			t.Run(sent+" for "+expected, func(t *testing.T) {
				c := newExpectConfig()
				ref := applyRef
				ref.ApplyConfiguration = expect()
				c.ExpectApplies = []rtesting.ApplyRef{ref}
				if err := c.Config().Apply(t.Context(), send(), client.FieldOwner("me"), client.ForceOwnership); err != nil {
					t.Fatal(err)
				}
				c.AssertExpectations(t)
			})
		}
	}
}

// A server-side apply made by a patch is a patch.
func TestAppliesByPatchAreComparedAsStructures(t *testing.T) {
	for patch, differs := range map[string]bool{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: settings}\ndata: {k: w}": false,
		`{"apiVersion":"v1","kind":"ConfigMap"}`:                                                        true,
	} {
		c := newExpectConfig()
		c.ExpectPatches = []rtesting.PatchRef{{
			Kind: "ConfigMap", Namespace: "default", Name: "settings",
			PatchType: types.ApplyPatchType, Patch: []byte(patch), FieldOwner: "me", Force: new(true),
		}}
		c.ExpectOrder = []string{"patch ConfigMap default/settings"}
		obj := changed.Object()
		obj.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		//lint:ignore SA1019 Code under test still applies this way.
		if err := c.Config().Patch(t.Context(), obj, client.Apply, client.FieldOwner("me"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		c.AssertExpectations(nil)
		if failures := c.Failures(); (len(failures) > 0) != differs {
			t.Errorf("failures wanted %v, got %q", differs, failures)
		}
	}
}

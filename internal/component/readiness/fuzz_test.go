package readiness_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// kinds are those with rules, of kstatus or of ours, and one without.
var kinds = []string{
	"example.com/v1 Thing",
	"apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "apps/v1 ReplicaSet",
	"v1 Service", "v1 Secret", "policy/v1 PodDisruptionBudget",
	"v1 Pod", "batch/v1 Job", "v1 PersistentVolumeClaim",
	"apiextensions.k8s.io/v1 CustomResourceDefinition", "apiregistration.k8s.io/v1 APIService",
}

// differing is the index of the first kind for which kstatus may give another result.
var differing = slices.Index(kinds, "v1 Pod")

// FuzzL7MalformedStatus gives each kind any status and spec, and demands that
//
//   - Of does not panic, and does not change the object,
//   - it has a message if and only if the object is not Current, in one line of limited length,
//   - without hints it agrees with kstatus, except for kinds where kstatus is wrong.
func FuzzL7MalformedStatus(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `"x"`, `null`, `{"status":{"conditions":[{"type":"Ready","status":"False","message":"\u0000\n"}]}}`,
		`{"metadata":{"generation":3},"status":{"observedGeneration":2}}`,
		`{"metadata":{"generation":"3","deletionTimestamp":7},"status":"up"}`,
		`{"metadata":[1],"spec":null,"status":[null]}`,
		`{"status":{"conditions":{"Ready":true}}}`,
		`{"status":{"conditions":[null,1,{"type":1},{"type":"Ready","status":true}]}}`,
		`{"status":{"conditions":[{"type":"Stalled","status":"True"},{"type":"Reconciling","status":"True"}]}}`,
		`{"status":{"phase":"Running","containerStatuses":[1,{"name":2},{"state":{"waiting":7}}]}}`,
		`{"status":{"phase":"Running","containerStatuses":{"name":2}}}`,
		`{"spec":{"replicas":1e30},"status":{"replicas":-1}}`,
		`{"spec":{"suspend":"yes","completions":-5},"status":{"startTime":1,"conditions":[{"type":"Failed","status":"True"}]}}`,
		`{"spec":{"type":"LoadBalancer","updateStrategy":"OnDelete"}}`,
		`{"status":{"desiredNumberScheduled":3,"observedGeneration":null}}`,
		`{"status":{"conditions":[{"type":"Established","status":"True"},{"type":"NamesAccepted","status":"False"}]}}`,
	} {
		for i := range kinds {
			f.Add([]byte(seed), uint8(i), uint8(0))
			f.Add([]byte(seed), uint8(i), uint8(7))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, kind, hints uint8) {
		content := map[string]any{}
		if json.Unmarshal(data, &content) != nil || content == nil {
			return
		}
		index := int(kind) % len(kinds)
		content["apiVersion"], content["kind"], _ = strings.Cut(kinds[index], " ")
		object := &unstructured.Unstructured{Object: content}
		settings := generator.Settings{StatusHint: generator.StatusHint{
			HasObservedGeneration: hints&1 != 0,
			HasReadyCondition:     hints&2 != 0,
		}}
		if hints&4 != 0 {
			settings.StatusHint.Conditions = []string{"Established"}
			settings.ReadyWhen = "object.status.phase == 'Running'"
		}

		before := object.DeepCopy()
		got := readiness.Of(object, settings)
		if !reflect.DeepEqual(before, object) {
			t.Errorf("the object was changed to %v, want %v", object, before)
		}
		checkForm(t, got)
		if hints&7 == 0 && index < differing {
			checkAgreement(t, object, got)
		}
	})
}

func checkForm(t *testing.T, got readiness.Result) {
	t.Helper()
	known := []apis.ObjectStatus{
		apis.ObjectCurrent, apis.ObjectInProgress, apis.ObjectFailed, apis.ObjectTerminating, apis.ObjectUnknown,
	}
	if !slices.Contains(known, got.Status) {
		t.Errorf("the status is %q, want one of %q", got.Status, known)
	}
	if (got.Status == apis.ObjectCurrent) != (got.Message == "") {
		t.Errorf("%s has the message %q, want one exactly if it is not %s", got.Status, got.Message, apis.ObjectCurrent)
	}
	if !utf8.ValidString(got.Message) || len(got.Message) > 200 || strings.ContainsFunc(got.Message, unicode.IsControl) {
		t.Errorf("the message is %q, want at most 200 bytes of valid UTF-8 without control characters", got.Message)
	}
}

func checkAgreement(t *testing.T, object *unstructured.Unstructured, got readiness.Result) {
	t.Helper()
	computed, err := status.Compute(object)
	if err != nil {
		// It may fail at something that does not matter any more.
		return
	}
	if got.Status == apis.ObjectStatus(computed.Status) {
		return
	}
	reconciling, stalled := false, false
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		reconciling = reconciling || fields["type"] == "Reconciling" && fields["status"] == "True"
		stalled = stalled || fields["type"] == "Stalled" && fields["status"] == "True"
	}
	if !reconciling || !stalled {
		t.Errorf("the status is %v, want one that agrees with %s of kstatus", got, computed.Status)
	}
}

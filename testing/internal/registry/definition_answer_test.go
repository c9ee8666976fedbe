package registry_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// answer is what an API server says to a write: the object, or why it refuses.
type answer struct {
	// Object has no metadata but the generation.
	Object map[string]any `json:"object,omitempty"`
	Causes []cause        `json:"causes,omitempty"`
}

type cause struct {
	Type    string `json:"type"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

func refusal(errs field.ErrorList) answer {
	var a answer
	for _, err := range errs {
		a.Causes = append(a.Causes, cause{string(err.Type), err.Field, err.ErrorBody()})
	}
	return a.sorted()
}

// sorted orders the causes, whose order changes from call to call.
func (a answer) sorted() answer {
	slices.SortFunc(a.Causes, func(x, y cause) int {
		return cmp.Or(
			cmp.Compare(x.Field, y.Field), cmp.Compare(x.Type, y.Type), cmp.Compare(x.Message, y.Message))
	})
	return a
}

func acceptance(obj *unstructured.Unstructured) answer {
	content := runtime.DeepCopyJSON(obj.Object)
	content["metadata"] = map[string]any{"generation": obj.GetGeneration()}
	return answer{Object: content}
}

// serverAnswer returns what a real server has answered.
func serverAnswer(t *testing.T, obj *unstructured.Unstructured, err error) answer {
	t.Helper()
	if err == nil {
		return acceptance(obj)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		t.Fatal(err)
	}
	var a answer
	for _, c := range status.Status().Details.Causes {
		a.Causes = append(a.Causes, cause{string(c.Type), c.Field, c.Message})
	}
	return a.sorted()
}

// answers are those to the calls of each row of a table.
type answers map[string][]answer

// compareRecorded compares answers with those that a real API server has given to the same table.
func compareRecorded(t *testing.T, table string, got answers) {
	t.Helper()
	encoded, err := os.ReadFile(recordOf(table))
	if err != nil {
		t.Fatal(err)
	}
	// Both are read from JSON, so that their numbers have the same types.
	var want answers
	if err := json.Unmarshal(encoded, &want); err != nil {
		t.Fatal(err)
	}
	for row := range want {
		if _, ok := got[row]; !ok {
			t.Errorf("row %q is recorded and not in the table, want both", row)
		}
	}
	for row, calls := range decoded(t, got) {
		if diff := gocmp.Diff(want[row], calls); diff != "" {
			t.Errorf("row %q differs, want what is recorded (-recorded +got):\n%s", row, diff)
		}
	}
}

func decoded(t *testing.T, a answers) (copied answers) {
	t.Helper()
	encoded, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &copied); err != nil {
		t.Fatal(err)
	}
	return copied
}

// recordServer compares the answers of a real API server with those that are recorded, or records them if -update is
// set.
func recordServer(t *testing.T, table string, got answers) {
	t.Helper()
	if !*update {
		compareRecorded(t, table, got)
		return
	}
	encoded, err := json.MarshalIndent(got, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordOf(table), append(encoded, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func recordOf(table string) string { return "testdata/definitions/" + table + ".json" }

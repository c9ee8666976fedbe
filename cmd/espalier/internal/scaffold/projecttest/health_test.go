package projecttest

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// page is what says how other programs read the status.
const page = repository + "/docs/new.md"

// states are the states in the table of the page, each as statuses of resources of generation 2 that are in it.
var states = map[string][]string{
	"is new": {
		`{observedGeneration: -1}`, of(2, "Unknown", "Initializing"),
	},
	"is worked at": {
		of(2, "False", "InProgress"), of(2, "Unknown", "Processing"),
	},
	"is ready": {
		of(2, "True", "Ready"),
	},
	"was changed, and not seen since": {
		of(1, "True", "Ready"), of(1, "False", "Failed"),
	},
	"has failed": {
		of(2, "False", "Failed"),
	},
	"is being deleted": {
		of(2, "False", "Deleting"), of(2, "Unknown", "Deleting"),
	},
}

// of returns a status of a generation, with the condition Ready behind another one.
func of(generation int, ready, reason string) string {
	return fmt.Sprintf(`{observedGeneration: %[1]d, conditions: [
  {type: Other, status: "True", reason: Other, observedGeneration: %[1]d},
  {type: Ready, status: %[2]q, reason: %[3]s, message: so it is, observedGeneration: %[1]d},
]}`, generation, ready, reason)
}

// TestHealth: the programs that the page names read each state as its table says.
func TestHealth(t *testing.T) {
	t.Parallel()
	content := read(t, page)
	script := regexp.MustCompile("(?s)```lua\n(.*?)```").FindStringSubmatch(content)
	row := regexp.MustCompile(`(?m)^\| (is|was|has) (.*?) \| (.*?) \| (.*?) \| (.*?) \|$`)
	rows := row.FindAllStringSubmatch(content, -1)
	if script == nil || len(rows) != len(states) {
		t.Fatalf("%s has a script: %t, and %d states, want %d", page, script != nil, len(rows), len(states))
	}
	for _, row := range rows {
		state := row[1] + " " + row[2]
		for _, of := range states[state] {
			metadata := map[string]any{"name": "sample", "generation": int64(2)}
			resource := map[string]any{"kind": "Shop", "metadata": metadata}
			fields := map[string]any{}
			if err := yaml.Unmarshal([]byte(of), &fields); err != nil {
				t.Fatal(err)
			}
			resource["status"] = fields
			if state == "is being deleted" {
				metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			}
			object := numbers(t, resource)
			if got := waits(t, object); got != row[3] {
				t.Errorf("%s: kubectl wait %s, the page says it %s: %s", state, got, row[3], of)
			}
			computed, err := status.Compute(object)
			if err != nil || computed.Status.String() != row[4] {
				t.Errorf("%s: kstatus is %v (%v), the page says %s: %s", state, computed, err, row[4], of)
			}
			if got := argoHealth(t, script[1], object); got != row[5] {
				t.Errorf("%s: Argo CD says %s, the page says %s: %s", state, got, row[5], of)
			}
		}
		if len(states[state]) == 0 {
			t.Errorf("%s has the state %q, which no status is for", page, state)
		}
	}
}

// waits returns whether "kubectl wait --for=condition=Ready" waits or goes on: a condition counts if it is of the
// present generation.
func waits(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range conditions {
		fields := condition.(map[string]any)
		if fields["type"] == "Ready" && fields["status"] == "True" && fields["observedGeneration"] == int64(2) {
			return "goes on"
		}
	}
	return "waits"
}

// numbers returns the resource as an API server gives it, with integers.
func numbers(t *testing.T, resource map[string]any) *unstructured.Unstructured {
	t.Helper()
	resource["apiVersion"] = "shop.example.com/v1"
	object := &unstructured.Unstructured{}
	content, err := (&unstructured.Unstructured{Object: resource}).MarshalJSON()
	if err == nil {
		err = object.UnmarshalJSON(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// argoHealth runs the script as Argo CD does: obj is the resource, and it returns a table with a status.
func argoHealth(t *testing.T, script string, object *unstructured.Unstructured) string {
	t.Helper()
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", luaOf(state, object.Object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	health, ok := state.Get(-1).(*lua.LTable)
	if !ok || health.RawGetString("message").String() == "" {
		t.Fatalf("the script returns %v", state.Get(-1))
	}
	return health.RawGetString("status").String()
}

// luaOf returns a value of JSON as one of Lua.
func luaOf(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, item := range value {
			table.RawSetString(key, luaOf(state, item))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(luaOf(state, item))
		}
		return table
	case string:
		return lua.LString(value)
	case int64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	}
	return lua.LNil
}

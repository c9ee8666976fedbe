package state_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// stateOf returns a state with objects in YAML. Those that begin with "# gone" were deleted.
func stateOf(t *testing.T, objects ...string) state.State {
	t.Helper()
	s := state.New()
	for i, text := range objects {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		obj, err := state.NewObject(data, int64(i))
		if err != nil {
			t.Fatal(err)
		}
		s.Create(obj, "somebody", time.Time{})
		if !strings.HasPrefix(text, "# gone") {
			s.Replace(nil, obj)
		}
	}
	return s
}

// object returns an object in YAML, with more fields.
func object(kind, name, uid, more string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {namespace: shop, name: %s, uid: uid-%s}\n%s",
		kind, name, uid, more)
}

// generated returns an object whose name was generated.
func generated(kind, name, uid, more string) string {
	prefix := name[:strings.LastIndex(name, "-")+1]
	return object(kind, name, uid+", generateName: "+prefix, more)
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		got, want []string
		diff      []string
	}{
		"nothing": {},
		"objects": {
			got:  []string{object("ConfigMap", "a", "1", "data: {x: '1'}"), object("ConfigMap", "b", "2", "")},
			want: []string{object("ConfigMap", "a", "1", "data: {x: '2'}"), object("ConfigMap", "c", "3", "")},
			diff: []string{
				`ConfigMap shop/a: data.x is "1", not "2"`, "left over: ConfigMap shop/b", "missing: ConfigMap shop/c",
			},
		},
		"secrets": {
			got:  []string{object("Secret", "a", "1", "data: {x: MQ==}")},
			want: []string{object("Secret", "a", "1", "data: {x: Mg==}")},
			diff: []string{"Secret shop/a: data.x differs"},
		},
		"UIDs of what is there and what is gone": {
			got: []string{
				"# gone\n" + object("ConfigMap", "a", "11-old", ""), object("ConfigMap", "a", "11-new", ""),
				object("ConfigMap", "b", "22",
					"data: {owner: is uid-11-new, was: uid-11-old, time: '2026-01-01T00:00:00Z'}"),
			},
			want: []string{
				object("ConfigMap", "a", "33", ""),
				object("ConfigMap", "b", "44", "data: {owner: is uid-33, was: uid-33, time: '2027-01-01T00:00:00Z'}"),
			},
		},
		"another owner": {
			got: []string{
				object("ConfigMap", "a", "11", ""), object("ConfigMap", "b", "22", ""),
				object("ConfigMap", "c", "33", "data: {owner: uid-11}"),
			},
			want: []string{
				object("ConfigMap", "a", "11", ""), object("ConfigMap", "b", "22", ""),
				object("ConfigMap", "c", "33", "data: {owner: uid-22}"),
			},
			diff: []string{`ConfigMap shop/c: data.owner is "UID of ConfigMap shop/a", not "UID of ConfigMap shop/b"`},
		},
		"generated names in another order": {
			got: []string{
				generated("ConfigMap", "a-1xx", "1", "data: {v: one}"),
				generated("ConfigMap", "a-2xx", "2", "data: {v: two}"),
				object("ConfigMap", "all", "3", "data: {one: a-1xx, two: a-2xx}"),
			},
			want: []string{
				generated("ConfigMap", "a-7xx", "1", "data: {v: two}"),
				"# gone\n" + generated("ConfigMap", "a-8xx", "2", ""),
				generated("ConfigMap", "a-9xx", "3", "data: {v: one}"),
				object("ConfigMap", "all", "4", "data: {one: a-9xx, two: a-7xx}"),
			},
		},
		"one more with a generated name": {
			got: []string{
				generated("ConfigMap", "a-1xx", "1", "data: {v: one}"),
				generated("ConfigMap", "a-2xx", "2", "data: {v: two}"),
			},
			want: []string{generated("ConfigMap", "a-7xx", "1", "data: {v: one}")},
			diff: []string{"left over: ConfigMap shop/a-*2"},
		},
		"addresses of Pods": {
			got: []string{
				generated("Pod", "a-1xx", "1", "status: {podIP: 10.0.0.1}"),
				object("ConfigMap", "all", "3", "data: {at: 'http://10.0.0.1:80'}"),
			},
			want: []string{
				generated("Pod", "a-2xx", "2", "status: {podIP: 10.0.0.2}"),
				object("ConfigMap", "all", "3", "data: {at: 'http://10.0.0.2:80'}"),
			},
		},
		"what comes and goes": {got: []string{
			object("Event", "a", "1", ""), "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a}",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, want := stateOf(t, test.got...), stateOf(t, test.want...)
			if diff := state.Compare(got, want, nil); !slices.Equal(diff, test.diff) {
				t.Errorf("the states differ by %q, not by %q", diff, test.diff)
			}
		})
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	before := stateOf(t, object("ConfigMap", "a", "1", ""), object("ConfigMap", "b", "2", ""))
	now := before.Clone()
	for _, text := range []string{
		object("ConfigMap", "b", "2", "data: {x: '1'}"), object("ConfigMap", "c", "3", "data: {x: '1', z: '2'}"),
	} {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		obj, err := state.NewObject(data, 7)
		if err != nil {
			t.Fatal(err)
		}
		now.Replace(nil, obj)
	}
	var lines []string
	for _, item := range now.Since(before, func(fields map[string]any) {
		if data, ok := fields["data"].(map[string]any); ok {
			delete(data, "z")
		}
	}) {
		data, err := json.Marshal(item.Fields["data"])
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, item.Key.String()+" "+string(data))
	}
	want := []string{`ConfigMap shop/b {"x":"1"}`, `ConfigMap shop/c {"x":"1"}`}
	if !slices.Equal(lines, want) {
		t.Errorf("the objects are %q, not %q", lines, want)
	}
	if got := before.Get(now.All()[2].Key); got != nil {
		t.Errorf("a clone changes the state: %v", got)
	}
}

func TestCreations(t *testing.T) {
	t.Parallel()
	s := stateOf(t, "# gone\n"+object("ConfigMap", "a", "1", ""), object("ConfigMap", "a", "2", ""))
	if got := s.Created("uid-1").Actor; got != "somebody" {
		t.Errorf("%q created the object that is gone", got)
	}
	for uid, want := range map[types.UID]bool{"uid-1": false, "uid-2": true, "uid-3": false} {
		if _, ok := s.Previous(uid); ok != want {
			t.Errorf("there was one before %s: %v", uid, ok)
		}
	}
}

func TestBadObject(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", `{"apiVersion":"a/b/c"}`} {
		if obj, err := state.NewObject([]byte(text), 1); err == nil {
			t.Errorf("%q is %v", text, obj)
		}
	}
}

package threeway_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/threeway"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var keys = threeway.Keys{reflect.TypeFor[metav1.Condition](): "Type"}

// thing has a field of each sort.
type thing struct {
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels,omitempty"`
	List     []string          `json:"list,omitempty"`
	Part     *part             `json:"part,omitempty"`
	Port     intstr.IntOrString
	Quantity resource.Quantity `json:"quantity"`
	Time     metav1.Time       `json:"time"`
	Any      any               `json:"any"`
	Inline   `json:",inline"`
	Ports    []corev1.ContainerPort `json:"ports" patchMergeKey:"containerPort"`
	hidden   int
}

type part struct {
	A, B string
	Not  string `json:"-"`
}

// Inline is embedded.
type Inline struct {
	Conditions []metav1.Condition `json:"conditions"`
}

func conditions(pairs ...string) []metav1.Condition {
	var all []metav1.Condition
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, metav1.Condition{Type: pairs[i], Reason: pairs[i+1]})
	}
	return all
}

func TestMerge(t *testing.T) {
	quantity := resource.MustParse
	tests := map[string]struct {
		base    thing
		changes []func(*thing)
		want    func(*thing)
		// conflicts are the paths, with the indexes of the copies.
		conflicts string
	}{
		"nothing": {},
		"times in different zones, and quantities in different notations": {
			base: thing{Time: metav1.Unix(5, 0), Quantity: quantity("1Gi"), Any: map[string]any{"a": 1}},
			changes: []func(*thing){
				func(t *thing) {
					t.Time, t.Quantity = metav1.NewTime(t.Time.UTC()), quantity("1024Mi")
					t.Any = map[string]any{"a": int64(1), "b": "new"}
				},
				func(t *thing) {
					t.Time = metav1.NewTime(t.Time.In(time.FixedZone("CET", 3600)).Add(time.Second))
					t.Quantity, t.Any = quantity("2Gi"), map[string]any{"a": int64(2)}
				},
			},
			want: func(t *thing) {
				t.Time, t.Quantity, t.Any = metav1.Unix(6, 0), quantity("2Gi"), map[string]any{"a": int64(2), "b": "new"}
			},
		},
		"different fields": {
			changes: []func(*thing){
				func(t *thing) { t.Name = "a" }, func(t *thing) {}, func(t *thing) { t.List = []string{"b"} },
			},
			want: func(t *thing) { t.Name, t.List = "a", []string{"b"} },
		},
		"the same": {
			changes: []func(*thing){func(t *thing) { t.Name = "a" }, func(t *thing) { t.Name = "a" }},
			want:    func(t *thing) { t.Name = "a" },
		},
		"one field": {
			changes: []func(*thing){
				func(t *thing) {}, func(t *thing) { t.Name = "a" }, func(t *thing) { t.Name = "b" }, func(t *thing) { t.Name = "c" },
			},
			want: func(t *thing) { t.Name = "a" }, conflicts: ".name 1 2",
		},
		"members of a map": {
			base: thing{Labels: map[string]string{"gone": "1", "stays": "1"}},
			changes: []func(*thing){
				func(t *thing) { delete(t.Labels, "gone") }, func(t *thing) { t.Labels["a.b/c"] = "2" },
			},
			want: func(t *thing) { t.Labels = map[string]string{"stays": "1", "a.b/c": "2"} },
		},
		"a member removed and changed": {
			base: thing{Labels: map[string]string{"a/b": "1"}},
			changes: []func(*thing){
				func(t *thing) { t.Labels["a/b"] = "2" }, func(t *thing) { delete(t.Labels, "a/b") },
			},
			want: func(t *thing) { t.Labels["a/b"] = "2" }, conflicts: ".labels[a/b] 0 1",
		},
		"a map that was not there": {
			changes: []func(*thing){
				func(t *thing) { t.Labels = map[string]string{"a": "1"} }, func(t *thing) { t.Labels = map[string]string{"b": "2"} },
			},
			want: func(t *thing) { t.Labels = map[string]string{"a": "1", "b": "2"} },
		},
		"a list is one value": {
			base: thing{List: []string{"x"}},
			changes: []func(*thing){
				func(t *thing) { t.List = append(t.List, "a") }, func(t *thing) { t.List = append(t.List, "b") },
			},
			want: func(t *thing) { t.List = []string{"x", "a"} }, conflicts: ".list 0 1",
		},
		"fields behind a pointer": {
			changes: []func(*thing){func(t *thing) { t.Part = &part{A: "a"} }, func(t *thing) { t.Part = &part{B: "b", Not: "x"} }},
			want:    func(t *thing) { t.Part = &part{A: "a", B: "b", Not: "x"} },
		},
		"a pointer removed": {
			base:    thing{Part: &part{A: "x"}},
			changes: []func(*thing){func(t *thing) { t.Part = nil }, func(t *thing) { t.Part = &part{A: "y"} }},
			want:    func(t *thing) { t.Part = nil }, conflicts: ".part 0 1",
		},
		"what is encoded as a whole": {
			changes: []func(*thing){
				func(t *thing) { t.Port, t.Quantity = intstr.FromInt32(80), quantity("1Gi") },
				func(t *thing) { t.Port, t.Quantity = intstr.FromString("http"), quantity("2Gi") },
			},
			want:      func(t *thing) { t.Port, t.Quantity = intstr.FromInt32(80), quantity("1Gi") },
			conflicts: ".Port 0 1, .quantity 0 1",
		},
		"conditions by type": {
			base: thing{Inline: Inline{conditions("B", "old", "D", "old", "E", "old")}},
			changes: []func(*thing){
				func(t *thing) { t.Conditions = conditions("B", "new", "C", "new", "D", "old", "E", "old") },
				func(t *thing) { t.Conditions = conditions("A", "new", "B", "old", "E", "old") },
			},
			want: func(t *thing) { t.Conditions = conditions("A", "new", "B", "new", "C", "new", "E", "old") },
		},
		"one condition": {
			base: thing{Inline: Inline{conditions("B", "old")}},
			changes: []func(*thing){
				func(t *thing) { t.Conditions = conditions("A", "one", "B", "one") },
				func(t *thing) { t.Conditions = conditions("A", "two", "B", "old") },
				func(t *thing) { t.Conditions = nil },
			},
			want:      func(t *thing) { t.Conditions = conditions("A", "one", "B", "one") },
			conflicts: ".conditions[A] 0 1, .conditions[B] 0 2",
		},
		"conditions in their order": {
			base: thing{Inline: Inline{conditions("Z", "old", "A", "old")}},
			changes: []func(*thing){
				func(t *thing) { t.Conditions = conditions("Z", "old", "A", "old", "M", "new") },
				func(t *thing) { t.Conditions = conditions("Z", "old", "A", "old", "B", "new") },
			},
			want: func(t *thing) { t.Conditions = conditions("Z", "old", "A", "old", "M", "new", "B", "new") },
		},
		"two conditions of one type are one value": {
			changes: []func(*thing){
				func(t *thing) { t.Conditions = conditions("A", "1", "A", "2") }, func(t *thing) { t.Conditions = conditions("B", "1") },
			},
			want: func(t *thing) { t.Conditions = conditions("A", "1", "A", "2") }, conflicts: ".conditions 0 1",
		},
		"by the key of a tag": {
			changes: []func(*thing){
				func(t *thing) { t.Ports = []corev1.ContainerPort{{ContainerPort: 80}} },
				func(t *thing) { t.Ports = []corev1.ContainerPort{{ContainerPort: 443}} },
			},
			want: func(t *thing) { t.Ports = []corev1.ContainerPort{{ContainerPort: 443}, {ContainerPort: 80}} },
		},
		"content": {
			base: thing{Any: map[string]any{"a": int64(1), "l": []any{"x"}}},
			changes: []func(*thing){
				func(t *thing) { t.Any = map[string]any{"a": int64(2), "l": []any{"x"}, "n": map[string]any{"p": "1"}} },
				func(t *thing) { t.Any = map[string]any{"a": int64(1), "l": []any{"y"}, "n": map[string]any{"q": "2"}} },
			},
			want: func(t *thing) {
				t.Any = map[string]any{"a": int64(2), "l": []any{"y"}, "n": map[string]any{"p": "1", "q": "2"}}
			},
		},
		"content of other types": {
			changes:   []func(*thing){func(t *thing) { t.Any = "a" }, func(t *thing) { t.Any = map[string]any{} }},
			want:      func(t *thing) { t.Any = "a" },
			conflicts: ".any 0 1",
		},
		"what is hidden": {
			base: thing{hidden: 1}, changes: []func(*thing){func(t *thing) { t.Name, t.hidden = "a", 2 }},
			want: func(t *thing) { t.Name = "a" },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clone := func() *thing {
				c := test.base
				if c.Labels != nil {
					c.Labels = map[string]string{}
					for key, value := range test.base.Labels {
						c.Labels[key] = value
					}
				}
				return &c
			}
			base, want := clone(), clone()
			if test.want != nil {
				test.want(want)
			}
			var copies []any
			for _, change := range test.changes {
				c := clone()
				change(c)
				copies = append(copies, c)
			}
			conflicts := ""
			for i, c := range threeway.Merge(base, keys, copies...) {
				if i > 0 {
					conflicts += ", "
				}
				conflicts += fmt.Sprintf("%s %d %d", c.Field, c.First, c.Second)
			}
			if diff := cmp.Diff(want, base, cmp.AllowUnexported(thing{})); diff != "" {
				t.Errorf("the object differs (-want, +got):\n%s", diff)
			}
			if conflicts != test.conflicts {
				t.Errorf("the conflicts are %q, want %q", conflicts, test.conflicts)
			}
		})
	}
}

func TestMergeUnstructured(t *testing.T) {
	object := func(status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Gadget", "status": status}}
	}
	condition := func(pairs ...string) []any {
		var all []any
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, map[string]any{"type": pairs[i], "status": pairs[i+1]})
		}
		return all
	}
	base := object(map[string]any{"conditions": condition("B", "True")})
	conflicts := threeway.Merge(base, keys,
		object(map[string]any{"conditions": condition("A", "True", "B", "True"), "x": "1"}),
		object(map[string]any{"conditions": condition("B", "False", "C", "True"), "x": "2"}),
	)
	want := object(map[string]any{"conditions": condition("A", "True", "B", "False", "C", "True"), "x": "1"})
	if diff := cmp.Diff(want, base); diff != "" {
		t.Errorf("the object differs (-want, +got):\n%s", diff)
	}
	if got, want := fmt.Sprint(conflicts), "[{.status.x 0 1}]"; got != want {
		t.Errorf("the conflicts are %s, want %s", got, want)
	}
}

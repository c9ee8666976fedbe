package statusfield_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/statusfield"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resource has a status of any type.
type resource[S any] struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status S
}

func (r *resource[S]) DeepCopyObject() runtime.Object {
	out := *r
	return &out
}

type full struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
	Message            string
}

func (s *full) InitializeConditions(context.Context) { s.Message = "initialized" }

type deprecated struct{ *full }

func (s *deprecated) InitializeConditions() { s.full = &full{Message: "initialized"} }

type odd struct {
	ObservedGeneration string
	Conditions         []string
}

type without struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (w *without) DeepCopyObject() runtime.Object { return w }

func TestDescribe(t *testing.T) {
	for name, test := range map[string]struct {
		obj  any
		want int
	}{
		"all":        {&resource[full]{}, 0},
		"nilable":    {&resource[*full]{}, 1},
		"deprecated": {&resource[deprecated]{}, 1},
		"odd":        {&resource[odd]{}, 3},
		"a scalar":   {&resource[string]{}, 3},
		"none":       {&without{}, 1},
		"no struct":  {new(string), 0},
		"nil":        {nil, 0},
	} {
		if remarks := statusfield.Describe(reflect.TypeOf(test.obj), false); len(remarks) != test.want {
			t.Errorf("%s: the remarks are %q, want %d", name, remarks, test.want)
		}
	}
}

func TestStatus(t *testing.T) {
	for name, obj := range map[string]client.Object{
		"all": &resource[full]{}, "nilable": &resource[*full]{Status: &full{}}, "deprecated": &resource[deprecated]{},
	} {
		status := statusfield.Of(obj)
		status.SetObservedGeneration(1)
		status.InitializeConditions(t.Context())
		status.SetObservedGeneration(2)
		message := reflect.Indirect(reflect.ValueOf(status.Get()).Elem()).FieldByName("Message")
		generation := reflect.ValueOf(status.Get()).Elem().FieldByName("ObservedGeneration")
		if got := fmt.Sprint(message, generation); got != "initialized 2" {
			t.Errorf("%s: the status has %s, want initialized 2", name, got)
		}
		empty := statusfield.Of(reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object))
		if empty.Exists() && !status.Differs(empty) {
			t.Errorf("%s: the status does not differ from an empty one, want that it does", name)
		}
		status.Clear()
		if reflect.ValueOf(status.Get()).Elem().IsZero() != true {
			t.Errorf("%s: the status is %v, want it empty", name, status.Get())
		}
	}
	for name, obj := range map[string]client.Object{
		"none": &without{}, "nil": &resource[*full]{}, "of other types": &resource[odd]{}, "a scalar": &resource[string]{},
	} {
		status := statusfield.Of(obj)
		status.InitializeConditions(t.Context())
		status.SetObservedGeneration(1)
		status.KeepTransitionTimes(status)
		if status.Differs(statusfield.Of(obj)) {
			t.Errorf("%s: the status differs from itself, want that it does not", name)
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"a": "b"}}}
	before := statusfield.Of(u.DeepCopy())
	statusfield.Of(u).Clear()
	if _, there := u.Object["status"]; there || !statusfield.Of(u).Differs(before) || !before.Exists() {
		t.Errorf("the status of an unstructured object is %v, want none, and a difference", u.Object["status"])
	}
}

func TestKeepTransitionTimes(t *testing.T) {
	early, late := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	condition := func(kind, message string, at metav1.Time) metav1.Condition {
		return metav1.Condition{Type: kind, Status: "True", Reason: "R", Message: message, ObservedGeneration: 1, LastTransitionTime: at}
	}
	before := &resource[full]{Status: full{Conditions: []metav1.Condition{condition("Same", "", early), condition("Changed", "", early), condition("Gone", "", early)}}}
	after := &resource[full]{Status: full{Conditions: []metav1.Condition{condition("Changed", "x", late), condition("New", "", late), condition("Same", "", late)}}}
	statusfield.Of(after).KeepTransitionTimes(statusfield.Of(before))
	want := []metav1.Condition{condition("Changed", "x", late), condition("New", "", late), condition("Same", "", early)}
	if !slices.Equal(want, after.Status.Conditions) {
		t.Errorf("the conditions are %v, want %v", after.Status.Conditions, want)
	}
}

package gotype_test

import (
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/internal/gotype"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestIsNil(t *testing.T) {
	var object client.Object
	var pointer *corev1.Pod
	for name, test := range map[string]struct {
		value any
		want  bool
	}{
		"nil": {nil, true}, "an interface": {object, true}, "a pointer": {pointer, true}, "a pod": {&corev1.Pod{}, false},
		"a function": {(func())(nil), true}, "a channel": {(chan int)(nil), true}, "a function with a body": {func() {}, false},
		"a list": {[]string(nil), false}, "a map": {map[string]int(nil), false}, "a text": {"", false},
	} {
		if got := gotype.IsNil(test.value); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

func TestEmpty(t *testing.T) {
	if pod := gotype.Empty[*corev1.Pod](); pod == nil || !reflect.DeepEqual(pod, &corev1.Pod{}) {
		t.Errorf("the empty pointer is %v, want a new Pod", pod)
	}
	if object := gotype.Empty[client.Object](); object != nil {
		t.Errorf("the empty interface is %v, want nil", object)
	}
	if number := gotype.Empty[*int](); number != nil {
		t.Errorf("the empty pointer to a number is %v, want nil", number)
	}
	if pod := gotype.Empty[corev1.Pod](); !reflect.DeepEqual(pod, corev1.Pod{}) {
		t.Errorf("the empty struct is %v, want a Pod", pod)
	}
}

func TestName(t *testing.T) {
	for want, object := range map[string]reflect.Type{
		"Pod": reflect.TypeFor[*corev1.Pod](), "ConfigMap": reflect.TypeFor[corev1.ConfigMap](), "": reflect.TypeFor[**int](),
	} {
		if got := gotype.Name(object); got != want {
			t.Errorf("got %q, not %q", got, want)
		}
	}
}

package literal

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// wellKnown returns the usual expression for a type that is not written as a composite literal.
func wellKnown(v reflect.Value) (node, bool) {
	if !v.CanInterface() {
		return node{}, false
	}
	switch known := v.Interface().(type) {
	case metav1.Time:
		return leaf("metav1.Unix(" + unix(known.Time) + ")"), true
	case metav1.MicroTime:
		return leaf("metav1.NewMicroTime(" + timeOf(known.Time) + ")"), true
	case time.Time:
		return leaf(timeOf(known)), true
	case metav1.Duration:
		return leaf("metav1.Duration{Duration: " + duration(known.Duration) + "}"), true
	case time.Duration:
		return leaf(duration(known)), true
	case resource.Quantity:
		return leaf("resource.MustParse(" + strconv.Quote(known.String()) + ")"), true
	case intstr.IntOrString:
		if known.Type == intstr.String {
			return leaf("intstr.FromString(" + strconv.Quote(known.StrVal) + ")"), true
		}
		return leaf(fmt.Sprintf("intstr.FromInt32(%d)", known.IntVal)), true
	}
	if objects.IsNil(v.Interface()) {
		return node{}, false
	}
	switch known := v.Interface().(type) {
	case labels.Selector:
		return leaf(labelSelector(known)), true
	case fields.Selector:
		return leaf(fieldSelector(known)), true
	case interface {
		runtime.ApplyConfiguration
		UnstructuredContent() map[string]any
	}:
		return applied(known), true
	}
	return node{}, false
}

func unix(t time.Time) string {
	return fmt.Sprintf("%d, %d", t.Unix(), t.Nanosecond())
}

func timeOf(t time.Time) string {
	return "time.Unix(" + unix(t) + ")"
}

// duration writes a duration in the largest unit that divides it.
func duration(d time.Duration) string {
	for _, unit := range []struct {
		name string
		size time.Duration
	}{
		{"time.Hour", time.Hour},
		{"time.Minute", time.Minute},
		{"time.Second", time.Second},
		{"time.Millisecond", time.Millisecond},
		{"time.Microsecond", time.Microsecond},
	} {
		if d != 0 && d%unit.size == 0 {
			return fmt.Sprintf("%d * %s", d/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("time.Duration(%d)", d)
}

func labelSelector(s labels.Selector) string {
	if s.Empty() {
		return "labels.Everything()"
	}
	text := s.String()
	if set, err := labels.ConvertSelectorToLabelsMap(text); err == nil && labels.SelectorFromSet(set).String() == text {
		return "labels.SelectorFromSet(" + Of(set) + ")"
	}
	if text == "" {
		return "labels.Nothing()"
	}
	return fmt.Sprintf(
		"func() labels.Selector { s, err := labels.Parse(%q); if err != nil { panic(err) }; return s }()", text)
}

func fieldSelector(s fields.Selector) string {
	if s.Empty() {
		return "fields.Everything()"
	}
	return fmt.Sprintf("fields.ParseSelectorOrDie(%q)", s.String())
}

// applied writes an apply configuration whose Go type is private to the client package.
func applied(ac interface{ UnstructuredContent() map[string]any }) node {
	u := &unstructured.Unstructured{Object: ac.UnstructuredContent()}
	if _, err := json.Marshal(u.Object); err != nil {
		return leaf("nil")
	}
	return node{
		open:     "client.ApplyConfigurationFromUnstructured(",
		elements: []node{expression(reflect.ValueOf(u), nil, 0)},
		close:    ")",
	}
}

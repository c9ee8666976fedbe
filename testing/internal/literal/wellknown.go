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

	"github.com/espalier-dev/espalier/internal/gotype"
)

// Import paths of well-known packages.
const (
	metaV1          = "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcePackage = "k8s.io/apimachinery/pkg/api/resource"
	intstrPackage   = "k8s.io/apimachinery/pkg/util/intstr"
	labelsPackage   = "k8s.io/apimachinery/pkg/labels"
	fieldsPackage   = "k8s.io/apimachinery/pkg/fields"
)

// wellKnown returns the usual expression for a type that is not written as a composite literal.
func (w *Writer) wellKnown(v reflect.Value) (node, bool) {
	if !v.CanInterface() {
		return node{}, false
	}
	switch known := v.Interface().(type) {
	case metav1.Time:
		return leaf(w.in(metaV1, "Unix(") + unix(known.Time) + ")"), true
	case metav1.MicroTime:
		return leaf(w.in(metaV1, "NewMicroTime(") + w.timeOf(known.Time) + ")"), true
	case time.Time:
		return leaf(w.timeOf(known)), true
	case metav1.Duration:
		return leaf(w.in(metaV1, "Duration{Duration: ") + w.duration(known.Duration) + "}"), true
	case time.Duration:
		return leaf(w.duration(known)), true
	case resource.Quantity:
		return leaf(w.in(resourcePackage, "MustParse(") + strconv.Quote(known.String()) + ")"), true
	case intstr.IntOrString:
		if known.Type == intstr.String {
			return leaf(w.in(intstrPackage, "FromString(") + strconv.Quote(known.StrVal) + ")"), true
		}
		return leaf(fmt.Sprintf(w.in(intstrPackage, "FromInt32(%d)"), known.IntVal)), true
	}
	if gotype.IsNil(v.Interface()) {
		return node{}, false
	}
	switch known := v.Interface().(type) {
	case Expresser:
		return w.call(known.Expression()), true
	case Text:
		return leaf(known(w)), true
	case Call:
		return w.call(known), true
	case Variable:
		return leaf(w.in(known.Package, known.Name)), true
	case labels.Selector:
		return leaf(w.labelSelector(known)), true
	case fields.Selector:
		return leaf(w.fieldSelector(known)), true
	case interface {
		runtime.ApplyConfiguration
		UnstructuredContent() map[string]any
	}:
		return w.applied(known), true
	}
	return node{}, false
}

func unix(t time.Time) string {
	return fmt.Sprintf("%d, %d", t.Unix(), t.Nanosecond())
}

func (w *Writer) timeOf(t time.Time) string {
	return w.in("time", "Unix(") + unix(t) + ")"
}

// duration writes a duration in the largest unit that divides it.
func (w *Writer) duration(d time.Duration) string {
	for _, unit := range []struct {
		name string
		size time.Duration
	}{
		{"Hour", time.Hour},
		{"Minute", time.Minute},
		{"Second", time.Second},
		{"Millisecond", time.Millisecond},
		{"Microsecond", time.Microsecond},
	} {
		if d != 0 && d%unit.size == 0 {
			return fmt.Sprintf("%d * %s", d/unit.size, w.in("time", unit.name))
		}
	}
	return fmt.Sprintf("%s(%d)", w.in("time", "Duration"), d)
}

func (w *Writer) labelSelector(s labels.Selector) string {
	if s.Empty() {
		return w.in(labelsPackage, "Everything()")
	}
	text := s.String()
	if set, err := labels.ConvertSelectorToLabelsMap(text); err == nil && labels.SelectorFromSet(set).String() == text {
		return w.in(labelsPackage, "SelectorFromSet(") + w.Of(set) + ")"
	}
	if text == "" {
		return w.in(labelsPackage, "Nothing()")
	}
	return fmt.Sprintf("func() %s { s, err := %s(%q); if err != nil { panic(err) }; return s }()",
		w.in(labelsPackage, "Selector"), w.in(labelsPackage, "Parse"), text)
}

func (w *Writer) fieldSelector(s fields.Selector) string {
	if s.Empty() {
		return w.in(fieldsPackage, "Everything()")
	}
	return fmt.Sprintf(w.in(fieldsPackage, "ParseSelectorOrDie(%q)"), s.String())
}

// applied writes an apply configuration whose Go type is private to the client package.
func (w *Writer) applied(ac interface{ UnstructuredContent() map[string]any }) node {
	u := &unstructured.Unstructured{Object: ac.UnstructuredContent()}
	if _, err := json.Marshal(u.Object); err != nil {
		return leaf("nil")
	}
	return node{
		open:     w.in(controllerRuntime+"pkg/client", "ApplyConfigurationFromUnstructured("),
		elements: []node{w.expression(reflect.ValueOf(u), nil, 0)},
		close:    ")",
	}
}

// call writes a call with its arguments.
func (w *Writer) call(c Call) node {
	n := node{open: w.in(c.Package, c.Func) + "(", elements: w.arguments(c.Args), close: ")"}
	if c.Method == "" {
		return n
	}
	return node{open: n.flat() + "." + c.Method + "(", elements: w.arguments(c.MethodArgs), close: ")"}
}

func (w *Writer) arguments(args []any) []node {
	nodes := make([]node, len(args))
	for i, arg := range args {
		nodes[i] = w.expression(reflect.ValueOf(arg), nil, 0)
	}
	return nodes
}

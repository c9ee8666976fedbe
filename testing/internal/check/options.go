package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// Options for go-cmp, which the harness exports.
var (
	// IgnoreLastTransitionTime ignores the transition times of conditions, in typed and unstructured objects.
	IgnoreLastTransitionTime cmp.Option = cmp.FilterPath(func(path cmp.Path) bool {
		return strings.HasSuffix(fieldAt(path, -1), "LastTransitionTime") || keyAt(path, -1) == transitionTime
	}, cmp.Ignore())

	// IgnoreTypeMeta ignores the API version and kind of typed objects. Those of unstructured objects are compared,
	// since nothing else shows their type.
	IgnoreTypeMeta cmp.Option = cmp.FilterPath(func(path cmp.Path) bool {
		name := fieldAt(path, -1)
		return fieldAt(path, -2) == "TypeMeta" && (name == "APIVersion" || name == "Kind")
	}, cmp.Ignore())

	// IgnoreCreationTimestamp ignores metadata.creationTimestamp, in typed and unstructured objects.
	IgnoreCreationTimestamp cmp.Option = ignoreMetadata("CreationTimestamp", "creationTimestamp")

	// IgnoreResourceVersion ignores metadata.resourceVersion, in typed and unstructured objects.
	IgnoreResourceVersion cmp.Option = ignoreMetadata("ResourceVersion", "resourceVersion")

	// statusOnly ignores all fields of an object but its status.
	statusOnly cmp.Option = cmp.FilterPath(outsideStatus, cmp.Ignore())

	// NormalizeLabelSelector compares label selectors by their text. A selector that selects everything equals nil.
	NormalizeLabelSelector = normalizeSelector[labels.Selector]("labels.Selector")

	// NormalizeFieldSelector compares field selectors by their text. A selector that selects everything equals nil.
	NormalizeFieldSelector = normalizeSelector[fields.Selector]("fields.Selector")

	// NormalizeApplyConfiguration compares apply configurations by their JSON, in any Go types.
	NormalizeApplyConfiguration cmp.Option = cmp.Transformer("runtime.ApplyConfiguration", Sent)

	// NormalizePatch compares fields with the name Patch as JSON. The operations of a JSON patch are compared in order.
	// If one side is not JSON, both are compared as bytes.
	NormalizePatch cmp.Option = cmp.FilterPath(
		func(path cmp.Path) bool { return fieldAt(path, -1) == "Patch" },
		cmp.FilterValues(AreJSON, cmp.Transformer("JSON", FromJSON)),
	)

	// NormalizeOperation compares operations of a JSON patch by their JSON, with values of any Go types.
	NormalizeOperation cmp.Option = cmp.Transformer("jsonpatch.Operation", func(o jsonpatch.Operation) any {
		raw, err := json.Marshal(&o)
		if err != nil {
			return map[string]any{"error": fmt.Sprintf("cannot marshal the value for %s: %v", o.Path, err)}
		}
		return FromJSON(raw)
	})
)

func normalizeSelector[S interface {
	Empty() bool
	String() string
}](name string) cmp.Option {
	return cmp.Transformer(name, func(s S) *string {
		if gotype.IsNil(s) || s.Empty() {
			return nil
		}
		return new(s.String())
	})
}

// AreJSON reports whether both texts are valid JSON.
func AreJSON(a, b []byte) bool { return json.Valid(a) && json.Valid(b) }

// FromJSON returns the value of valid JSON. Whole numbers are not rounded.
func FromJSON(raw []byte) any {
	var value any
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return err.Error()
	}
	return value
}

// Sent returns the JSON members of an apply configuration; nil for nil.
func Sent(ac runtime.ApplyConfiguration) map[string]any {
	if gotype.IsNil(ac) {
		return nil
	}
	raw, err := json.Marshal(ac)
	if err == nil {
		var members map[string]any
		if err = json.Unmarshal(raw, &members); err == nil {
			return members
		}
	}
	return map[string]any{"error": fmt.Sprintf("cannot marshal %T: %v", ac, err)}
}

func ignoreMetadata(field, key string) cmp.Option {
	return cmp.FilterPath(func(path cmp.Path) bool {
		return fieldAt(path, -1) == field && fieldAt(path, -2) == "ObjectMeta" ||
			keyAt(path, -1) == key && keyAt(withoutAssertion(path[:len(path)-1]), -1) == "metadata"
	}, cmp.Ignore())
}

// outsideStatus reports whether path leads to a field that is neither in the status nor on the way to it.
func outsideStatus(path cmp.Path) bool {
	for i := range path {
		if name := fieldAt(path, i); name != "" && name != "Object" {
			return name != "Status"
		}
		if key := keyAt(path, i); key != "" {
			return key != "status"
		}
	}
	return false
}

// fieldAt returns the name of the struct field that step i of path selects, empty if it selects none. A negative i
// counts from the end.
func fieldAt(path cmp.Path, i int) string {
	if field, ok := path.Index(i).(cmp.StructField); ok {
		return field.Name()
	}
	return ""
}

// keyAt is fieldAt for the string keys of maps.
func keyAt(path cmp.Path, i int) string {
	if index, ok := path.Index(i).(cmp.MapIndex); ok {
		return index.Key().String()
	}
	return ""
}

// withoutAssertion returns path without a type assertion at its end.
func withoutAssertion(path cmp.Path) cmp.Path {
	if _, ok := path.Last().(cmp.TypeAssertion); ok {
		return path[:len(path)-1]
	}
	return path
}

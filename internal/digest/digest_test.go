package digest_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/digest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// values are all different from each other.
func values() map[string]any {
	return map[string]any{
		"nil":                  nil,
		"false":                false,
		"true":                 true,
		"int":                  1,
		"int64":                int64(1),
		"other int":            2,
		"uint":                 uint(1),
		"float":                1.0,
		"complex":              complex(1, 2),
		"string":               "1",
		"empty string":         "",
		"nil pointer":          (*int)(nil),
		"pointer":              new(1),
		"nil slice":            []string(nil),
		"empty slice":          []string{},
		"slice":                []string{"a", "b"},
		"slice, other order":   []string{"b", "a"},
		"slice, other split":   []string{"ab", ""},
		"array":                [2]string{"a", "b"},
		"nil bytes":            []byte(nil),
		"bytes":                []byte("ab"),
		"nil map":              map[string]string(nil),
		"empty map":            map[string]string{},
		"map":                  map[string]string{"a": "b", "c": "d"},
		"map, other values":    map[string]string{"a": "d", "c": "b"},
		"map, other split":     map[string]string{"ab": "", "c": "d"},
		"map of any":           map[string]any{"a": int64(1)},
		"map of any, other":    map[string]any{"a": 1.0},
		"map of bytes":         map[string][]byte{"a": []byte("b")},
		"map by number":        map[int]string{1: "a"},
		"time":                 metav1.NewTime(time.Unix(1, 0)),
		"other time":           metav1.NewTime(time.Unix(2, 0)),
		"unstructured":         &unstructured.Unstructured{Object: map[string]any{"kind": "A"}},
		"config map":           &corev1.ConfigMap{Data: map[string]string{"a": "b"}},
		"config map, labelled": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}},
		"struct":               [2]struct{ A, B string }{{A: "a"}},
		"struct, other field":  [2]struct{ A, B string }{{B: "a"}},
		"other struct":         [2]struct{ A, B string }{{}, {A: "a"}},
		"both structs":         [2]struct{ A, B string }{{A: "a"}, {A: "a"}},
		"deployment":           deployment("1"),
		"other deployment":     deployment("2"),
	}
}

func deployment(cpu string) *appsv1.Deployment {
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}},
	}}}}
}

func TestDigestsTellValuesApart(t *testing.T) {
	first, second := values(), values()
	for a, va := range first {
		for b, vb := range second {
			da, okA := digest.Of(va)
			db, okB := digest.Of(vb)
			if !okA || !okB {
				t.Fatalf("that %s and %s have digests is %t and %t, want true", a, b, okA, okB)
			}
			if (da == db) != (a == b) {
				t.Errorf("that the digests of %q and %q are equal is %v, want %v", a, b, da == db, a == b)
			}
		}
	}
}

func TestWhatHasNoDigest(t *testing.T) {
	loop := map[string]any{}
	loop["self"] = loop
	type node struct{ next *node }
	ring := &node{}
	ring.next = ring
	type pair struct{ a, b *pair }
	tree := &pair{}
	tree.a, tree.b = tree, tree
	for name, value := range map[string]any{
		"function":      func() {},
		"channel":       make(chan int),
		"nested":        []any{[]any{func() {}}},
		"map of itself": loop,
		"ring":          ring,
		"double ring":   tree,
		"hidden time":   struct{ at time.Time }{time.Unix(1, 0)},
	} {
		if got, ok := digest.Of(value); ok {
			t.Errorf("%s has the digest %v, want none", name, got)
		}
	}
}

func TestSharedStateOfATimeZoneDoesNotCount(t *testing.T) {
	at := time.Unix(1, 0)
	a, _ := digest.Of(metav1.NewTime(at))
	b, _ := digest.Of(metav1.NewTime(at.UTC()))
	if a != b {
		t.Errorf("one instant in two zones has the digests %v and %v, want the same", a, b)
	}
}

func FuzzEqualDigestsMeanEqualValues(f *testing.F) {
	f.Add("a", "b", "c", "d")
	f.Add("a", "", "a", "")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		x := &corev1.ConfigMap{Data: map[string]string{a: b}, ObjectMeta: metav1.ObjectMeta{Name: a, Labels: map[string]string{b: a}}}
		y := &corev1.ConfigMap{Data: map[string]string{c: d}, ObjectMeta: metav1.ObjectMeta{Name: c, Labels: map[string]string{d: c}}}
		dx, _ := digest.Of(x)
		dy, _ := digest.Of(y)
		if (dx == dy) != reflect.DeepEqual(x, y) {
			t.Errorf("the digests of %[3]v and %[4]v are %[1]d and %[2]d, want them equal: %[5]t", dx, dy, x, y,
				reflect.DeepEqual(x, y))
		}
	})
}

func BenchmarkOf(b *testing.B) {
	for name, value := range map[string]any{
		"ConfigMap":  &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"a": "b", "c": "d"}},
		"Deployment": deployment("1"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				digest.Of(value)
			}
		})
	}
}

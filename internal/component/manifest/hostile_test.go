package manifest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hostile makes values of bytes, of any kind that code can put into an unstructured object.
type hostile struct {
	bytes []byte
	// maps made so far, to be put into each other, and themselves.
	maps []m
	// tame: only values that can be prepared.
	tame bool
}

func (h *hostile) next() byte {
	if len(h.bytes) == 0 {
		return 0
	}
	b := h.bytes[0]
	h.bytes = h.bytes[1:]
	return b
}

// words are those that mean something in an object.
var words = []string{
	"", "apiVersion", "kind", "metadata", "name", "namespace", "generateName", "labels", "annotations", "spec", "status", "data", "stringData", "items",
	"creationTimestamp", "group", "version", "names", "scope", "v1", "apps/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1", "a/b/c", "/",
	"ConfigMap", "Secret", "Namespace", "List", "ConfigMapList", "CustomResourceDefinition", "APIService", "Namespaced", "Cluster", "*", "..", "\xff", "YQ==", "!",
	prefix + "/owner-id", prefix + "/digest", prefix + "/apply-order", prefix + "/purge-order", prefix + "/reconcile-policy", prefix + "/ignore-fields",
	prefix + "/reapply-interval", "once", "on-object-or-component-change", "1", "-40000", "kubectl.kubernetes.io/last-applied-configuration",
}

func (h *hostile) word() string { return words[int(h.next())%len(words)] }

func (h *hostile) value(depth int) any {
	if depth > 8 {
		return nil
	}
	choice := h.next() % 32
	if h.tame {
		choice %= 18
	}
	switch choice {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		return h.word()
	case 8, 9, 10, 11, 12, 13, 14:
		return h.object(depth)
	case 15, 16:
		list := make([]any, h.next()%4)
		for i := range list {
			list[i] = h.value(depth + 1)
		}
		return list
	case 17:
		return int(h.next())
	case 18:
		return []float64{1, 1.5, math.Copysign(0, -1), 1e300, math.NaN(), math.Inf(-1)}[h.next()%6]
	case 19:
		return h.next()%2 == 0
	case 20:
		return make(chan int)
	case 21:
		return struct{ A any }{h.word()}
	case 22:
		return map[string]string{h.word(): h.word()}
	case 23:
		return []string{h.word()}
	case 24:
		return json.Number(h.word())
	case 25:
		return (*int)(nil)
	case 26:
		return m(nil)
	case 27:
		return []byte(h.word())
	case 28:
		return map[any]any{h.word(): 1}
	case 29:
		return time.Time{}
	case 30:
		if len(h.maps) > 0 {
			return h.maps[int(h.next())%len(h.maps)]
		}
	}
	return nil
}

func (h *hostile) object(depth int) m {
	object := m{}
	h.maps = append(h.maps, object)
	for range h.next() % 8 {
		object[h.word()] = h.value(depth + 1)
	}
	return object
}

// objects are plausible at the outside, and hostile within.
func (h *hostile) objects() []client.Object {
	objects := make([]client.Object, h.next()%4)
	for i := range objects {
		switch h.next() % 8 {
		case 0:
			objects[i] = (*unstructured.Unstructured)(nil)
		case 1:
			objects[i] = &unstructured.Unstructured{Object: h.object(0)}
		case 2, 3, 4, 5:
			objects[i] = h.plausible(i)
		default:
			content := h.object(0)
			content["apiVersion"], content["kind"] = h.word(), h.word()
			content["metadata"] = m{"name": h.word(), "labels": h.value(4), "annotations": h.value(4)}
			objects[i] = &unstructured.Unstructured{Object: content}
		}
	}
	return objects
}

// kinds are those of plausible objects.
var kinds = []string{
	"v1 ConfigMap", "v1 Secret", "v1 Namespace", "apps/v1 Deployment", "example.com/v1 Widget",
	"apiextensions.k8s.io/v1 CustomResourceDefinition", "apiregistration.k8s.io/v1 APIService",
}

// plausible returns an object that may well be prepared.
func (h *hostile) plausible(i int) client.Object {
	h.tame = true
	defer func() { h.tame = false }()
	kind := kinds[int(h.next())%len(kinds)]
	u := object(kind, fmt.Sprintf("n%d/o%d", h.next()%2, i), h.object(0))
	version, kind, _ := strings.Cut(kind, " ")
	u.Object["apiVersion"], u.Object["kind"] = version, kind
	u.Object["metadata"] = m{"name": fmt.Sprintf("o%d", i), "namespace": "n", "labels": map[string]string{h.word(): h.word()}, h.word(): h.value(7)}
	switch kind {
	case "Secret":
		u.Object["data"], u.Object["stringData"] = m{h.word(): "YQ=="}, m{h.word(): h.word()}
	case "CustomResourceDefinition", "APIService":
		u.Object["spec"] = m{"group": "example.com", "version": "v1", "names": m{"kind": "Widget"}, "scope": "Cluster"}
	}
	return u
}

// dumper writes all that objects hold, each map once.
type dumper struct {
	strings.Builder
	seen map[uintptr]int
}

func (d *dumper) dump(value any) {
	switch v := value.(type) {
	case *unstructured.Unstructured:
		if v != nil {
			d.dump(v.Object)
		}
	case m:
		pointer := reflect.ValueOf(v).Pointer()
		if number, ok := d.seen[pointer]; ok {
			fmt.Fprintf(d, "map %d;", number)
			return
		}
		d.seen[pointer] = len(d.seen)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(d, "%q:", key)
			d.dump(v[key])
		}
		fmt.Fprintf(d, "end of %d;", len(v))
	case []any:
		for _, element := range v {
			d.dump(element)
		}
		fmt.Fprintf(d, "list of %d;", len(v))
	default:
		fmt.Fprintf(d, "%#v;", value)
	}
}

func dumped(objects []client.Object) string {
	d := dumper{seen: map[uintptr]int{}}
	for _, o := range objects {
		d.dump(o)
	}
	return d.String()
}

func FuzzPrepare(f *testing.F) {
	random := rand.NewChaCha8([32]byte{})
	for n := range 120 {
		data := make([]byte, 3*n)
		_, _ = random.Read(data)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return
		}
		objects := (&hostile{bytes: data}).objects()
		before := dumped(objects)
		cache := &manifest.Cache{}
		first, err := manifest.Prepare(objects, options(), cache)
		second, again := manifest.Prepare(objects, options(), cache)
		fresh, anew := manifest.Prepare((&hostile{bytes: data}).objects(), options(), nil)
		if dumped(objects) != before {
			t.Fatalf("the objects were changed to\n%s\nwant\n%s", dumped(objects), before)
		}
		if text := fmt.Sprint(err); text != fmt.Sprint(again) || text != fmt.Sprint(anew) {
			t.Fatalf("the errors are\n%v\n%v\n%v\nwant the same three times", err, again, anew)
		}
		if diff := cmp.Diff(views(t, first), views(t, second)) + cmp.Diff(views(t, first), views(t, fresh)); diff != "" {
			t.Fatalf("the results differ, want the same:\n%s", diff)
		}
		manifest.MissingNamespaces(first)
		for i := range first {
			checkResult(t, &first[i])
		}
	})
}

func checkResult(t *testing.T, o *manifest.Object) {
	t.Helper()
	again := made(t, *o).DeepCopy()
	text, err := json.Marshal(again.Object)
	if err != nil {
		t.Fatalf("the manifest is not JSON: %v", err)
	}
	d := o.Desired
	if d.Digest == "" || d.Name == "" || d.Kind == "" || d.Version == "" || d.Name != again.GetName() || d.Namespace != again.GetNamespace() {
		t.Fatalf("%+v is desired of %s, want a digest and the names of the object", d, text)
	}
	// What was prepared is prepared already.
	objects := []client.Object{made(t, *o)}
	if d.Group != "" {
		objects = append(objects, crd(d.Group, d.Kind, map[bool]string{true: "Namespaced", false: "Cluster"}[d.Namespace != ""]))
	}
	repeated := prepareWith(t, options(), nil, objects...)
	if repeated[0].Desired.Digest != d.Digest || !reflect.DeepEqual(made(t, repeated[0]).Object, made(t, *o).Object) {
		t.Fatalf("preparing %s again changes it, want the same digest and manifest", text)
	}
}

// Content that holds itself many times over must not be walked to its end.
func TestContentThatGrowsWithoutEnd(t *testing.T) {
	grows := m{"a": "b"}
	for range 40 {
		grows = m{"l": grows, "r": grows}
	}
	wantError(t, options(), []client.Object{object("v1 ConfigMap", "a", m{"x": grows})},
		"objects[0]: it holds itself, more than 262144 values, or values nested more than 256 levels deep")
	deep := any("bottom")
	for range 200 {
		deep = []any{deep}
	}
	prepare(t, object("v1 ConfigMap", "a", m{"x": deep}))
}

package check

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// odd has fields that a comparison by hand gets wrong easily.
type odd struct {
	metav1.TypeMeta
	Pointer              *metav1.TypeMeta
	Inner                struct{ TypeMeta any }
	Meta                 metav1.ObjectMeta
	ObjectMeta           *metav1.ObjectMeta
	Any                  any
	Float                float64
	Floats               map[float64]string
	Function             func()
	Channel              chan int
	SameToo              *never
	List                 []string
	Map                  map[string]any
	Ints                 map[int][]int
	Array                [2]string
	Time                 time.Time
	MetaTime             *metav1.Time
	Micro                metav1.MicroTime
	Quantity             resource.Quantity
	Quantities           *resource.Quantity
	Bytes                []byte
	Error                error
	Self                 *odd
	Transition           metav1.Condition
	MyLastTransitionTime string
	hidden               string
}

// never is a type whose values never are equal.
type never struct{ A string }

func (never) Equal(never) bool { return false }

type oddError struct{ A string }

func (oddError) Error() string { return "" }

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func newOdd(r *rand.Rand, depth int) *odd {
	now := time.Unix(1000, 0)
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: pick(r, "a", "a", "b"), ResourceVersion: pick(r, "", "1"), CreationTimestamp: metav1.NewTime(pick(r, time.Time{}, now, now.UTC())),
			Labels: pick(r, nil, map[string]string{}, map[string]string{"creationTimestamp": "x"}, map[string]string{"a": "b"}),
		}
	}
	object := func() map[string]any {
		m := map[string]any{"metadata": pick[any](r, map[string]any{}, map[string]any{"creationTimestamp": pick(r, "a", "b"), "name": "a"}, map[string]any{"name": "a"}, map[string]string{"resourceVersion": pick(r, "a", "b")})}
		if r.IntN(2) == 0 {
			m["lastTransitionTime"] = pick(r, "a", "b")
		}
		return m
	}
	o := &odd{
		TypeMeta: metav1.TypeMeta{Kind: pick(r, "", "A")}, Meta: meta(), hidden: pick(r, "a", "b"),
		Array: [2]string{"a", pick(r, "a", "a", "b")}, Time: pick(r, now, now.UTC()), Micro: metav1.NewMicroTime(pick(r, now, now.UTC())),
		Quantity:             pick(r, resource.MustParse("1"), resource.MustParse("1000m")),
		MyLastTransitionTime: pick(r, "a", "b"),
		Transition:           metav1.Condition{Type: "A", LastTransitionTime: metav1.NewTime(pick(r, now, now.Add(time.Hour)))},
	}
	o.Inner.TypeMeta = metav1.TypeMeta{Kind: pick(r, "A", "B")}
	for range r.IntN(4) {
		switch r.IntN(16) {
		case 0:
			o.Pointer = pick(r, nil, &metav1.TypeMeta{Kind: pick(r, "A", "B")})
		case 1:
			o.ObjectMeta = new(meta())
		case 2:
			o.Any = pick[any](r, nil, 1, int64(1), "a", []any{}, []any(nil), object(), &metav1.TypeMeta{Kind: pick(r, "A", "B")}, metav1.TypeMeta{Kind: pick(r, "A", "B")}, meta())
		case 3:
			o.Float = pick(r, 1, math.NaN(), 2)
		case 4:
			o.Floats = map[float64]string{pick(r, 1.0, 2): "a"}
		case 5:
			o.Function = pick(r, nil, func() {})
		case 6:
			o.Channel = pick(r, nil, make(chan int))
		case 7, 8:
			o.SameToo = pick(r, nil, &never{"a"})
		case 9:
			o.List = pick(r, nil, []string{}, []string{"a"}, []string{"a", "b"})
		case 10:
			o.Map = pick(r, nil, map[string]any{}, object(), map[string]any{"a": nil}, map[string]any{"b": nil})
		case 11:
			o.Ints = pick(r, nil, map[int][]int{1: nil}, map[int][]int{1: {}}, map[int][]int{1: {1}})
		case 12:
			o.MetaTime = pick(r, nil, new(metav1.NewTime(now)), new(metav1.NewTime(now.UTC())))
		case 13:
			o.Quantities = pick(r, nil, new(resource.MustParse("1")), new(resource.MustParse("1000m")))
		case 14:
			o.Bytes, o.Error = pick(r, nil, []byte{}, []byte("a")), pick[error](r, nil, oddError{"a"}, &oddError{"a"})
		case 15:
			if depth < 2 {
				o.Self = newOdd(r, depth+1)
			}
		}
	}
	return o
}

// What is certain to be equal is equal by go-cmp, for values of all shapes.
func TestCertainlyEqualValuesAreEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	comparisons := []Comparison{
		{IgnoreUnexported: true, EquateEmpty: true, IgnoreTypeMeta: true, IgnoreServerFields: true, IgnoreLastTransitionTime: true},
		{IgnoreUnexported: true, EquateEmpty: true, IgnoreTypeMeta: true, IgnoreServerFields: true},
		{IgnoreUnexported: true},
		{IgnoreUnexported: true, IgnoreTypeMeta: true},
		{IgnoreUnexported: true, IgnoreServerFields: true},
		{IgnoreUnexported: true, IgnoreLastTransitionTime: true},
		{IgnoreUnexported: true, EquateEmpty: true},
	}
	equal, certain := make([]int, len(comparisons)), make([]int, len(comparisons))
	for n := range 3000 {
		seed := r.Uint64()
		x := newOdd(rand.New(rand.NewPCG(seed, 1)), 0)
		y := newOdd(rand.New(rand.NewPCG(seed, 1)), 0)
		// Half of the pairs are made of the same choices; the others differ in one field at least.
		if n%2 == 0 {
			other := reflect.ValueOf(newOdd(r, 0)).Elem()
			for range 1 + r.IntN(3) {
				if i := r.IntN(other.NumField() - 1); other.Field(i).CanSet() {
					reflect.ValueOf(y).Elem().Field(i).Set(other.Field(i))
				}
			}
		}
		for i, c := range comparisons {
			is := cmp.Equal(x, y, c.options())
			if is {
				equal[i]++
			}
			if c.Certain(x, y) {
				certain[i]++
				if !is {
					t.Fatalf("comparison %d finds values equal that differ: %s", i, cmp.Diff(x, y, c.options()))
				}
			}
		}
	}
	for i := range comparisons {
		if equal[i] < 500 || certain[i] != equal[i] {
			t.Errorf("comparison %d is certain for %d of %d pairs that are equal", i, certain[i], equal[i])
		}
	}
}

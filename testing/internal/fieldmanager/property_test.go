package fieldmanager_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

var sequences = flag.Uint64("sequences", 12, "how many random sequences of writes are tried for each kind")

// TestManagedFieldsAreThoseOfAnAPIServer makes random writes with this package and with the field manager of an API
// server. Results, managed fields and errors have to be equal.
func TestManagedFieldsAreThoseOfAnAPIServer(t *testing.T) {
	t.Parallel()
	fieldmanager.BuiltIn() // Outside of the bubbles.
	for name, kind := range testKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range *sequences {
				m := fieldmanager.New(kind.GroupVersionKind, kind.converter, kind.create)
				for range 2 { // The second time, applies are known.
					synctest.Test(t, func(t *testing.T) { compareSequence(t, kind, m, rand.New(rand.NewPCG(seed, 0))) })
				}
				if t.Failed() {
					t.Fatalf("the sequence with seed %d failed", seed)
				}
			}
		})
	}
}

func compareSequence(t *testing.T, kind testKind, ours *fieldmanager.Manager, random *rand.Rand) {
	theirs := newReference(kind)
	var expected, live client.Object
	var fields *fieldmanager.Fields
	if random.IntN(4) == 0 {
		content := kind.identity()
		kind.randomValues(random, content, "", 0.5)
		live = kind.asObject(content)
		live.SetUID("given")
		expected = copyOf(live)
	}
	managers := []int{2, 4, 15}[random.IntN(3)]
	var steps []string
	for range 30 {
		time.Sleep(time.Duration(random.IntN(3)) * time.Second)
		s := kind.randomStep(random, expected, managers)
		steps = append(steps, s.String())
		before, sent := copyOf(live), copyOf(s.next)
		wanted, wantedErr := theirs.write(expected, s)
		got, gotFields, gotErr := writeOurs(ours, live, fields, s)
		diff := cmp.Diff(describeError(wantedErr), describeError(gotErr))
		diff += cmp.Diff(before, live) + cmp.Diff(sent, s.next)
		if diff == "" && wantedErr == nil {
			diff = cmp.Diff(kind.bare(wanted), kind.bare(got))
			if random.IntN(3) > 0 { // What nobody asks for stays pending.
				diff += cmp.Diff(wanted.GetManagedFields(), gotFields.Entries())
			}
			previous := live
			expected, live, fields = wanted, kind.bare(got), gotFields
			if got != previous && s.config != nil {
				spoil(got)
			}
		}
		if diff != "" {
			t.Fatalf("%s\nan API server differs (-API server, +this package):\n%s", strings.Join(steps, "\n"), diff)
		}
	}
	if diff := cmp.Diff(expected.GetManagedFields(), fields.Entries()); diff != "" {
		t.Fatalf("%s\nmanaged fields differ (-API server, +this package):\n%s", strings.Join(steps, "\n"), diff)
	}
}

// spoil changes an object that belongs to the caller.
func spoil(obj client.Object) {
	obj.SetName("spoiled")
	maps.DeleteFunc(obj.GetLabels(), func(string, string) bool { return true })
	if u, ok := obj.(*unstructured.Unstructured); ok {
		spec, _ := u.Object["spec"].(map[string]any)
		clear(spec)
	}
}

func (s step) String() string {
	var what client.Object = s.config
	if s.next != nil {
		what = s.next
	}
	raw, err := json.Marshal(what)
	return fmt.Sprintf("%+v force=%v apply=%v %s %v", s.write, s.force, s.config != nil, raw, err)
}

func copyOf(obj client.Object) client.Object {
	if obj == nil {
		return nil
	}
	return obj.DeepCopyObject().(client.Object)
}

// bare returns a copy without managed fields, and, if its Go type says what it is, without its kind.
func (k testKind) bare(obj client.Object) client.Object {
	obj = copyOf(obj)
	obj.SetManagedFields(nil)
	if _, ok := obj.(*unstructured.Unstructured); !ok {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj
}

// describeError returns the text of an error, and its causes if it is a conflict. An API server lists the causes in any
// order.
func describeError(err error) map[string]bool {
	if err == nil {
		return nil
	}
	text := map[string]bool{err.Error(): true}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			text[fmt.Sprintf("%+v", cause)] = true
		}
	}
	return text
}

func writeOurs(
	m *fieldmanager.Manager, live client.Object, fields *fieldmanager.Fields, s step,
) (client.Object, *fieldmanager.Fields, error) {
	if s.config != nil {
		return m.Applied(live, fields, s.config, s.force, s.write)
	}
	return s.next, m.Updated(live, s.next, fields, s.write), nil
}

// reference is the field manager of an API server, which keeps managed fields in the object.
type reference struct {
	kind     testKind
	managers map[string]*managedfields.FieldManager
}

func newReference(kind testKind) *reference {
	r := &reference{kind, map[string]*managedfields.FieldManager{}}
	for _, subresource := range []string{"", "status"} {
		converter, gvk := kind.converter(), kind.GroupVersionKind
		m, err := managedfields.NewDefaultFieldManager(
			converter, conversion{kind: kind}, r, r, gvk, gvk.GroupVersion(), subresource, nil)
		if err != nil {
			panic(err)
		}
		r.managers[subresource] = m
	}
	return r
}

func (r *reference) write(live client.Object, s step) (client.Object, error) {
	m, gvk := r.managers[s.write.Subresource], r.kind.GroupVersionKind
	if live == nil {
		live = r.empty()
	}
	live = copyOf(live)
	live.GetObjectKind().SetGroupVersionKind(gvk)
	if s.config != nil {
		obj, err := m.Apply(live, copyOf(s.config), s.write.Manager, s.force)
		if err != nil {
			return nil, err
		}
		return obj.(client.Object), nil
	}
	next := copyOf(s.next)
	next.GetObjectKind().SetGroupVersionKind(gvk)
	next.SetManagedFields(s.write.Sent)
	return m.UpdateNoErrors(live, next, s.write.Manager).(client.Object), nil
}

func (r *reference) empty() client.Object {
	obj := r.kind.create()
	obj.GetObjectKind().SetGroupVersionKind(r.kind.GroupVersionKind)
	return obj
}

// New implements [runtime.ObjectCreater].
func (r *reference) New(schema.GroupVersionKind) (runtime.Object, error) { return r.empty(), nil }

// Default implements [runtime.ObjectDefaulter].
func (r *reference) Default(runtime.Object) {}

// conversion converts between the Go type of a kind and unstructured objects.
type conversion struct {
	runtime.ObjectConvertor
	kind testKind
}

// ConvertToVersion implements [runtime.ObjectConvertor].
func (c conversion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	if u, ok := in.(*unstructured.Unstructured); ok {
		return c.kind.asObject(u.Object), nil
	}
	return in.DeepCopyObject(), nil
}

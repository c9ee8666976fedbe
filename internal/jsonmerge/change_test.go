package jsonmerge_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsonmerge"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gadget is a resource with more to it than its JSON form shows.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Weight int64 `json:"weight,string"`
		Colour string
		cached string
		*Size
	} `json:"spec,omitempty"`
	Items []gadgetItem `json:"items,omitempty"`
}

type gadgetItem struct {
	Name  string `json:"name"`
	Image string `json:"image,omitempty"`
	Extra string `json:"extra,omitempty"`
}

type Size struct {
	Height int `json:"height,omitempty"`
	Width  int `json:"width,omitempty"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	out := *g
	return &out
}

func newGadget() *gadget {
	g := &gadget{Items: []gadgetItem{{Name: "a", Extra: "of a"}, {Name: "b", Extra: "of b"}}}
	g.Name, g.Spec.Weight, g.Spec.Colour, g.Spec.cached = "g", 1<<60+1, "blue", "cached"
	return g
}

func TestApplyChange(t *testing.T) {
	const before = `{"metadata":{"name":"g"},"spec":{"weight":"1152921504606846977","Colour":"blue"},"items":[{"name":"a"},{"name":"b"}]}`
	for name, test := range map[string]struct {
		after  string
		change func(*gadget)
	}{
		"nothing":              {before, func(*gadget) {}},
		"a member":             {`{"spec":{"weight":"1152921504606846979","Colour":"blue"}}`, func(g *gadget) { g.Spec.Weight += 2; g.ObjectMeta.Name, g.Items = "", nil }},
		"another spelling":     {`{"metadata":{"name":"g"},"spec":{"weight":"1152921504606846977","colour":"red"},"items":[{"name":"a"},{"name":"b"}]}`, func(g *gadget) { g.Spec.Colour = "red" }},
		"an embedded struct":   {`{"metadata":{"name":"g"},"spec":{"weight":"1152921504606846977","Colour":"blue","width":3},"items":[{"name":"a"},{"name":"b"}]}`, func(g *gadget) { g.Spec.Size = &Size{Width: 3} }},
		"items in other order": {`{"metadata":{"name":"g"},"spec":{"weight":"1152921504606846977","Colour":"blue"},"items":[{"name":"b"},{"name":"a"}]}`, func(g *gadget) { g.Items[0], g.Items[1] = g.Items[1], g.Items[0] }},
		"all of a struct":      {`{"metadata":{"name":"g"},"items":[{"name":"a"},{"name":"b"}]}`, func(g *gadget) { g.Spec.Weight, g.Spec.Colour = 0, "" }},
	} {
		t.Run(name, func(t *testing.T) {
			actual, expected := newGadget(), newGadget()
			test.change(expected)
			if err := jsonmerge.ApplyChange(actual, content(t, before), content(t, test.after)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(expected, actual) {
				t.Errorf("the resource is %+v, want %+v", actual, expected)
			}
		})
	}
	for name, after := range map[string]string{
		"of another type": `{"metadata":{"name":"other"},"spec":{"weight":1}}`,
		"too large":       `{"metadata":{"name":"other"},"spec":{"weight":"9223372036854775808"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			actual := newGadget()
			if err := jsonmerge.ApplyChange(actual, content(t, before), content(t, after)); err == nil {
				t.Error("the change has no error, want one")
			}
			if !reflect.DeepEqual(newGadget(), actual) {
				t.Errorf("after the error the resource is %+v, want %+v", actual, newGadget())
			}
		})
	}
	if err := jsonmerge.ApplyChange(struct{ client.Object }{newGadget()}, content(t, before), content(t, `{}`)); err == nil {
		t.Error("a value that is no pointer was changed, want an error")
	}
}

func TestApplyChangeBehindAnEmbeddedPointer(t *testing.T) {
	g := newGadget()
	g.Spec.Size = &Size{Height: 1, Width: 2}
	err := jsonmerge.ApplyChange(g, content(t, `{"spec":{"height":1,"width":2}}`), content(t, `{"spec":{"width":2}}`))
	if err != nil || *g.Spec.Size != (Size{Width: 2}) {
		t.Errorf("the size is %v and the error %v, want the width 2 and none", *g.Spec.Size, err)
	}
}

func TestApplyChangeToUnstructuredContent(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"a": int64(1<<60 + 1), "b": map[string]any{"hidden": int64(1<<60 + 1), "x": "y"}, "c": "d"}}
	err := jsonmerge.ApplyChange(u, content(t, `{"b":{"x":"y"},"c":"d"}`), content(t, `{"b":{"x":1.5},"e":[1]}`))
	want := map[string]any{"a": int64(1<<60 + 1), "b": map[string]any{"hidden": int64(1<<60 + 1), "x": 1.5}, "e": []any{int64(1)}}
	if diff := cmp.Diff(want, u.Object); err != nil || diff != "" {
		t.Errorf("%v; the content differs (-expected, +actual):\n%s", err, diff)
	}
}

// ambiguous has members that JSON leaves out, and such that hide others.
type ambiguous struct {
	One
	Two
	Name string `json:"name,omitempty"`
}

type One struct {
	Same  string
	Tag   string
	Name  string `json:"name"`
	First string `json:"-"`
	//lint:ignore SA5008 encoding/json calls this member "-"
	Dash string `json:"-,"`
}

type Two struct {
	Same string
	Tag2 string `json:"Tag"`
}

func TestFieldsOfAreThoseOfJSON(t *testing.T) {
	value := ambiguous{One{"1", "2", "3", "4", "5"}, Two{"6", "7"}, "8"}
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	actual := map[string]any{}
	for _, field := range jsonmerge.FieldsOf(reflect.TypeOf(value)) {
		actual[field.Name] = reflect.ValueOf(value).FieldByIndex(field.Index).String()
	}
	if diff := cmp.Diff(content(t, string(data)), actual); diff != "" {
		t.Errorf("the fields differ (-expected, +actual):\n%s", diff)
	}
}

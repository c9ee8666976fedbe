package statusfield_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/statusfield"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Part is what is looked for.
type Part struct{ Text string }

type (
	embeds  struct{ Part }
	points  struct{ *Part }
	nested  struct{ embeds }
	through struct{ *embeds }
	names   struct{ Part Part }
	other   struct{ Text string }

	// outer has the status of what it embeds.
	outer struct{ *resource[embeds] }
	// hidden has a field that is not exported.
	hidden struct {
		metav1.TypeMeta
		metav1.ObjectMeta
		status Part
	}
)

func (o *outer) DeepCopyObject() runtime.Object  { copied := *o; return &copied }
func (h *hidden) DeepCopyObject() runtime.Object { copied := *h; return &copied }

func TestPartOf(t *testing.T) {
	for name, test := range map[string]struct {
		object client.Object
		found  bool
	}{
		"the status itself":               {&resource[Part]{}, true},
		"a pointer to it":                 {&resource[*Part]{Status: &Part{}}, true},
		"a nil pointer":                   {&resource[*Part]{}, false},
		"embedded":                        {&resource[embeds]{}, true},
		"embedded in a pointer":           {&resource[*embeds]{Status: &embeds{}}, true},
		"embedded as a pointer":           {&resource[points]{Status: points{&Part{}}}, false},
		"embedded twice":                  {&resource[nested]{}, true},
		"embedded in a nil pointer":       {&resource[through]{}, false},
		"a field of the name":             {&resource[names]{}, true},
		"another struct":                  {&resource[other]{}, false},
		"a text":                          {&resource[string]{}, false},
		"in a resource that is embedded":  {&outer{&resource[embeds]{}}, true},
		"in a resource that is not there": {&outer{}, false},
		"a field that is not exported":    {&hidden{status: Part{}}, false},
		"unstructured content":            {&unstructured.Unstructured{}, false},
		"no resource":                     {nil, false},
		"a nil pointer instead of one":    {(*resource[Part])(nil), false},
	} {
		found := statusfield.PartOf[Part](test.object)
		if test.found != (found != nil) {
			t.Errorf("%s: the part is %v, want one: %t", name, found, test.found)
		}
	}
	object := &resource[*embeds]{Status: &embeds{}}
	if statusfield.PartOf[Part](object).Text = "here"; object.Status.Text != "here" {
		t.Errorf(`the text is %q, want "here": the part is a copy`, object.Status.Text)
	}
}

func TestWithStatus(t *testing.T) {
	without := &resource[*embeds]{}
	if with := statusfield.WithStatus(without); with.Status == nil || without.Status != nil {
		t.Errorf("the status of the copy is %v and of the original %v, want one and none", with.Status, without.Status)
	}
	status := &embeds{}
	if with := statusfield.WithStatus(&resource[*embeds]{Status: status}); with.Status != status {
		t.Errorf("the status is %v, want %v, not replaced", with.Status, status)
	}
	statusfield.WithStatus(&resource[string]{})
	statusfield.WithStatus(&outer{})
}

func TestPlaceOf(t *testing.T) {
	type pair struct{ First, Second Part }
	type object = *resource[pair]
	first := func(o object) *Part { return &o.Status.First }
	second := func(o object) *Part { return &o.Status.Second }
	sample := &resource[pair]{}
	if statusfield.PlaceOf(first, sample) != statusfield.PlaceOf(first, &resource[pair]{}) {
		t.Errorf("the place of a part depends on the object: %v and %v, want the same",
			statusfield.PlaceOf(first, sample), statusfield.PlaceOf(first, &resource[pair]{}))
	}
	if statusfield.PlaceOf(first, sample) == statusfield.PlaceOf(second, sample) {
		t.Errorf("two parts have the place %v, want two places", statusfield.PlaceOf(first, sample))
	}
	for name, get := range map[string]func(object) *Part{
		"elsewhere": func(object) *Part { return &Part{} },
		"nowhere":   func(object) *Part { return nil },
		"a panic":   func(object) *Part { panic("there is no content") },
	} {
		if place := statusfield.PlaceOf(get, sample); place != (statusfield.Place{}) {
			t.Errorf("%s: the place is %v, want none", name, place)
		}
	}
	if place := statusfield.PlaceOf(first, nil); place != (statusfield.Place{}) {
		t.Errorf("without a sample, the place is %v, want none", place)
	}
	pointed := func(o *resource[*embeds]) *Part { return &o.Status.Part }
	if place := statusfield.PlaceOf(pointed, &resource[*embeds]{}); place != (statusfield.Place{}) {
		t.Errorf("outside of the resource, the place is %v, want none", place)
	}
}

package generator_test

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/generator"
)

type bedSpec struct {
	Flower string            `json:"flower,omitempty"`
	Count  int64             `json:"count,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// movedSpec is bedSpec with its fields in another order.
type movedSpec struct {
	Labels map[string]string `json:"labels,omitempty"`
	Count  int64             `json:"count,omitempty"`
	Flower string            `json:"flower,omitempty"`
}

type digestInput struct {
	spec        any
	annotations map[string]string
	prefix      string
	references  map[string]string
}

func (in digestInput) digest(t *testing.T) string {
	t.Helper()
	digest, err := generator.ComponentDigest(in.spec, in.annotations, in.prefix, in.references)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile("^[a-z2-7]{26}$").MatchString(digest) {
		t.Errorf("the digest is %q, want 26 characters of base32", digest)
	}
	return digest
}

// The digest changes with the spec, the component's own annotations and the references only.
func TestComponentDigest(t *testing.T) {
	labels := map[string]string{"a": "1", "b": "2"}
	base := digestInput{&bedSpec{"rose", 3, labels}, map[string]string{prefix + "/mode": "x"}, prefix, map[string]string{"spec.secret": "1/42"}}
	want := base.digest(t)
	// Stored digests are compared with those of a later version, so the text itself is pinned.
	if want != "tephh4swc46czwilmeu3pye5bu" {
		t.Errorf("the digest is %s, want tephh4swc46czwilmeu3pye5bu as ever", want)
	}
	for name, in := range map[string]digestInput{
		"again":                  base,
		"no pointer":             {bedSpec{"rose", 3, labels}, base.annotations, prefix, base.references},
		"fields moved":           {movedSpec{labels, 3, "rose"}, base.annotations, prefix, base.references},
		"a map":                  {generator.UnstructurableMap{"flower": "rose", "count": 3, "labels": map[string]any{"b": "2", "a": "1"}}, base.annotations, prefix, base.references},
		"annotations of others":  {base.spec, map[string]string{prefix + "/mode": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}", "mode": "y", prefix: "z", "x" + prefix + "/mode": "z", "espalier.dev/apply-order": "1"}, prefix, base.references},
		"annotations of parents": {base.spec, map[string]string{prefix + "/mode": "x", prefix + "/owner-id": "y", prefix + "/digest": "z"}, prefix, base.references},
	} {
		if got := in.digest(t); got != want {
			t.Errorf("%s: the digest is %s, want %s", name, got, want)
		}
	}
	for name, in := range map[string]digestInput{
		"spec":                        {&bedSpec{"rose", 4, labels}, base.annotations, prefix, base.references},
		"spec, deep":                  {&bedSpec{"rose", 3, map[string]string{"a": "1", "b": "3"}}, base.annotations, prefix, base.references},
		"no spec":                     {nil, base.annotations, prefix, base.references},
		"annotation":                  {base.spec, map[string]string{prefix + "/mode": "y"}, prefix, base.references},
		"annotation gone":             {base.spec, nil, prefix, base.references},
		"reference":                   {base.spec, base.annotations, prefix, map[string]string{"spec.secret": "1/43"}},
		"reference renamed":           {base.spec, base.annotations, prefix, map[string]string{"spec.other": "1/42"}},
		"reference added":             {base.spec, base.annotations, prefix, map[string]string{"spec.secret": "1/42", "spec.other": ""}},
		"reference for an annotation": {base.spec, nil, prefix, map[string]string{"spec.secret": "1/42", "mode": "x"}},
		"no prefix":                   {base.spec, map[string]string{"/mode": "x"}, "", base.references},
	} {
		if got := in.digest(t); got == want {
			t.Errorf("%s: the digest is %s, want another", name, got)
		}
	}
	nothing, empty := digestInput{nil, nil, prefix, nil}, digestInput{nil, map[string]string{}, prefix, map[string]string{}}
	if nothing.digest(t) != empty.digest(t) {
		t.Error("the digests of nil and empty differ, want the same")
	}
	// Numbers that a float64 does not distinguish.
	if (digestInput{spec: bedSpec{Count: 1<<53 + 1}}).digest(t) == (digestInput{spec: bedSpec{Count: 1 << 53}}).digest(t) {
		t.Error("the digests of large numbers are the same, want others")
	}
}

func TestComponentDigestErrors(t *testing.T) {
	for name, spec := range map[string]any{
		"function": map[string]any{"a": func() {}}, "channel": make(chan int), "not a number": math.NaN(),
	} {
		if digest, err := generator.ComponentDigest(spec, nil, prefix, nil); err == nil || digest != "" {
			t.Errorf("%s: the digest is %q (%v), want an error", name, digest, err)
		}
	}
}

// A spec is not searched for references, so a large value costs no more than to write it once.
func TestALargeSpecIsOnlyWritten(t *testing.T) {
	raw, err := json.Marshal(strings.Repeat("x", 100_000))
	if err != nil {
		t.Fatal(err)
	}
	spec := struct {
		Values runtime.RawExtension `json:"values"`
		Bytes  []byte               `json:"bytes"`
	}{runtime.RawExtension{Raw: raw}, raw}
	allocations := testing.AllocsPerRun(3, func() {
		if _, err := generator.ComponentDigest(spec, nil, prefix, nil); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 200 {
		t.Errorf("there are %v allocations, want at most 200", allocations)
	}
}

package jsondiff_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsondiff"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		got, want string
		diff      []string
	}{
		"equal values":           {`{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, nil},
		"the order of the paths": {`{"b":1,"a":1}`, `{"b":2,"a":2}`, []string{"a is 1, not 2", "b is 1, not 2"}},
		"missing fields": {`{"a":{"b":1}}`, `{"a":{"c":2}}`, []string{
			"a.b is 1, not absent", "a.c is absent, not 2",
		}},
		"null is a value":     {`{"a":null}`, `{}`, []string{"a is null, not absent"}},
		"another type":        {`{"a":{"b":1}}`, `{"a":[1]}`, []string{`a is {"b":1}, not [1]`}},
		"a key with a dot":    {`{"a":{"b.c":1}}`, `{"a":{"b.c":2}}`, []string{`a["b.c"] is 1, not 2`}},
		"a longer list":       {`{"a":[1,2]}`, `{"a":[1]}`, []string{"a[1] is 2, not absent"}},
		"items with types":    {`[{"type":"R","s":1}]`, `[{"type":"R","s":2}]`, []string{"[R].s is 1, not 2"}},
		"items of other name": {`[{"name":"x"}]`, `[{"name":"y"}]`, []string{`[0].name is "x", not "y"`}},
		"a long value": {`"` + strings.Repeat("é", 99) + `"`, `1`, []string{
			` is "` + strings.Repeat("é", 79) + "…, not 1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, want any
			if err := json.Unmarshal([]byte(test.got), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			var diff []string
			for _, d := range jsondiff.Diff(got, want) {
				diff = append(diff, fmt.Sprint(d))
			}
			if !slices.Equal(diff, test.diff) {
				t.Errorf("the diff is %q, want %q", diff, test.diff)
			}
		})
	}
}

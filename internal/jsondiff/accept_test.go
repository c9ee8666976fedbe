package jsondiff_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsondiff"
)

func TestAccept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ got, want, accepted, result string }{
		"another value":        {`{"a":1,"b":2}`, `{"a":3,"b":4}`, "a", `{"a":3,"b":2}`},
		"not wanted":           {`{"a":1,"b":2}`, `{"b":2}`, "a", `{"b":2}`},
		"missing":              {`{"b":2}`, `{"a":1,"b":2}`, "a", `{"a":1,"b":2}`},
		"all of a map":         {`{"m":{"a":1}}`, `{}`, "m.a", `{}`},
		"some of a map":        {`{"m":{"a":1,"b":2}}`, `{}`, "m.a", `{"m":{"b":2}}`},
		"a map that was empty": {`{"m":{}}`, `{}`, "m.a", `{"m":{}}`},
		"a named item": {
			`{"l":[{"b":1,"name":"x"}]}`, `{"l":[{"b":2,"name":"x"}]}`, "l[x].b", `{"l":[{"b":2,"name":"x"}]}`,
		},
		"an item":      {`{"l":[1,2]}`, `{"l":[3,4]}`, "l[1]", `{"l":[1,4]}`},
		"another type": {`{"m":{"a":1}}`, `{"m":5}`, "m.a", `{"m":{"a":1}}`},
	} {
		var got, want any
		for text, value := range map[string]*any{test.got: &got, test.want: &want} {
			if err := json.Unmarshal([]byte(text), value); err != nil {
				t.Fatal(err)
			}
		}
		result := jsondiff.Accept(got, want, func(path string) bool { return path == test.accepted })
		if raw, err := json.Marshal(result); err != nil || strings.TrimSpace(string(raw)) != test.result {
			t.Errorf("%s: want %s, got %s, %v", name, test.result, raw, err)
		}
	}
}

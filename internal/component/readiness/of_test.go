package readiness_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/readiness"
)

// A message that is different each time would cause a write of the component each time.
func TestMessagesAreStableAndShort(t *testing.T) {
	tests := map[string]struct{ message, want string }{
		"lines":     {"a\n\tb \u2028 c\x00\x1b[31m", "a b c[31m"},
		"times":     {"probed at 2025-02-03T04:05:06.123Z, and 2025-02-03 04:05:06 +0000 UTC m=+0.5", "probed at …, and …"},
		"uids":      {"pod web(1b4e28ba-2fa1-11d2-883f-0016d3cca427) is gone", "pod web(…) is gone"},
		"not utf-8": {"\xffa\xfe", "a"},
		"long":      {strings.Repeat("ä", 300), strings.Repeat("ä", 90) + "…"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := state{ready: "False"}.object()
			object.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["message"] = tc.message
			check(t, object, generator.Settings{}, inProgress("Ready is False: "+tc.want))
		})
	}
}

func TestNoObject(t *testing.T) {
	want := unknown("there is no object to look at")
	if got := readiness.Of(nil, generator.Settings{}); got != want {
		t.Errorf("want %v, got %v", want, got)
	}
}

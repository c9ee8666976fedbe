// Package message makes texts for conditions, events and records, which have a limited size.
package message

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis stands for what was cut off.
const ellipsis = "…"

// Printable returns text in valid UTF-8 that cannot act on a terminal, nor change the direction of what is around it:
// without characters that control or format, except for tabs and line feeds. Other space is a space.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// Truncate returns text of at most limit bytes, and [Printable]. A longer text is cut between two characters and ends
// with an ellipsis. A limit that is too small for the ellipsis gives the empty text.
func Truncate(text string, limit int) string {
	text = Printable(text)
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

// Objects says how many objects there are.
func Objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
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

// WithReasons appends the reasons that are not empty.
func WithReasons(text string, reasons ...string) string {
	for _, reason := range reasons {
		if reason != "" {
			text += ": " + reason
		}
	}
	return text
}

// maxFinalizers is how many finalizers the text of [Deletion] names.
const maxFinalizers = 3

// Deletion says that an object is being deleted, and which finalizers keep it, in words that follow "it".
func Deletion(finalizers []string) string {
	switch len(finalizers) {
	case 0:
		return "is being deleted"
	case 1:
		return "is being deleted, and waits for the finalizer " + finalizers[0]
	}
	return "is being deleted, and waits for the finalizers " + List(finalizers, maxFinalizers)
}

// maxStable is the length of the longest text of [Stable], in bytes.
const maxStable = 200

// unstableParts are parts of messages of others that are different each time: times and UIDs.
var unstableParts = regexp.MustCompile(
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|UTC|[+-]\d\d:?\d\d))*( m=[+-][\d.]+)?` +
		`|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// Stable makes one line of limited length of a message. The line is the same each time that the same happens.
func Stable(text string) string { return StableWithin(text, maxStable) }

// StableWithin is [Stable] with another limit, in bytes.
func StableWithin(text string, limit int) string {
	// The limit is applied to the result. The rest of a very long text cannot get into it.
	text = strings.ToValidUTF8(text[:min(len(text), 4*limit)], "")
	if strings.Count(text, "-") >= 2 {
		text = unstableParts.ReplaceAllLiteralString(text, "…")
	}
	return Truncate(strings.Join(strings.Fields(Printable(text)), " "), limit)
}

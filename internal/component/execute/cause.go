package execute

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/write"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxCause is how long the cause of one error is, in bytes.
	maxCause = 400
	// maxFields is how many fields a cause names.
	maxFields = 3
	// maxValue is how long a value of an object is that a cause quotes, in bytes.
	maxValue = 40
)

// causeOf says in one line why an operation failed: of an answer of the API server the fields and what is wrong with
// each, without the name of the object, which the reader knows, and without large parts of the object.
func causeOf(err error) string {
	var answer apierrs.APIStatus
	if hasOwnText(err) || !errors.As(err, &answer) {
		return message.Truncate(withoutDumps(err.Error()), maxCause)
	}
	status := answer.Status()
	text := withoutDumps(withoutPreamble(status))
	if fields := fieldsOf(status); len(fields) > 0 {
		text = message.List(fields, maxFields)
	}
	return message.Truncate(strings.Join(strings.Fields(text), " "), maxCause)
}

// fieldsOf returns what is wrong with each field of an object that is invalid.
func fieldsOf(status metav1.Status) []string {
	if status.Reason != metav1.StatusReasonInvalid || status.Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Details.Causes {
		if cause.Message == "" {
			return nil
		}
		text := withoutValue(cause.Message)
		if cause.Field != "" && cause.Field != "<nil>" {
			text = cause.Field + ": " + text
		}
		fields = append(fields, text)
	}
	return slices.Compact(fields)
}

// withoutValue returns the text about a field without the value, unless that is short.
func withoutValue(text string) string {
	const invalid = "Invalid value: "
	value, isInvalid := strings.CutPrefix(text, invalid)
	if !isInvalid {
		return withoutDumps(text)
	}
	end := endOfValue(value)
	if end <= maxValue {
		return invalid + value[:end] + withoutDumps(value[end:])
	}
	if reason, ok := strings.CutPrefix(value[end:], ": "); ok {
		return withoutDumps(reason)
	}
	return "Invalid value"
}

// endOfValue returns the length of the value that text begins with: a quoted text, a Go or JSON value in brackets, or
// anything without ": ".
func endOfValue(text string) int {
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		return len(quoted)
	}
	end := strings.Index(text, ": ")
	if end < 0 {
		end = len(text)
	}
	if opening := strings.IndexAny(text, "{["); opening >= 0 && opening < end {
		return opening + endOfBrackets(text[opening:])
	}
	return end
}

// endOfBrackets returns the length of the part of text up to the bracket that closes the first one.
func endOfBrackets(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			if quoted, err := strconv.QuotedPrefix(text[i:]); err == nil {
				i += len(quoted) - 1
			}
		}
	}
	return len(text)
}

// withoutDumps returns text with longer values in braces left out.
func withoutDumps(text string) string {
	var b strings.Builder
	for {
		opening := strings.IndexByte(text, '{')
		if opening < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := opening + endOfBrackets(text[opening:])
		if end-opening <= maxValue {
			b.WriteString(text[:end])
		} else {
			b.WriteString(text[:opening] + "{…}")
		}
		text = text[end:]
	}
}

var (
	// cannotBeHandled begins the answer about an object that cannot be decoded, as in `Service in version "v1" cannot
	// be handled as a Service: strict decoding error: unknown field "spec.port"`.
	cannotBeHandled = regexp.MustCompile(
		`^[\w.]+ in version "[^"]*" cannot be handled as a [\w.]+: (strict decoding error: )?`)
	// isRefused begins an answer such as `configmaps "a" is forbidden: User ...`. A create has no name there.
	isRefused = regexp.MustCompile(`^[\w.]+ (?:"[^"]*" )?is (forbidden|invalid): `)
	// notTyped begins the answer of server-side apply about an object that does not fit the schema.
	notTyped = regexp.MustCompile(`^failed to create typed patch object \([^)]*\): (errors:)?\s*`)
)

// withoutPreamble returns the message of a status without what names the object.
func withoutPreamble(status metav1.Status) string {
	text := status.Message
	if at := cannotBeHandled.FindString(text); at != "" {
		return text[len(at):]
	}
	if at := notTyped.FindString(text); at != "" {
		return text[len(at):]
	}
	if found := isRefused.FindStringSubmatch(text); found != nil {
		return found[1] + ": " + text[len(found[0]):]
	}
	if text == "" {
		return fmt.Sprintf("status %d %s", status.Code, status.Reason)
	}
	return text
}

const (
	hintRecreate = " (update-policy: recreate deletes the object and creates it anew)"
	hintReplace  = " (others changed it; update-policy: replace also removes what they added)"
)

// addsTo are words of an object that is invalid with what others added: an element of a list whose key they changed, or
// another kind of a volume.
var addsTo = []string{"Duplicate value", "may not specify more than 1 "}

// hintAt returns what may help against the failure of an operation, empty if nothing is known: an object with a field
// that cannot be changed can be created anew.
func (e *Executor) hintAt(op plan.Operation, err error) string {
	object := e.Objects[op.Key]
	switch {
	case !apierrs.IsInvalid(err) || object == nil || object.Desired.UpdatePolicy == apis.UpdateRecreate:
		return ""
	case op.Action != plan.ActionApply && op.Action != plan.ActionReplace &&
		op.Action != plan.ActionAdopt && op.Action != plan.ActionRelabel:
		return ""
	case op.Key.GroupKind() == kinds.Namespace || kinds.DefinesTypes(op.Key.GroupKind()):
		return ""
	}
	if op.Action == plan.ActionApply && op.Undoes != "" && containsAny(err.Error(), addsTo) {
		return hintReplace
	}
	if write.IsImmutable(err) {
		return hintRecreate
	}
	return ""
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

package execute

import (
	"errors"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/message"
)

// OperationError says which operation failed and why, in a text that is the same each time and contains no secret.
type OperationError struct {
	// Key is the object. before and after are the words around it.
	Key           plan.Key
	before, after string
	// subject is what the words are about, usually the object.
	subject, cause string
	// Err is why it failed.
	Err error
}

func (e *OperationError) Error() string {
	return "unable to " + e.before + e.subject + e.after + ": " + e.cause
}

func (e *OperationError) Unwrap() error { return e.Err }

// failure says which operation failed and why.
func (e *Executor) failure(op plan.Operation, err error) error {
	failed := &OperationError{Key: op.Key, before: string(op.Action) + " ", subject: op.Key.String()}
	switch op.Action {
	case plan.ActionCheck:
		failed.before = "find out who uses the types of "
		if op.Pattern >= len(e.Patterns) {
			failed.subject = fmt.Sprintf("pattern %d", op.Pattern)
		} else if op.Pattern >= 0 {
			pattern := e.Patterns[op.Pattern]
			failed.before = "find out who uses "
			failed.subject = strings.TrimSuffix(pattern.Kind+"."+pattern.Group, ".")
		}
	case plan.ActionRecreate:
		failed.before, failed.after = "delete ", " to create it anew"
	case plan.ActionDeleteType, plan.ActionDeleteNamespace:
		failed.before = "delete "
	}
	hint := e.hintAt(op, err)
	err = explain(err, op.Key.Namespace)
	if op.Action != plan.ActionCheck && e.confidential(op.Key) {
		err = withhold(err)
	}
	failed.cause, failed.Err = causeOf(err)+hint, err
	return failed
}

// namedObjects is how many objects with the same failure are named.
const namedObjects = 5

// Summary returns the text of an error that joins others, in at most limit bytes: operations that failed alike are
// named together, in the order of the first of them.
func Summary(err error, limit int) string {
	s := summary{groups: map[string]int{}}
	s.add(err)
	text := ""
	for named := namedObjects; named > 0; named-- {
		if text = s.text(named); len(text) <= limit {
			return text
		}
	}
	return message.Truncate(text, limit)
}

type summary struct {
	parts []summaryPart
	// groups has the index of the part, by all that is the same in a group.
	groups map[string]int
}

// summaryPart is a text, with the names of objects in between.
type summaryPart struct {
	before, after string
	subjects      []string
}

func (s *summary) add(err error) {
	var failed *OperationError
	if errors.As(err, &failed) && failed == err {
		before, after := "unable to "+failed.before, failed.after+": "+failed.cause
		at, known := s.groups[before+"\x00"+after]
		if !known {
			at = len(s.parts)
			s.groups[before+"\x00"+after] = at
			s.parts = append(s.parts, summaryPart{before: before, after: after})
		}
		s.parts[at].subjects = append(s.parts[at].subjects, failed.subject)
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		parts := joined.Unwrap()
		if again := errors.Join(parts...); again != nil && again.Error() == err.Error() {
			for _, part := range parts {
				s.add(part)
			}
			return
		}
	}
	s.parts = append(s.parts, summaryPart{before: err.Error()})
}

func (s *summary) text(named int) string {
	texts := make([]string, len(s.parts))
	for i, p := range s.parts {
		texts[i] = p.before + message.List(p.subjects, named) + p.after
	}
	return strings.Join(texts, "; ")
}

package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/fault"
)

// Log is what happened on a network.
type Log struct {
	// Dropped is how many entries there were before those that are kept.
	Dropped int
	Entries []Entry
}

// String returns the log as a sequence of lines.
func (l Log) String() string {
	var text strings.Builder
	if l.Dropped > 0 {
		fmt.Fprintf(&text, "(%d lines before are not kept)\n", l.Dropped)
	}
	for _, e := range l.Entries {
		text.WriteString(e.String() + "\n")
	}
	return text.String()
}

// String returns the line, such as "00:00:01.250 operator create ConfigMap shop/one → 201".
func (e Entry) String() string {
	at := clock(e.At)
	if e.Note != "" {
		return at + " = " + e.Note + " ="
	}
	line := strings.Join(slices.DeleteFunc(
		[]string{at, e.Call.Actor, e.Call.Verb, e.what(), e.object(), e.Selection},
		func(word string) bool { return word == "" }), " ")
	if e.End != "" {
		return line + " ends: " + e.End
	}
	line += " → " + e.answer()
	if e.Fault.Kind != "" {
		line += " ! " + e.Fault.Effect()
	}
	return line
}

// what is what the request is for, without the name of the object.
func (e Entry) what() string {
	switch {
	case e.Resource.Resource == "":
		return e.Call.Path
	case e.Subresource != "":
		return e.kind() + "/" + e.Subresource
	}
	return e.kind()
}

// kind returns the kind if it is known, and the resource otherwise.
func (e Entry) kind() string {
	if e.Kind != "" {
		return e.Kind
	}
	return e.Resource.Resource
}

// Object returns the kind and the name of the object, such as "Deployment shop/web".
func (e Entry) Object() string { return strings.TrimSpace(e.what() + " " + e.object()) }

func (e Entry) object() string {
	switch {
	case e.Namespace == "" || e.Resource.Resource == "namespaces":
		return e.Name
	case e.Name == "":
		return e.Namespace + "/*"
	}
	return e.Namespace + "/" + e.Name
}

func (e Entry) answer() string {
	switch {
	case e.Status == 0 && e.Error == "":
		return "no answer yet"
	case e.Status == 0:
		return e.Error
	case e.Error == "" || e.Fault.Kind == fault.LosesAnswer || e.Fault.Kind == fault.DiesAfter:
		return fmt.Sprint(e.Status)
	}
	return fmt.Sprintf("%d, %s", e.Status, e.Error)
}

// clock returns a time as on a clock, with as many hours as there are.
func clock(at time.Duration) string {
	at = at.Truncate(time.Millisecond)
	return fmt.Sprintf("%02d:%02d:%02d.%03d",
		at/time.Hour, at/time.Minute%60, at/time.Second%60, at/time.Millisecond%1000)
}

// short returns an error in a few words.
func short(err error) string {
	if err == errDead {
		return "dead"
	}
	for _, known := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}

// String returns a line for each actor, verb and kind, in order.
func (c Counts) String() string {
	var lines []string
	for counted, n := range c {
		lines = append(lines, fmt.Sprintf("%s %s %s: %d\n", counted.Actor, counted.Verb, counted.Kind, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Kinds returns a function that knows the kinds of a scheme by their resources.
func Kinds(scheme *runtime.Scheme) func(schema.GroupResource) string {
	kinds := map[schema.GroupResource]string{}
	for kind := range scheme.AllKnownTypes() {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		kinds[plural.GroupResource()] = kind.Kind
	}
	return func(resource schema.GroupResource) string { return kinds[resource] }
}

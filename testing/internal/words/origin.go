package words

import (
	"errors"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/source"
)

// Origin is where a table is run. It is nil in a test without a table.
type Origin struct {
	callers []uintptr
	// names lead to the case: its own name, after the names of those that it is nested in.
	names []string
	// fields are the names of the fields of a case.
	fields []string

	find sync.Once
	row  *source.Row
	err  error
}

var errNoSource = errors.New("the source of the test is not found")

// Here returns the origin of a case that the callers of the harness run.
func Here(name string, caseType reflect.Type) *Origin {
	o := &Origin{callers: callers(), names: []string{name}}
	for i := range caseType.NumField() {
		o.fields = append(o.fields, caseType.Field(i).Name)
	}
	return o
}

// Nested returns the origin of one of the AdditionalReconciles of a case.
func (o *Origin) Nested(name string) *Origin {
	if o == nil {
		return nil
	}
	return &Origin{callers: o.callers, fields: o.fields, names: append(o.names[:len(o.names):len(o.names)], name)}
}

// Named returns the origin of a case of a suite.
func (o *Origin) Named(name string) *Origin {
	return &Origin{callers: o.callers, fields: o.fields, names: []string{name}}
}

func callers() []uintptr {
	pcs := make([]uintptr, 64)
	return pcs[:runtime.Callers(3, pcs)]
}

// Harness is the import path of the package that tables are made with.
var Harness = strings.TrimSuffix(reflect.TypeFor[Origin]().PkgPath(), "/internal/words")

// ofHarness reports whether a function, by its full name, belongs to the harness. The tests of its packages do not.
func ofHarness(function string) bool {
	pkg := packageOf(function)
	return pkg == Harness || strings.HasPrefix(pkg, Harness+"/internal/") && !strings.HasSuffix(pkg, "_test")
}

// frames returns the calls outside of the harness, from the innermost to the outermost.
func (o *Origin) frames() []runtime.Frame {
	if o == nil || len(o.callers) == 0 {
		return nil
	}
	var outside []runtime.Frame
	frames := runtime.CallersFrames(o.callers)
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		frame.File = source.PathOf(frame.File)
		switch {
		case frame.Function == "testing.tRunner" || frame.File == "":
			return outside
		case !ofHarness(frame.Function) && !strings.HasPrefix(frame.Function, "testing."):
			outside = append(outside, frame)
		}
	}
	return outside
}

// location returns the row of the case in the source of its test.
func (o *Origin) location() (*source.Row, error) {
	if o == nil || len(o.names) == 0 {
		return nil, errNoSource
	}
	o.find.Do(func() {
		var places []source.Place
		for _, frame := range o.frames() {
			places = append(places, source.Place{File: frame.File, Line: frame.Line})
		}
		if o.row, o.err = source.Find(o.names[0], o.fields, places); o.err != nil {
			return
		}
		for _, name := range o.names[1:] {
			if o.row, o.err = o.row.In("AdditionalReconciles", name); o.err != nil {
				return
			}
		}
	})
	return o.row, o.err
}

// markedRow returns the row if a file has it where something is marked as not read; nil if there is no such mark.
func (o *Origin) markedRow() (*source.Row, error) {
	for _, frame := range o.frames() {
		if source.Has(frame.File, unread) {
			return o.location()
		}
	}
	return nil, nil
}

// writer returns what writes literals for the file of the test.
func (o *Origin) writer() *literal.Writer {
	w := &literal.Writer{}
	frames := o.frames()
	if len(frames) == 0 {
		return w
	}
	outermost := frames[len(frames)-1]
	w.Package = packageOf(outermost.Function)
	file, err := source.Read(outermost.File)
	if row, rowErr := o.location(); rowErr == nil {
		file, err = row.File(), nil
	}
	if err == nil {
		w.Names, w.Taken = file.Imports(), file.Identifiers()
	}
	return w
}

// packageOf returns the import path of the package of a function, by the function's full name.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	if unescaped, err := url.PathUnescape(name); err == nil {
		name = unescaped
	}
	return function[:slash] + name
}

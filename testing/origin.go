package testing

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

// origin is where a table is run. It is nil in a case that is not run by a table.
type origin struct {
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

// here returns the origin of a case that the callers of this package run.
func here(name string, caseType reflect.Type) *origin {
	o := &origin{callers: callers(), names: []string{name}}
	for i := range caseType.NumField() {
		o.fields = append(o.fields, caseType.Field(i).Name)
	}
	return o
}

// nested returns the origin of one of the AdditionalReconciles of a case.
func (o *origin) nested(name string) *origin {
	if o == nil {
		return nil
	}
	return &origin{callers: o.callers, fields: o.fields, names: append(o.names[:len(o.names):len(o.names)], name)}
}

// named returns the origin of a case of a suite.
func (o *origin) named(name string) *origin {
	return &origin{callers: o.callers, fields: o.fields, names: []string{name}}
}

func callers() []uintptr {
	pcs := make([]uintptr, 64)
	return pcs[:runtime.Callers(3, pcs)]
}

// harness is the prefix of the names of the functions of this package.
var harness = reflect.TypeFor[origin]().PkgPath() + "."

// frames returns the calls outside of this package, from the innermost to the outermost.
func (o *origin) frames() []runtime.Frame {
	if o == nil || len(o.callers) == 0 {
		return nil
	}
	var outside []runtime.Frame
	frames := runtime.CallersFrames(o.callers)
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		switch {
		case frame.Function == "testing.tRunner" || frame.File == "":
			return outside
		case !strings.HasPrefix(frame.Function, harness) && !strings.HasPrefix(frame.Function, "testing."):
			outside = append(outside, frame)
		}
	}
	return outside
}

// location returns the row of the case in the source of its test.
func (o *origin) location() (*source.Row, error) {
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

// writer returns what writes literals for the file of the test.
func (o *origin) writer() *literal.Writer {
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

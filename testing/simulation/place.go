package simulation

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Helper implements [testing.TB].
func (r *recorder) Helper() {
	r.TB.Helper()
	pc, _, _, ok := runtime.Caller(1)
	if f := runtime.FuncForPC(pc); ok && f != nil {
		r.helpers.Store(f.Name(), true)
	}
}

// place returns where the test is that speaks, such as "shop_test.go:42: ", or an empty text: the innermost function
// that is neither a helper nor of this package.
func (r *recorder) place() string {
	callers := make([]uintptr, 50)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		_, helper := r.helpers.Load(frame.Function)
		own := strings.HasPrefix(frame.Function, pkg+".") && !strings.HasSuffix(frame.File, "_test.go")
		if frame.Function != "" && !own && !helper && !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s:%d: ", filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// pkg is the path of this package.
const pkg = "github.com/espalier-dev/espalier/testing/simulation"

package panics_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/panics"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

type secret struct{ next *secret }

type broken struct{}

func (*broken) Error() string { panic("again") }

func TestRecovered(t *testing.T) {
	var log bytes.Buffer
	logger := funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{})
	ctx := logr.NewContext(t.Context(), logger)
	recovered := func(panics_ func()) (err error) {
		defer func() { err = panics.Recovered(ctx, recover()) }()
		panics_()
		return nil
	}
	var none map[string]string
	for name, test := range map[string]struct {
		panics func()
		want   string
	}{
		"text":     {func() { panic("boom") }, "panicked: boom"},
		"error":    {func() { panic(errors.New("boom")) }, "panicked: boom"},
		"number":   {func() { panic(42) }, "panicked: 42"},
		"Stringer": {func() { panic(time.Second) }, "panicked: 1s"},
		"runtime":  {func() { none["a"] = "b" }, "panicked: assignment to entry in nil map"},
		"index":    {func() { fmt.Print([]int{}[len(none)]) }, "panicked: runtime error: index out of range [0] with length 0"},
		// Other values may have addresses, or more than is to be shown.
		"pointer": {func() { panic(&secret{next: &secret{}}) }, "panicked: a value of type *panics_test.secret"},
		"map":     {func() { panic(map[string]string{"password": "x"}) }, "panicked: a value of type map[string]string"},
		"nested":  {func() { panic(&broken{}) }, "panicked: %!v(PANIC=Error method: again)"},
	} {
		log.Reset()
		err := recovered(test.panics)
		if err.Error() != test.want {
			t.Errorf("%s: the error is %q, want %q", name, err, test.want)
		}
		if errors.Unwrap(err) != nil {
			t.Errorf("%s: the error unwraps to %v, want nothing", name, errors.Unwrap(err))
		}
		if !strings.Contains(log.String(), "panics_test.go") {
			t.Errorf("%s: the log has no stack of the function, but:\n%s", name, log.String())
		}
	}
}

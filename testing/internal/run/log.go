package run

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// newLogger returns a logger that writes to the test, with the names of objects in place of the objects.
func newLogger(t *testing.T, scheme *runtime.Scheme) logr.Logger {
	return logr.New(namingSink{testr.New(t).GetSink(), t, scheme})
}

// namingSink is a sink that logs an object by its kind and name.
type namingSink struct {
	logr.LogSink
	t      *testing.T
	scheme *runtime.Scheme
}

var _ logr.CallStackHelperLogSink = namingSink{}

// GetCallStackHelper implements [logr.CallStackHelperLogSink].
func (s namingSink) GetCallStackHelper() func() { return s.t.Helper }

// Info implements [logr.LogSink].
func (s namingSink) Info(level int, msg string, keysAndValues ...any) {
	s.t.Helper()
	s.LogSink.Info(level, msg, s.named(keysAndValues)...)
}

// Error implements [logr.LogSink].
func (s namingSink) Error(err error, msg string, keysAndValues ...any) {
	s.t.Helper()
	s.LogSink.Error(err, msg, s.named(keysAndValues)...)
}

// WithValues implements [logr.LogSink].
func (s namingSink) WithValues(keysAndValues ...any) logr.LogSink {
	return namingSink{s.LogSink.WithValues(s.named(keysAndValues)...), s.t, s.scheme}
}

// WithName implements [logr.LogSink].
func (s namingSink) WithName(name string) logr.LogSink {
	return namingSink{s.LogSink.WithName(name), s.t, s.scheme}
}

// named returns keys and values with the names of the objects among them.
func (s namingSink) named(keysAndValues []any) []any {
	named := make([]any, len(keysAndValues))
	for i, value := range keysAndValues {
		if obj, ok := value.(client.Object); ok {
			value = objects.NameOf(obj, s.scheme)
		}
		named[i] = value
	}
	return named
}

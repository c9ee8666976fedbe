package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
)

// problem is in the note of something that went wrong, between who says so and what.
const problem = " error: "

// libraries is the name of who says what the libraries of Kubernetes log as an error.
const libraries = "libraries"

// init has the libraries of Kubernetes log to the simulation that they do it in. What they log outside of simulations
// goes to the standard error output, as without this package.
func init() {
	outside := textlogger.NewLogger(textlogger.NewConfig())
	klog.SetLogger(logr.New(errorSink{
		elsewhere: outside.GetSink(), note: bubbles.note, inside: func() bool { return bubble() != "" },
	}))
}

// quietManagers keeps controller-runtime from asking for a logger: each manager has one.
var quietManagers = sync.OnceFunc(func() { ctrl.SetLogger(logr.Discard()) })

// bubbles are the simulations that run, by their bubble.
var bubbles worlds

type worlds struct{ all sync.Map }

// add has a world be that of the bubble of the caller, until the function is called that it returns.
func (w *worlds) add(world *World) (remove func()) {
	id := bubble()
	w.all.Store(id, world)
	return func() { w.all.Delete(id) }
}

// current returns the world of the bubble of the caller, nil if there is none.
func (w *worlds) current() *World {
	world, _ := w.all.Load(bubble())
	found, _ := world.(*World)
	return found
}

// note notes an error that is logged in the bubble of the caller.
func (w *worlds) note(text string) {
	if world := w.current(); world != nil {
		world.network.Note(libraries + problem + text)
	}
}

var bubbleOf = regexp.MustCompile(`^goroutine \d+ [^\n]*synctest bubble (\d+)`)

// bubble returns the number of the bubble of the caller, or "" if it is in none.
func bubble() string {
	var first [128]byte
	found := bubbleOf.FindSubmatch(first[:runtime.Stack(first[:], false)])
	if found == nil {
		return ""
	}
	return string(found[1])
}

// errorSink notes what is logged as an error.
type errorSink struct {
	// elsewhere gets all that is logged, if it is not nil. If inside is not nil, it gets what is not logged inside, and
	// what is logged inside is noted.
	elsewhere logr.LogSink
	inside    func() bool
	note      func(text string)
	// requeued, if it is not nil, is told of each result with which a reconciler asks for another request, with the
	// object, and the delay in words.
	requeued func(object, delay string)
	// values are those of the logger, names and values in turn.
	values []any
}

var _ logr.LogSink = errorSink{}

// Init implements [logr.LogSink].
func (s errorSink) Init(info logr.RuntimeInfo) {
	if s.elsewhere != nil {
		s.elsewhere.Init(info)
	}
}

// goesOn reports whether something is to be logged elsewhere, too.
func (s errorSink) goesOn() bool { return s.elsewhere != nil && (s.inside == nil || !s.inside()) }

// Enabled implements [logr.LogSink].
func (s errorSink) Enabled(level int) bool {
	return s.isEnabledElsewhere(level) || s.requeued != nil && level == levelOfResults
}

func (s errorSink) isEnabledElsewhere(level int) bool {
	return s.elsewhere != nil && s.elsewhere.Enabled(level)
}

// levelOfResults is the level at which controller-runtime logs the results of reconcilers, and askedAgain how the line
// of one begins that asks for another request.
const (
	levelOfResults = 5
	askedAgain     = "Reconcile done, requeueing"
)

// Info implements [logr.LogSink].
func (s errorSink) Info(level int, message string, values ...any) {
	if delay, again := strings.CutPrefix(message, askedAgain); again && level == levelOfResults && s.requeued != nil {
		s.requeued(objectOf(append(s.values[:len(s.values):len(s.values)], values...)), strings.TrimSpace(delay))
	}
	if s.goesOn() && s.isEnabledElsewhere(level) {
		s.elsewhere.Info(level, message, values...)
	}
}

// Error implements [logr.LogSink].
func (s errorSink) Error(err error, message string, values ...any) {
	if s.goesOn() {
		s.elsewhere.Error(err, message, values...)
	}
	if errors.Is(err, context.Canceled) {
		return // a process ends
	}
	s.note(errorLine(err, message, append(s.values[:len(s.values):len(s.values)], values...)))
}

// WithValues implements [logr.LogSink].
func (s errorSink) WithValues(values ...any) logr.LogSink {
	if s.elsewhere != nil {
		s.elsewhere = s.elsewhere.WithValues(values...)
	}
	s.values = append(s.values[:len(s.values):len(s.values)], values...)
	return s
}

// WithName implements [logr.LogSink].
func (s errorSink) WithName(name string) logr.LogSink {
	if s.elsewhere != nil {
		s.elsewhere = s.elsewhere.WithName(name)
	}
	return s
}

// longestError is how many bytes of an error are kept.
const longestError = 400

// errorLine returns an error that was logged in one line. Of the values it has the object that a reconciler is called
// for, as controller-runtime names it.
func errorLine(err error, message string, values []any) string {
	var parts []string
	if message != "" {
		parts = append(parts, message)
	}
	if object := objectOf(values); object != "" {
		parts = append(parts, object)
	}
	if err != nil {
		parts = append(parts, err.Error())
	}
	line := bytes.Join(bytes.Fields([]byte(strings.Join(parts, ": "))), []byte(" "))
	if len(line) > longestError {
		return strings.ToValidUTF8(string(line[:longestError]), "") + "…"
	}
	return string(line)
}

// objectOf returns the object that a reconciler is called for, as controller-runtime names it in values of a logger; ""
// if it does not.
func objectOf(values []any) string {
	named := map[string]string{}
	for i := 0; i+1 < len(values); i += 2 {
		named[fmt.Sprint(values[i])] = fmt.Sprint(values[i+1])
	}
	name := named["name"]
	if name == "" {
		return ""
	}
	if named["namespace"] != "" {
		name = named["namespace"] + "/" + name
	}
	return strings.TrimSpace(named["controllerKind"] + " " + name)
}

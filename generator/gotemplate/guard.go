package gotemplate

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"text/template"
	"time"
)

const (
	defaultTime = 10 * time.Second
	defaultSize = 64 << 20

	// maxNesting is how deep templates may include each other, and how deep values may be nested.
	maxNesting = 1000
	// callCost is what a call of the guard costs besides its bytes, so that an empty loop ends too.
	callCost = 16
	// clockEvery is how many calls may pass between two looks at the clock, and clockBytes how many bytes.
	clockEvery, clockBytes = 64, 4096
)

// Guard bounds the templates of one execution. It is safe for concurrent use.
//
// A template is guarded in two steps. [Instrument] changes its text, so that it calls functions of the guard in each
// round of a loop, and for each value. [Guard.Functions] has these functions, and takes the place of functions whose
// result may be much larger than their arguments, such as repeat and until.
//
// Templates may include each other up to a depth of 1000, and so may values contain each other. This counts as a limit
// of size.
type Guard struct {
	ctx     context.Context
	limits  Limits
	started time.Time

	used  atomic.Int64
	calls atomic.Uint32
	err   atomic.Pointer[error]

	mu sync.Mutex
	// running are the names of the templates that are executed now, from the outermost to the innermost.
	running []string
	// guarded has the texts that tpl got, as they were instrumented.
	guarded map[string]string
}

// NewGuard starts the clock of an execution. It ends when ctx is done, or when a limit is reached.
func NewGuard(ctx context.Context, limits Limits) *Guard {
	if limits.Time <= 0 {
		limits.Time = defaultTime
	}
	if limits.Size <= 0 {
		limits.Size = defaultSize
	}
	return &Guard{ctx: ctx, limits: limits, started: time.Now(), guarded: map[string]string{}}
}

// The names of the functions that Instrument adds. A template that calls one of them itself is refused.
const (
	reserved      = "espalierGuard"
	functionEnter = reserved + "Enter"
	functionLeave = reserved + "Leave"
	functionRound = reserved + "Round"
	functionCount = reserved + "Count"
	functionCheck = reserved + "Check"
	functionText  = reserved + "Text"
)

// Functions returns the functions that instrumented templates need. They must not be replaced by others.
func (g *Guard) Functions() template.FuncMap {
	functions := template.FuncMap{
		functionEnter: g.enter,
		functionLeave: g.leave,
		functionRound: g.round,
		functionCount: g.count,
		functionCheck: g.check,
		functionText:  g.text,
	}
	maps.Copy(functions, g.bounded())
	return functions
}

// Err returns an error that wraps [ErrLimit] if a limit was reached, or the error of the context; otherwise nil. A
// template may swallow the error of a function, so look here after each execution.
func (g *Guard) Err() error {
	if err := g.err.Load(); err != nil {
		return *err
	}
	return g.clock()
}

// fail keeps the first error.
func (g *Guard) fail(err error) error {
	g.err.CompareAndSwap(nil, &err)
	return *g.err.Load()
}

func (g *Guard) tooLarge() error {
	return g.fail(fmt.Errorf("%w: size: %s computes more than %d bytes", ErrLimit, g.where(), g.limits.Size))
}

func (g *Guard) tooDeep(what string) error {
	return g.fail(fmt.Errorf("%w: size: %s nests %s deeper than %d", ErrLimit, g.where(), what, maxNesting))
}

// where names the template that is executed now.
func (g *Guard) where() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.running) == 0 {
		return "a template"
	}
	return fmt.Sprintf("template %q", g.running[len(g.running)-1])
}

// clock returns an error if the time is over.
func (g *Guard) clock() error {
	if err := g.ctx.Err(); err != nil {
		return g.fail(fmt.Errorf("%s was interrupted: %w", g.where(), err))
	}
	if time.Since(g.started) > g.limits.Time {
		return g.fail(fmt.Errorf("%w: time: %s takes longer than %s", ErrLimit, g.where(), g.limits.Time))
	}
	return nil
}

// charge counts a call and bytes.
func (g *Guard) charge(bytes int) error {
	if g.used.Add(int64(bytes)+callCost) > g.limits.Size {
		return g.tooLarge()
	}
	if g.calls.Add(1)%clockEvery == 0 || bytes > clockBytes {
		return g.clock()
	}
	return nil
}

// left is how many bytes may still be computed.
func (g *Guard) left() int64 { return g.limits.Size - g.used.Load() }

// reserve returns an error if there are not n times size bytes left. It counts nothing, because the result is counted.
func (g *Guard) reserve(n, size int) error {
	if n > 0 && size > 0 && int64(n) > g.left()/int64(size) {
		return g.tooLarge()
	}
	return nil
}

// enter is called at the beginning of each template, leave at its end. An error ends all templates, so it does not
// matter that leave is not called then.
func (g *Guard) enter(name string, bytes int) (string, error) {
	g.mu.Lock()
	g.running = append(g.running, name)
	nesting := len(g.running)
	g.mu.Unlock()
	if nesting > maxNesting {
		return "", g.tooDeep("templates")
	}
	return "", g.charge(bytes)
}

func (g *Guard) leave() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.running) > 0 {
		g.running = g.running[:len(g.running)-1]
	}
	return ""
}

// round is called in each round of a loop, and in branches, with the number of bytes of their text.
func (g *Guard) round(bytes int) (string, error) { return "", g.charge(bytes) }

// count counts a value, and returns it. It takes a reflect.Value, because the template engine treats a value that can
// be addressed differently, and so as to tell a missing value from nil.
func (g *Guard) count(v reflect.Value) (reflect.Value, error) {
	if bytes, ok := sizeOfScalar(v); ok {
		return v, g.charge(bytes)
	}
	bytes, err := g.measure(v)
	if err != nil {
		return v, err
	}
	return v, g.charge(bytes)
}

// check returns a value that is about to be written as text. It is an error if it is too large for that.
func (g *Guard) check(v reflect.Value) (reflect.Value, error) {
	if _, ok := sizeOfScalar(v); ok {
		return v, g.charge(0)
	}
	if _, err := g.measure(v); err != nil {
		return v, err
	}
	return v, g.charge(0)
}

// text guards a text that a template gives to tpl. It returns what is no text, which tpl refuses.
func (g *Guard) text(leftDelimiter, rightDelimiter string, v reflect.Value) (reflect.Value, error) {
	content := v
	for content.Kind() == reflect.Interface {
		content = content.Elem()
	}
	if content.Kind() != reflect.String {
		return v, nil
	}
	text, err := g.instrument(leftDelimiter, rightDelimiter, content.String())
	return reflect.ValueOf(text), err
}

func (g *Guard) instrument(leftDelimiter, rightDelimiter, text string) (string, error) {
	if err := g.charge(len(text)); err != nil {
		return "", err
	}
	if !strings.Contains(text, leftDelimiter) {
		return text, nil
	}
	g.mu.Lock()
	guarded, ok := g.guarded[text]
	name := "tpl"
	if len(g.running) > 0 {
		name = g.running[len(g.running)-1]
	}
	g.mu.Unlock()
	if ok {
		return guarded, nil
	}
	// The tree of a text is much larger than the text.
	if err := g.reserve(len(text), 8); err != nil {
		return "", err
	}
	guarded, err := Instrument(name, text, leftDelimiter, rightDelimiter)
	if err != nil {
		return "", err
	}
	if err := g.charge(len(guarded)); err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guarded[text] = guarded
	return guarded, nil
}

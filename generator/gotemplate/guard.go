package gotemplate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"text/template"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/document"
)

const (
	defaultTime = 10 * time.Second
	defaultSize = 16 << 20

	defaultObjects = 10_000

	// smallSize is how much each execution may need, whatever others need.
	smallSize = 2 << 20

	// maxNesting is how deep values may be nested.
	maxNesting = 1000
	// maxFrames is how deep the stack may be on which templates include each other. The deepest inclusion that charts
	// need has about 20 calls.
	maxFrames = 20_000
	// callCost is what a call of the guard costs besides its bytes, so that an empty loop ends too.
	callCost = 16
	// clockEvery is how many calls may pass between two looks at the clock, and clockBytes how many bytes.
	clockEvery, clockBytes = 64, 4096
	// depthEvery is how many templates may begin between two looks at the stack.
	depthEvery = 32

	ofSize, ofTime = "limit of a template: size: ", "limit of a template: time: "
)

// Guard bounds the templates of one execution. It is safe for concurrent use.
//
// A template is guarded in two steps. [Instrument] adds calls of functions of the guard to its text: at the beginning
// of each template and in each round of a loop, and for values. [Guard.Functions] has these functions, and takes the
// place of functions whose result may be much larger than their arguments, such as repeat and until.
//
// Templates may include each other to a depth of about 1000, and values may contain each other to a depth of 1000. This
// counts as a limit of size.
type Guard struct {
	ctx     context.Context
	limits  Limits
	started time.Time

	// large is true while the execution holds the turn. waited is how long it has waited for that.
	mu     sync.Mutex
	large  bool
	waited atomic.Int64

	used           atomic.Int64
	calls, entered atomic.Uint32
	err            atomic.Pointer[limitError]
}

// turn is held by the execution that may need more than smallSize. holder says which component that is for.
var (
	turn   = make(chan struct{}, 1)
	holder atomic.Value
)

// patience is how long an execution waits for others that are large.
var patience = time.Minute

// NewGuard starts the clock of an execution. It ends when ctx is done, or when a limit is reached.
func NewGuard(ctx context.Context, limits Limits) *Guard {
	if limits.Time <= 0 {
		limits.Time = defaultTime
	}
	if limits.Size <= 0 {
		limits.Size = defaultSize
	}
	return &Guard{ctx: ctx, limits: limits, started: time.Now()}
}

// The names of the functions that Instrument adds. A template that calls one of them itself is refused.
const (
	reserved      = "espalierGuard"
	functionEnter = reserved + "Enter"
	functionRound = reserved + "Round"
	functionCount = reserved + "Count"
	functionCheck = reserved + "Check"
	functionText  = reserved + "Text"
	functionParse = reserved + "Parse"
)

// Functions returns the functions that instrumented templates need, and the lookups of [Functions]: they end with the
// limit of time, and let others that are large go on meanwhile. Do not replace any of them by a function that does not
// call it.
func (g *Guard) Functions() template.FuncMap {
	functions := template.FuncMap{
		functionEnter: g.enter,
		functionRound: g.round,
		functionCount: g.count,
		functionCheck: g.check,
		functionText:  g.text,
		functionParse: g.parsed,
	}
	maps.Copy(functions, g.bounded())
	maps.Copy(functions, lookups(g.beginRequest))
	return functions
}

// beginRequest returns the context of a request, which has the time that is left.
func (g *Guard) beginRequest() (context.Context, context.CancelFunc) {
	g.End()
	return context.WithTimeout(g.ctx, g.limits.Time-g.taken())
}

// End lets others that are large go on. Call it once the output of the execution is not needed any more, and before the
// execution waits for something outside of the process: if it goes on, it waits for its turn again.
func (g *Guard) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.large {
		g.large = false
		<-turn
	}
}

// Err returns an error that wraps [ErrLimit] if a limit was reached, or the error of the context; otherwise nil. The
// failure is the error of the execution, which says in which template that was. A template may swallow the error of a
// function, so call Err after each execution.
func (g *Guard) Err(failure error) error {
	if g.err.Load() == nil && g.clock() == nil {
		return nil
	}
	limit := *g.err.Load()
	if failure != nil {
		for _, match := range executing.FindAllStringSubmatch(failure.Error(), -1) {
			if match[1] != nameOfTpl {
				limit.template = fmt.Sprintf("template %q", match[1])
			}
		}
	}
	return limit
}

// nameOfTpl is the name of the texts that tpl executes.
const nameOfTpl = "tpl"

// executing is in the errors of the template engine, from the outermost template to the innermost.
var executing = regexp.MustCompile(`: executing "([^"]*)" at <`)

// limitError says what a template did. It wraps [ErrLimit] or the error of the context.
type limitError struct {
	before, template, after string
	err                     error
}

func (e limitError) Error() string { return e.before + e.template + e.after }

func (e limitError) Unwrap() error { return e.err }

// fail keeps the first error, that of a limit or of the context.
func (g *Guard) fail(err error, kind, format string, args ...any) error {
	g.err.CompareAndSwap(nil, &limitError{
		err: err, before: kind, template: "a template", after: fmt.Sprintf(format, args...),
	})
	return *g.err.Load()
}

func (g *Guard) tooLarge() error {
	return g.fail(ErrLimit, ofSize, " computes more than %d bytes", g.limits.Size)
}

func (g *Guard) tooDeep(what string) error {
	return g.fail(ErrLimit, ofSize, " nests %s too deep", what)
}

// taken is how long the execution has taken, without the waits for others.
func (g *Guard) taken() time.Duration {
	return time.Since(g.started) - time.Duration(g.waited.Load())
}

// clock returns an error if the time is over.
func (g *Guard) clock() error {
	if err := g.ctx.Err(); err != nil {
		return g.fail(err, "", " was interrupted: %s", err)
	}
	if g.taken() > g.limits.Time {
		return g.fail(ErrLimit, ofTime, " takes longer than %s", g.limits.Time)
	}
	return nil
}

// charge counts a call and bytes.
func (g *Guard) charge(bytes int) error {
	used := g.used.Add(int64(bytes) + callCost)
	if used > g.limits.Size {
		return g.tooLarge()
	}
	if err := g.admit(used); err != nil {
		return err
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
	return g.admit(g.used.Load() + int64(max(n, 0))*int64(max(size, 0)))
}

// admit waits until the execution may need bytes.
func (g *Guard) admit(bytes int64) error {
	if bytes <= smallSize {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.large {
		return nil
	}
	began, timeout := time.Now(), time.NewTimer(patience)
	defer timeout.Stop()
	defer func() { g.waited.Add(int64(time.Since(began))) }()
	select {
	case turn <- struct{}{}:
		g.large = true
		holder.Store(componentOf(g.ctx))
		return nil
	case <-g.ctx.Done():
		return g.fail(g.ctx.Err(), "", " was interrupted: %s", g.ctx.Err())
	case <-timeout.C:
		return g.fail(generator.NewRetriableError(errBusy, nil), "",
			" waits longer than %s for that of %v, which is large, too; this is tried again", patience, holder.Load())
	}
}

var errBusy = errors.New("another template is executed that is large")

// componentOf names the component of a context.
func componentOf(ctx context.Context) string {
	component, err := generator.ComponentFromContext(ctx)
	if err != nil {
		return "another component"
	}
	kind := component.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.Indirect(reflect.ValueOf(component)).Type().Name()
	}
	return kind + " " + client.ObjectKeyFromObject(component).String()
}

// enter is called at the beginning of each template, with the bytes of its text. How deep templates are nested is seen
// on the stack, whoever executes them.
func (g *Guard) enter(bytes int) (string, error) {
	if g.entered.Add(1)%depthEvery == 0 && runtime.Callers(maxFrames, make([]uintptr, 1)) > 0 {
		return "", g.tooDeep("templates")
	}
	return "", g.charge(bytes)
}

// round is called in each round of a loop, and in branches, with the bytes of their text.
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

// parsed returns a text that is about to be parsed as YAML, JSON or TOML. It is an error if that would need too much.
func (g *Guard) parsed(language string, v reflect.Value) (reflect.Value, error) {
	content := v
	for content.Kind() == reflect.Interface {
		content = content.Elem()
	}
	if content.Kind() != reflect.String {
		return v, nil
	}
	check := map[string]func([]byte) error{
		"YAML": document.Check, "JSON": document.CheckJSON, "TOML": document.CheckTOML,
	}[language]
	err := check([]byte(content.String()))
	if errors.Is(err, document.ErrTooLarge) {
		return v, g.fail(ErrLimit, ofSize, " parses %s that %s", language, err)
	}
	if err != nil {
		return v, invalidYAML(err)
	}
	return v, g.charge(content.Len())
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
	text := content.String()
	if err := g.charge(len(text)); err != nil {
		return v, err
	}
	if !strings.Contains(text, leftDelimiter) {
		return v, nil
	}
	// The tree of a text is much larger than the text.
	if err := g.reserve(len(text), 8); err != nil {
		return v, err
	}
	guarded, err := Instrument(nameOfTpl, text, leftDelimiter, rightDelimiter)
	if err != nil {
		return v, err
	}
	return reflect.ValueOf(guarded), g.charge(len(guarded))
}

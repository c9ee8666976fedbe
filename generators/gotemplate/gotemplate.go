package gotemplate

import (
	"context"
	"errors"
	"io/fs"
	"text/template"
	"time"

	"github.com/espalier-dev/espalier/component"
)

// ErrLimit is the error of a template that took too long, or whose output or values became too large. The error that
// wraps it says which limit was reached, and in which template.
var ErrLimit = errors.New("limit of a template")

// Limits bound one execution. A zero value is the default, there is no way to have no limit.
type Limits struct {
	// Time is how long an execution may take. Default: 10 seconds.
	Time time.Duration
	// Size is how many bytes all output and all values that the templates compute may have together. Default: 64 MiB.
	Size int64
}

// Guard bounds the templates of one execution. It is safe for concurrent use.
//
// A template is guarded in two steps. [Instrument] changes its text, so that it calls functions of the guard in each
// round of a loop, and for each value. [Guard.Functions] has these functions, and takes the place of functions whose
// result may be much larger than their arguments, such as repeat and until.
type Guard struct {
	// what counts; see the implementation
}

// NewGuard starts the clock of an execution. It ends when ctx is done, or when a limit is reached.
func NewGuard(ctx context.Context, limits Limits) *Guard { panic("contract") }

// Functions returns the functions that instrumented templates need.
func (g *Guard) Functions() template.FuncMap { panic("contract") }

// Err returns an error that wraps [ErrLimit] if a limit was reached, or the error of the context; otherwise nil. A
// template may swallow the error of a function, so look here after each execution.
func (g *Guard) Err() error { panic("contract") }

// Instrument returns the text of a template as it is to be executed with [Guard.Functions]. It has the same output. The
// error is that of the parser, with name and line.
func Instrument(name, text, leftDelimiter, rightDelimiter string) (string, error) { panic("contract") }

// Functions returns what templates may call, besides the builtin functions of text/template: the functions of Sprig,
// except for those that read the environment or the network, and those of section 6.4 of the documentation. Clients
// come from the context, see [component.ClientFromContext] and [component.LocalClientFromContext].
//
// include and tpl are not among them, because they need the set of templates; [Set] adds them.
func Functions(ctx context.Context) template.FuncMap { panic("contract") }

// Options of a [Set].
type Options struct {
	// LeftDelimiter and RightDelimiter are those of actions. Default: {{ and }}.
	LeftDelimiter, RightDelimiter string
	// Limits bound each execution.
	Limits Limits
}

// Set is a set of templates that may include each other. It is immutable, and safe for concurrent use.
type Set struct{}

// Parse parses templates, by name. The error names the template and the line.
func Parse(templates map[string]string, options Options) (*Set, error) { panic("contract") }

// Execute executes a template of the set with data, and further functions, which win over all others.
func (s *Set) Execute(ctx context.Context, name string, data any, functions template.FuncMap) (string, error) {
	panic("contract")
}

// NewParameterTransformer returns a transformer that executes the template at path in folder with the parameters, to
// which Namespace and Name are added, and parses the output as YAML: these are the new parameters. The parameters that
// it gets stay as they are. A nil folder is the file system of the operator.
func NewParameterTransformer(folder fs.FS, path string, options Options) (component.ParameterTransformer, error) {
	panic("contract")
}

package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

// Step is what a user does, and the facts that must become true after it. [When] makes one.
type Step struct {
	// Title says what is done, in a few words.
	Title string
	// Do does it. Nil if nothing is done.
	Do func(ctx context.Context) error
	// Show is printed below the title, once done. Optional.
	Show func() string
	// Checks are the facts, in the order in which they are checked.
	Checks []Check
}

// Check is a fact that is expected to become true by itself.
type Check struct {
	// Text states the fact, in one line.
	Text string
	// Holds returns nil when the fact is true, and else an error. It is called until it returns nil.
	Holds Condition
	// Show is printed below the text, once the fact is true. Optional.
	Show func() string
}

// When returns a step in which the actions are done in their order, up to the first that fails.
func When(title string, actions ...Action) Step {
	step := Step{Title: title}
	if len(actions) > 0 {
		step.Do = InOrder(actions...)
	}
	return step
}

// InOrder does the actions one after the other, up to the first that fails.
func InOrder(actions ...Action) Action {
	return func(ctx context.Context) error {
		for _, do := range actions {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// See adds a fact: all of the conditions hold.
func (s Step) See(text string, conditions ...Condition) Step {
	s.Checks = append(slices.Clip(s.Checks), Check{Text: text, Holds: All(conditions...)})
	return s
}

// Showing prints more: below the last fact, or if there is none yet, below the title.
func (s Step) Showing(text func() string) Step {
	if len(s.Checks) == 0 {
		s.Show = text
		return s
	}
	s.Checks = slices.Clone(s.Checks)
	s.Checks[len(s.Checks)-1].Show = text
	return s
}

// Condition returns nil when it holds, and else an error that says what is missing.
type Condition func(ctx context.Context) error

// All holds when all of the conditions do.
func All(conditions ...Condition) Condition {
	return func(ctx context.Context) error {
		for _, holds := range conditions {
			if err := holds(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// Options say how and where a scenario is played.
type Options struct {
	// Admin connects to the cluster as a user who may do everything. Required.
	Admin *rest.Config
	// Users are the configurations of the users as whom the operator connects, by name. They need no rights at first.
	Users map[string]*rest.Config
	// Webhooks reports that the API server can call webhooks which this process serves on the loopback interface.
	Webhooks bool
	// Controllers reports that the controllers of a whole cluster run. Steps that play the part of one are left out
	// then.
	Controllers bool
	// Second is another control plane. Nil if there is none; steps that need it are left out then.
	Second *controlplane.Environment
	// Logger is the operator's. Default: none.
	Logger logr.Logger
	// Out is where the scenario is printed. Default: nowhere.
	Out io.Writer
	// Patience is how long a fact may take to become true. Default: [Patience].
	Patience time.Duration
	// AfterDo is called in each step when its action is done, before the checks. An error ends the scenario. Optional.
	AfterDo func(ctx context.Context, step Step) error
}

// NewOptions connects to a control plane as an administrator, and as the users.
func NewOptions(plane *controlplane.Environment, users ...string) (Options, error) {
	options := Options{Admin: plane.Config(), Users: map[string]*rest.Config{}, Webhooks: !plane.Existing()}
	options.Controllers = plane.Existing()
	for _, name := range users {
		config, err := plane.User(name)
		if err != nil {
			return Options{}, err
		}
		options.Users[name] = config
	}
	return options, nil
}

const (
	// pollInterval is the time between two checks of a fact.
	pollInterval = 10 * time.Millisecond
	// Patience is how long a fact may take to become true by default. A namespace takes some seconds to go, and so does
	// a client to notice that its API server is back. A text of a condition that alone changes may be held back for a
	// minute.
	Patience = 5 * time.Minute
)

// Scenario is played in a cluster that is ready for it.
type Scenario struct {
	*Fixture
	Options
	Operator Operator
	Steps    []Step
	// CleanUp is called until it returns nil, after the objects of the steps are deleted and before the operator is
	// stopped. Optional.
	CleanUp Condition

	// said is what the condition said that Reports has read last.
	said string
	// installed is how many objects were created before the first step.
	installed int
}

// Open connects to the cluster and calls install, which creates the objects that the operator needs to start. It adds
// the definitions of types to the scheme. The caller calls Close in the end, unless Open returns an error. Then nothing
// is left behind.
func (s *Scenario) Open(ctx context.Context, scheme *runtime.Scheme, install func(context.Context) error) error {
	s.Patience = cmp.Or(s.Patience, Patience)
	if s.Out == nil {
		s.Out = io.Discard
	}
	if s.Logger.GetSink() == nil {
		s.Logger = logr.Discard()
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	admin, err := client.New(s.Admin, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("unable to connect to the cluster: %w", err)
	}
	s.Fixture = &Fixture{Client: admin}
	if err := install(ctx); err != nil {
		return errors.Join(err, s.remove(context.WithoutCancel(ctx), 0, nil))
	}
	s.installed = len(s.created)
	return nil
}

// Close deletes the objects of the steps, stops the operator, and then deletes the installed objects. It returns when
// all of them are gone.
func (s *Scenario) Close(ctx context.Context) error {
	errs := []error{s.remove(ctx, s.installed, s.Operator.Failure)}
	if s.CleanUp != nil {
		errs = append(errs, Eventually(ctx, Patience, s.CleanUp))
	}
	return errors.Join(append(errs, s.Operator.Stop(), s.remove(ctx, 0, nil))...)
}

// Until waits until the condition holds.
func (s *Scenario) Until(condition Condition) Action {
	return func(ctx context.Context) error { return Eventually(ctx, s.Patience, condition) }
}

// Play goes through the steps and prints them. It stops at the first that fails: the error names the step and the
// check.
func (s *Scenario) Play(ctx context.Context) error {
	p := &printer{out: s.Out, start: time.Now()}
	for i := range s.Steps {
		if err := s.playStep(ctx, p, i); err != nil {
			return err
		}
	}
	p.summary(len(s.Steps))
	return p.err
}

// playStep prints and does the step with that index.
func (s *Scenario) playStep(ctx context.Context, p *printer, i int) error {
	step := s.Steps[i]
	p.title(i+1, step.Title)
	if err := s.runStep(ctx, p, step); err != nil {
		return fmt.Errorf("step %d, %q: %w", i+1, step.Title, errors.Join(err, p.err))
	}
	return p.err
}

// runStep does one step and checks its facts.
func (s *Scenario) runStep(ctx context.Context, p *printer, step Step) error {
	start := time.Now()
	if step.Do != nil {
		if err := step.Do(ctx); err != nil {
			return err
		}
	}
	if s.AfterDo != nil {
		if err := s.AfterDo(ctx, step); err != nil {
			return err
		}
	}
	p.show(step.Show)
	for _, check := range step.Checks {
		// A fact cannot become true without an operator.
		err := Eventually(ctx, s.Patience, func(ctx context.Context) error {
			return errors.Join(s.Operator.Failure(), check.Holds(ctx))
		})
		p.check(err == nil, check.Text, time.Since(start))
		if err != nil {
			return fmt.Errorf("%s: %w", check.Text, err)
		}
		p.show(check.Show)
	}
	return nil
}

// Eventually calls holds until it returns nil. After the time patience it returns the last error of holds.
func Eventually(ctx context.Context, patience time.Duration, holds Condition) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, patience, true, func(ctx context.Context) (bool, error) {
		err := holds(ctx)
		if ctx.Err() == nil || last == nil {
			// The error of a context that ended would hide the reason.
			last = err
		}
		return err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", context.Cause(ctx), last)
	default:
		return fmt.Errorf("not so after %s: %w", patience, last)
	}
}

package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
)

// Options are how a program is explored.
type Options struct {
	// Requests is how many requests a run without a fault may take until it is at rest; 0 is 20. A run with a fault may
	// take twice as many.
	Requests int
	// Skip leaves faults out; nil none.
	Skip func(fault.Fault) bool
	// Ignore reports differences at the end that do not matter; nil none.
	Ignore fault.Ignore
	// Share explores each n-th fault only; 0 and 1 all.
	Share int
	// Pairs explores two faults in one run too: pairs of a sample of those that find nothing alone.
	Pairs bool
	// Budget is for how long runs with a fault begin, by the clock of the caller; 0 has no end.
	Budget time.Duration
}

// Report is what was found.
type Report struct {
	// Replays is how many runs with a fault were made. Left is how many faults were left out when the budget was spent.
	Replays, Left int
	// NotReplayed says why there were none; empty if there were.
	NotReplayed string
	// Varying are the differences at the end of two runs without a fault, if that is why there were none, as "object"
	// or "object: path" of those that Options.Ignore is asked about.
	Varying []string
	// Unrest is the run without a fault if it never came to rest, and no queue would slow it down: the last request
	// ended with an error, or none asked for a delay. NotReplayed is set, too. Nil otherwise.
	Unrest *Finding
	// Findings are in the order of the calls.
	Findings []Finding
}

// Finding is a run that ended in another way than the run without a fault.
type Finding struct {
	Faults []fault.Fault
	// Story has the requests of the run in one line, see [fault.Story].
	Story string
	// Differences say what is wrong at the end, a line each: "missing: ConfigMap ns/two". What a Secret has is not
	// printed.
	Differences []string
	// Endless says that a request did not return. It takes long to find that again.
	Endless bool
}

// Explore runs a program without a fault and with each, until one leads to a request that does not return. The error
// says that a run did not begin, that the code did not start without a fault, or that the context is done; if a request
// does not return then, it names the faults that happened before. What was found until then is returned with it.
func Explore(ctx context.Context, program Program, options Options) (Report, error) {
	e := &explorer{program: program, options: options}
	reference, err := e.twice(ctx)
	if err != nil || e.report.NotReplayed != "" {
		return e.report, err
	}
	began := time.Now()
	var harmless []fault.Fault
	points := e.points(reference)
	for i, f := range points {
		if i > 0 && options.Budget > 0 && time.Since(began) >= options.Budget {
			e.report.Left = len(points) - i
			break
		}
		found := len(e.report.Findings)
		switch err := e.replay(ctx, f); {
		case errors.Is(err, errNotDeleted):
			continue
		case err != nil:
			return e.report, err
		}
		if len(e.report.Findings) == found {
			if f.Kind != fault.UserDeletes {
				harmless = append(harmless, f)
			}
		} else if e.report.Findings[found].Endless {
			return e.report, nil
		}
	}
	if !options.Pairs {
		return e.report, nil
	}
	for _, pair := range pairs(harmless) {
		if err := e.replay(ctx, pair...); err != nil {
			return e.report, err
		}
	}
	return e.report, nil
}

// Run runs a program once with the faults, and compares the end with that of a run without them. Nil says that they end
// alike. The error is one of [Explore], or says that the run without a fault does not come to rest, or that a fault did
// not happen.
func Run(ctx context.Context, program Program, faults []fault.Fault, options Options) (*Finding, error) {
	e := &explorer{program: program, options: options}
	reference, err := e.once(ctx)
	if err != nil {
		return nil, err
	}
	if e.report.NotReplayed != "" {
		return nil, fmt.Errorf("cannot be replayed: %s", e.report.NotReplayed)
	}
	finding, r, err := e.run(ctx, faults)
	if err != nil {
		return nil, err
	}
	for _, f := range faults {
		if !r.happened[f] {
			calls := names(reference.calls())
			return nil, fmt.Errorf("%s did not happen; the calls without a fault are %q", f, calls)
		}
	}
	return finding, nil
}

// explorer has what is known of a program.
type explorer struct {
	program Program
	options Options
	// ends are those of the run without a fault: before the first step, and after each.
	ends []*end
	// deleted is the end of a run in which the user deletes the resource at rest, and began the state of the externals
	// before it; nil until they are needed.
	deleted *end
	began   string
	// notDeleted says why there is no such run.
	notDeleted error
	report     Report
}

// replay makes a run with faults, and reports what it finds. A run in which they do not happen does not count.
func (e *explorer) replay(ctx context.Context, faults ...fault.Fault) error {
	finding, r, err := e.run(ctx, faults)
	if err != nil || len(r.happened) < len(faults) {
		return err
	}
	e.report.Replays++
	if finding != nil {
		e.report.Findings = append(e.report.Findings, *finding)
	}
	return nil
}

// within calls a run as the program wants it called.
func (e *explorer) within(ctx context.Context, run func(ctx context.Context) error) error {
	err := ctx.Err()
	switch {
	case err != nil:
	case e.program.Within == nil:
		err = run(ctx)
	default:
		e.program.Within(func() { err = run(context.WithoutCancel(ctx)) })
	}
	return err
}

// run makes a run with faults, and compares how it ended.
func (e *explorer) run(ctx context.Context, faults []fault.Fault) (finding *Finding, r *run, err error) {
	if e.deleted == nil && e.notDeleted == nil && isDeletion(faults) {
		e.notDeleted = e.within(ctx, e.runDeleted)
	}
	if e.notDeleted != nil && isDeletion(faults) {
		return nil, nil, e.notDeleted
	}
	err = e.within(ctx, func(ctx context.Context) error {
		finding, r, err = e.runFaults(ctx, faults)
		return err
	})
	return finding, r, err
}

// runFaults is run where it is. It is over once a step ends in another way.
func (e *explorer) runFaults(ctx context.Context, faults []fault.Fault) (*Finding, *run, error) {
	r, err := newRun(ctx, e.program, faults)
	if err != nil {
		return nil, nil, err
	}
	defer r.stop(ctx)
	for i, want := range e.ends {
		if i > 0 {
			if err := r.doStep(ctx, e.program.Steps[i-1]); err != nil {
				return r.finding(ctx, []string{err.Error()}, len(r.requests), true), r, nil
			}
		}
		rested, err := r.toRest(ctx, 2*e.requests())
		if err != nil {
			return nil, nil, err
		}
		requests := len(r.requests)
		differences, err := e.differences(ctx, r, r.end(rested), want)
		if err != nil {
			return nil, nil, err
		}
		if len(differences) > 0 {
			return r.finding(ctx, differences, requests, rested), r, nil
		}
	}
	return nil, r, nil
}

// finding returns what is found in a run after so many requests, and ends it.
func (r *run) finding(ctx context.Context, differences []string, requests int, rested bool) *Finding {
	r.stop(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Finding{
		Faults: r.faults, Story: story(r.requests[:requests], rested), Differences: differences,
		Endless: errors.Is(r.requests[requests-1].err, errEndless),
	}
}

// differences compares the end of a run, or of one of its steps.
func (e *explorer) differences(ctx context.Context, r *run, got, want *end) ([]string, error) {
	if isDeletion(r.faults) && len(r.happened) > 0 {
		return fault.CompareDeleted(&got.End, &e.deleted.End, e.began, e.options.Ignore), nil
	}
	differences := append(slices.Clone(got.broken), fault.Compare(&got.End, &want.End, e.options.Ignore)...)
	if len(differences) > 0 || len(fault.Beyond(got.demands, want.demands)) == 0 {
		return differences, nil
	}
	// The last request may have been more than one at rest: one in which a fault happened, or that ended what one left
	// behind. The next, which nothing calls for, shows what remains. A fault that did not happen yet does not happen in
	// it: nothing would follow.
	err := r.withoutFaults(func() error {
		_, err := r.makeRequest(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return fault.CompareRest(r.demandsAtRest(got.Names), want.demands, e.options.Ignore), nil
}

// withoutFaults calls a function, in which no fault happens.
func (r *run) withoutFaults(do func() error) error {
	set := func(faultless bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.faultless = faultless
	}
	set(true)
	defer set(false)
	return do()
}

// once makes a run without a fault.
func (e *explorer) once(ctx context.Context) (r *run, err error) {
	err = e.within(ctx, func(ctx context.Context) error {
		r, err = e.runFaultless(ctx)
		return err
	})
	return r, err
}

// runFaultless is once where it is.
func (e *explorer) runFaultless(ctx context.Context) (*run, error) {
	r, err := newRun(ctx, e.program, nil)
	if err != nil {
		return nil, err
	}
	defer r.stop(ctx)
	e.ends = nil
	for i := range len(e.program.Steps) + 1 {
		if i > 0 {
			if err := r.doStep(ctx, e.program.Steps[i-1]); err != nil {
				return nil, err
			}
		}
		rested, err := r.toRest(ctx, e.requests())
		if err != nil {
			return nil, err
		}
		end := r.end(rested)
		e.ends = append(e.ends, end)
		switch {
		case len(end.broken) > 0:
			e.report.NotReplayed = "without a fault too: " + end.broken[0]
			return r, nil
		case !rested:
			e.report.NotReplayed = "without a fault it never comes to rest: " + end.NotAtRest
			if r.restless() {
				e.report.Unrest = r.finding(ctx, []string{end.NotAtRest}, len(r.requests), false)
			}
			return r, nil
		}
	}
	return r, nil
}

// restless reports whether the last request ended with an error, or none asked for a delay.
func (r *run) restless() bool {
	delayed := func(q *request) bool { return q.err == nil && q.result.RequeueAfter > 0 }
	return r.requests[len(r.requests)-1].err != nil || !slices.ContainsFunc(r.requests, delayed)
}

// twice makes two runs without a fault, and returns the first. They must be alike.
func (e *explorer) twice(ctx context.Context) (*run, error) {
	first, err := e.once(ctx)
	if err != nil || e.report.NotReplayed != "" {
		return nil, err
	}
	ends := e.ends
	second, err := e.once(ctx)
	if err != nil || e.report.NotReplayed != "" {
		return nil, err
	}
	if difference := differentCalls(first.requests, second.requests); difference != "" {
		e.report.NotReplayed = "two runs without a fault make different calls: " + difference
		return nil, nil
	}
	for i, end := range ends {
		if differences := fault.Compare(&e.ends[i].End, &end.End, e.noteVarying); len(differences) > 0 {
			e.report.NotReplayed = "two runs without a fault end differently: " + differences[0]
			return nil, nil
		}
	}
	return first, nil
}

// noteVarying is Options.Ignore for runs without a fault.
func (e *explorer) noteVarying(object, path string) bool {
	if e.options.Ignore != nil && e.options.Ignore(object, path) {
		return true
	}
	if path != "" {
		object += ": " + path
	}
	e.report.Varying = append(e.report.Varying, object)
	return false
}

// differentCalls returns a difference between the calls of two runs; they may be in any order within a request.
func differentCalls(a, b []*request) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d requests", len(a), len(b))
	}
	for i := range a {
		this, other := names(a[i].calls), names(b[i].calls)
		slices.Sort(this)
		slices.Sort(other)
		for _, call := range append(fault.Beyond(this, other), fault.Beyond(other, this)...) {
			return fmt.Sprintf("%s is not in both in request %d", call, i+1)
		}
	}
	return ""
}

func (e *explorer) requests() int { return cmp.Or(e.options.Requests, 20) }

// points returns the faults to run, one at a time.
func (e *explorer) points(r *run) []fault.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	var faults []fault.Fault
	for _, f := range fault.Points(points(r.calls(), r.journal()), kinds) {
		if e.options.Skip == nil || !e.options.Skip(f) {
			faults = append(faults, f)
		}
	}
	return share(faults, e.options.Share)
}

// share returns each n-th fault. Which ones these are does not depend on the order, which is not the same each time if
// branches run in parallel.
func share(faults []fault.Fault, n int) []fault.Fault {
	if n <= 1 {
		return faults
	}
	sorted := slices.Clone(faults)
	slices.SortFunc(sorted, func(a, b fault.Fault) int { return cmp.Compare(a.String(), b.String()) })
	chosen := fault.Spread(sorted, (len(sorted)+n-1)/n)
	return slices.DeleteFunc(slices.Clone(faults), func(f fault.Fault) bool { return !slices.Contains(chosen, f) })
}

// sample is how many faults are paired at most.
const sample = 16

// pairs returns the pairs of a sample of faults, which are in the order of their calls. Two at one call never happen in
// one run.
func pairs(faults []fault.Fault) [][]fault.Fault {
	faults = share(faults, (len(faults)+sample-1)/sample)
	var all [][]fault.Fault
	for i, first := range faults {
		for _, second := range faults[i+1:] {
			all = append(all, []fault.Fault{first, second})
		}
	}
	return all
}

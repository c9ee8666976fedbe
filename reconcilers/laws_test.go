package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// l6Case is one combination of what a tree returns, what it does to the status, and what becomes of the status write.
type l6Case struct {
	tree    error
	delay   time.Duration
	changes bool
	write   error
	keep    bool
}

var errWrite = errors.New("write failed")

func l6Cases() []l6Case {
	trees := []error{
		nil,
		errBoom,
		fmt.Errorf("expected: %w", reconcilers.ErrQuiet),
		reconcilers.ErrHaltSubReconcilers,
		errors.Join(errBoom, reconcilers.ErrDurable),
		fmt.Errorf("no write: %w", reconcilers.ErrSkipStatusUpdate),
		errors.Join(reconcilers.ErrSkipStatusUpdate, reconcilers.ErrQuiet),
	}
	writes := []error{nil, statusConflict, errWrite, fmt.Errorf("%w: %w", errWrite, reconcilers.ErrQuiet)}
	var cases []l6Case
	for _, tree := range trees {
		for _, write := range writes {
			for i := range 8 {
				delay := time.Duration(0)
				if i&1 != 0 {
					delay = time.Minute
				}
				cases = append(cases, l6Case{tree: tree, delay: delay, changes: i&2 != 0, write: write, keep: i&4 != 0})
			}
		}
	}
	return cases
}

func (c l6Case) String() string {
	text := func(err error) string {
		if err == nil {
			return "ok"
		}
		return strings.ReplaceAll(err.Error(), "\n", " and ")
	}
	return fmt.Sprintf("tree %s, delay %s, changes %v, write %s, keep %v", text(c.tree), c.delay, c.changes, text(c.write), c.keep)
}

// written tells whether a write of the status is attempted.
func (c l6Case) written() bool {
	return c.changes && !errors.Is(c.tree, reconcilers.ErrSkipStatusUpdate)
}

// check tells what is wrong with the outcome: the law, and nothing of how it is kept.
func (c l6Case) check(result reconcilers.Result, err error) []string {
	var wrong []string
	loud := func(err error) bool { return err != nil && !errors.Is(err, reconcilers.ErrQuiet) }
	writeErr := c.write
	if !c.written() || writeErr == statusConflict {
		// Whoever caused the conflict wakes the resource.
		writeErr = nil
	}
	if loud(c.tree) && !errors.Is(err, c.tree) {
		wrong = append(wrong, "the error of the tree is lost")
	}
	if loud(writeErr) && !errors.Is(err, writeErr) {
		wrong = append(wrong, "the error of the write is lost")
	}
	if !loud(c.tree) && !loud(writeErr) && err != nil {
		wrong = append(wrong, "an error that nobody returned, or that is quiet")
	}
	comesBack := err != nil || result.Requeue || result.RequeueAfter > 0 //nolint:staticcheck // Requeue is deprecated, not gone.
	if (c.tree != nil || writeErr != nil) && !comesBack {
		wrong = append(wrong, "a quiet error does not bring the request back")
	}
	if c.written() && c.write == statusConflict && c.keep && !comesBack {
		wrong = append(wrong, "whose events are filtered does not come back after a conflict")
	}
	// The one exception: the event of the write brings the resource back.
	dropped := c.tree == nil && c.written() && c.write == nil && !c.keep
	if dropped {
		if result != (reconcilers.Result{}) {
			wrong = append(wrong, "compatibility has the result dropped after a write")
		}
	} else if result.RequeueAfter != c.delay {
		wrong = append(wrong, "the delay is lost")
	}
	return wrong
}

func TestL6NothingThatATreeReturnsIsLost(t *testing.T) {
	for _, c := range l6Cases() {
		expect := expectWidget(steadyWidget.With(func(w *resources.Widget) { w.Status.AddField("tree", "did not run") }))
		if c.write != nil {
			expect.WithReactors = failStatusWrite(c.write)
		}
		root := &widgetRoot{
			KeepResultAfterStatusUpdate: c.keep,
			Reconciler: &widgetSync{SyncWithResult: func(_ context.Context, w *resources.Widget) (reconcilers.Result, error) {
				if c.changes {
					w.Status.AddField("tree", "ran")
				}
				return reconcilers.Result{RequeueAfter: c.delay}, c.tree
			}},
			Config: expect.Config(),
		}
		result, err := root.Reconcile(t.Context(), widgetRequest)
		for _, wrong := range c.check(result, err) {
			t.Errorf("%s:\n\t%s: returned %+v, %v", c, wrong, result, err)
		}
	}
}

// What a root returns tells where the error came up, and is still the error that the node returned.
func TestL6ErrorsTellWhereTheyCameUp(t *testing.T) {
	root := &widgetRoot{
		Reconciler: widgetSequence{widgetSequence{&widgetSync{Name: "mine", Sync: func(context.Context, *resources.Widget) error { return errBoom }}}},
		Config:     expectWidget(steadyWidget).Config(),
	}
	_, err := root.Reconcile(t.Context(), widgetRequest)
	var located *reconcilers.Error
	if !errors.As(err, &located) {
		t.Fatalf("returned %T", err)
	}
	if !errors.Is(err, errBoom) || located.Path != "WidgetResourceReconciler/0/0/mine" || located.Class != reconcilers.ClassRetry {
		t.Errorf("returned %+v", located)
	}
}

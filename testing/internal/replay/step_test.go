package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/replay"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// dropsItsChild creates a ConfigMap as long as the color is blue. Then it deletes what it remembers to have created.
func dropsItsChild(ctx context.Context, p *process) error {
	w, err := p.widget(ctx)
	if err != nil {
		return err
	}
	if w.Spec.Fields["color"] != "blue" {
		if p.memory["created"] == "" {
			return nil
		}
		return ignoreGone(p.Delete(ctx, configMap("one")))
	}
	if found, err := exists(ctx, p, "one"); found || err != nil {
		return err
	}
	p.memory["created"] = "yes"
	return ignoreExists(p.Create(ctx, configMap("one")))
}

// paint is a step that changes the color.
func paint(color string) replay.Step {
	return replay.Step{Name: "paint " + color, Do: func(ctx context.Context, w *replay.World) error {
		patch := mergePatch(fmt.Sprintf(`{"spec":{"fields":{"color":%q}}}`, color))
		return w.As("", "user").Patch(ctx, widget(), patch)
	}}
}

func TestTheCodeRunsToRestAfterEachStep(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), dropsItsChild)
	if report := explore(t, program, replay.Options{}); len(report.Findings) > 0 {
		t.Errorf("there is a finding without a step, want none:\n%s", told(report.Findings[0]))
	}
	program.Steps = []replay.Step{paint("blue"), paint("red")}
	want := `[DiesAfter("create ConfigMap ns/one")]
get Widget a · create ConfigMap one · † · get Widget a · rest · = paint blue = · get Widget a · rest · ` +
		`= paint red = · get Widget a · rest
left over: ConfigMap ns/one`
	if got := told(shortest(t, explore(t, program, replay.Options{}))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A run is over once a step ends in another way: what the next step leads to does not hide it.
func TestTheEndOfEachStepIsCompared(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), dropsItsChild)
	red := paint("red")
	tidy := replay.Step{Name: "tidy up", Do: func(ctx context.Context, w *replay.World) error {
		return client.IgnoreNotFound(w.As("", "user").Delete(ctx, configMap("one")))
	}}
	program.Steps = []replay.Step{red, tidy}
	found := shortest(t, explore(t, program, replay.Options{}))
	if strings.Contains(found.Story, tidy.Name) || found.Differences[0] != "left over: ConfigMap ns/one" {
		t.Errorf("the finding is %s\nwant no step %s, and ConfigMap ns/one left over", told(found), tidy.Name)
	}
}

func TestAStepIsNotTheCode(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	tests := map[string]struct {
		do   func(ctx context.Context, w *replay.World) error
		want error
	}{
		"an error without a fault": {func(context.Context, *replay.World) error { return refused }, refused},
		"the client of the code": {func(ctx context.Context, w *replay.World) error {
			return w.Client("").Create(ctx, configMap("two"))
		}, context.Canceled},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := programOf(given(t, widget()), dropsItsChild)
			program.Steps = []replay.Step{{Name: "break", Do: tc.do}}
			if _, err := replay.Explore(t.Context(), program, replay.Options{}); !errors.Is(err, tc.want) ||
				!strings.HasPrefix(err.Error(), "break: ") {
				t.Errorf("the error is %v, want %v of the step break", err, tc.want)
			}
		})
	}
	t.Run("an error with a fault", func(t *testing.T) {
		t.Parallel()
		program := programOf(given(t, widget()), dropsItsChild)
		program.Steps = []replay.Step{paint("red"), {Name: "look", Do: func(ctx context.Context, w *replay.World) error {
			w.Store("").CollectGarbage()
			if found, err := exists(ctx, w.As("", "user"), "one"); found || err != nil {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		}}}
		options := replay.Options{Ignore: func(object, _ string) bool { return object == "ConfigMap ns/one" }}
		found := shortest(t, explore(t, program, options))
		if !strings.HasPrefix(found.Differences[0], "look: it is there") {
			t.Errorf("the finding is %s\nwant that the step look finds it there", told(found))
		}
	})
}

// deletesByUID is an invariant.
func deletesByUID(_ *store.Store, made store.Call, changes []store.Change) string {
	if made.Verb == store.Delete && (made.UID == "" || made.UID != changes[0].Before.GetUID()) {
		return "without its UID"
	}
	return ""
}

func TestTheInvariantHoldsAfterEachCall(t *testing.T) {
	t.Parallel()
	// replaces deletes a ConfigMap once. It trusts its client if it cannot read the UID.
	replaces := func(ctx context.Context, p *process) error {
		cm := &corev1.ConfigMap{}
		err := p.Get(ctx, client.ObjectKeyFromObject(configMap("one")), cm)
		if client.IgnoreNotFound(err) != nil {
			return p.Delete(ctx, configMap("one"))
		}
		if err != nil {
			return nil
		}
		return p.Delete(ctx, cm, client.Preconditions{UID: &cm.UID})
	}
	program := programOf(given(t, widget(), configMap("one")), replaces)
	if report := explore(t, program, replay.Options{}); len(report.Findings) > 0 {
		t.Errorf("there is a finding without an invariant, want none:\n%s", told(report.Findings[0]))
	}
	program.Invariant = deletesByUID
	want := `[Fails("get ConfigMap ns/one")]
get ConfigMap one (fails) · delete ConfigMap one · again · get ConfigMap one (NotFound) · rest
delete ConfigMap ns/one: without its UID`
	if got := told(shortest(t, explore(t, program, replay.Options{}))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnInvariantThatIsBrokenAnywayIsToldOnce(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget(), configMap("one")), func(ctx context.Context, p *process) error {
		return ignoreGone(p.Delete(ctx, configMap("one")))
	})
	program.Invariant = deletesByUID
	report, err := replay.Explore(t.Context(), program, replay.Options{})
	want := "without a fault too: delete ConfigMap ns/one: without its UID"
	if err != nil || report.NotReplayed != want || report.Replays > 0 {
		t.Errorf("the report is %+v (%v), want nothing replayed since %s", report, err, want)
	}
}

// A dependent that the code did not mean to lose goes with its owner, after the request.
func TestTheInvariantHoldsAfterGarbageCollection(t *testing.T) {
	t.Parallel()
	owner, dependent := configMap("owner"), configMap("dependent")
	owner.UID = "u"
	dependent.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}
	program := programOf(given(t, widget(), owner, dependent), func(ctx context.Context, p *process) error {
		return client.IgnoreNotFound(p.Delete(ctx, configMap(owner.Name)))
	})
	program.Invariant = func(_ *store.Store, made store.Call, changes []store.Change) string {
		for _, change := range changes {
			if change.Key.Name == dependent.Name && change.After == nil {
				return fmt.Sprintf("the dependent is gone, by %q", made.Verb)
			}
		}
		return ""
	}
	report, err := replay.Explore(t.Context(), program, replay.Options{})
	want := `without a fault too: garbage collection: the dependent is gone, by ""`
	if err != nil || report.NotReplayed != want {
		t.Errorf("the report is %+v (%v), want nothing replayed since %s", report, err, want)
	}
}

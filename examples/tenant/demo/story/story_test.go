package story_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/examples/tenant/demo/story"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{GarbageCollection: true, NamespaceDeletion: true}}

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // informers complain when their API server is killed
	os.Exit(plane.Main(m))
}

// TestStoryEndsTheSame tells the story three times: as in the demo, with an API server that fails time and again, and
// with one that is killed during some deeds. Wherever the cluster is looked at, it looks the same.
func TestStoryEndsTheSame(t *testing.T) {
	undisturbed := tell(t, story.Options{Operator: user(t, story.OperatorUser)})

	for name, disturbed := range map[string]func(*testing.T) story.Options{
		"faulty API server": func(t *testing.T) story.Options {
			config := user(t, story.OperatorUser)
			config.Wrap(storytellingtest.WithFaults(t, plane.Config(t)))
			return story.Options{Operator: config}
		},
		"killed API server": func(t *testing.T) story.Options {
			return story.Options{Operator: user(t, story.OperatorUser), AfterDo: restartAPIServer(t)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(undisturbed, tell(t, disturbed(t))); diff != "" {
				t.Errorf("the cluster differs (-undisturbed +disturbed)\n%s", diff)
			}
		})
	}
}

func user(t *testing.T, name string) *rest.Config {
	t.Helper()
	config, err := plane.Environment(t).User(name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// tell tells the story and returns what the cluster was like before its last two steps. In the end nothing is left.
func tell(t *testing.T, options story.Options) map[string]any {
	t.Helper()
	var seen map[string]any
	disturb := options.AfterDo
	options.Admin = plane.Config(t)
	options.Hub = user(t, story.HubUser)
	options.Webhooks = true
	options.AfterDo = func(ctx context.Context, step story.Step) error {
		if step.Do == nil {
			seen = snapshot(ctx, t, options.Admin)
			return nil
		}
		if disturb == nil {
			return nil
		}
		return disturb(ctx, step)
	}
	var printed strings.Builder
	options.Out = &printed

	world, err := story.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	err = world.Tell(t.Context(), story.Steps())
	if err := errors.Join(err, world.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	if left := leftovers(t.Context(), t, options.Admin); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if len(seen) == 0 {
		t.Error("the cluster was empty when it was looked at")
	}
	return seen
}

// restartAPIServer kills the API server while the operator is busy with what was just done.
func restartAPIServer(t *testing.T) func(context.Context, story.Step) error {
	t.Helper()
	return storytellingtest.RestartAPIServer[*story.World](t, plane.Environment(t),
		"Three tenants are created", "The ConfigMap of defaults changes", "The tenants are deleted")
}

// TestTell shares a world among its subtests, since a namespace takes seconds to go: each needs what the one before has left.
func TestTell(t *testing.T) {
	config := plane.Config(t)
	options := story.Options{
		Admin: config, Operator: user(t, story.OperatorUser), Hub: user(t, story.HubUser), Patience: 100 * time.Millisecond,
	}
	world, err := story.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if left := leftovers(context.Background(), t, config); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})

	t.Run("a cluster that is inhabited", func(t *testing.T) {
		before := leftovers(t.Context(), t, config)
		if _, err := story.Open(t.Context(), options); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf("the error is %v", err)
		}
		if diff := cmp.Diff(before, leftovers(t.Context(), t, config)); diff != "" || len(before) == 0 {
			t.Errorf("who was there has lost something (-before +after)\n%s", diff)
		}
	})
	start := story.Steps()[0]
	t.Run("no operator", func(t *testing.T) {
		err := world.Tell(t.Context(), []story.Step{{Title: "Waiting", Facts: start.Facts[1:]}})
		if err == nil || !strings.Contains(err.Error(), "the operator does not run") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("not true", func(t *testing.T) {
		err := world.Tell(t.Context(), []story.Step{
			{Title: "Nothing happens"},
			{Title: "This needs webhooks", Admission: true, Do: func(context.Context, *story.World) error { panic("told") }},
			{Title: "The operator starts", Do: start.Do, Facts: []story.Fact{
				{Text: "that is true", Holds: func(context.Context, *story.World) error { return nil }},
				{Text: "pigs fly", Holds: func(context.Context, *story.World) error { return errors.New("they are on the ground") }},
			}},
			{Title: "This is not told", Do: func(context.Context, *story.World) error { panic("told") }},
		})
		want := `step 2, "The operator starts": pigs fly: not so after 100ms: they are on the ground`
		if err == nil || err.Error() != want {
			t.Errorf("the error is\n%v, not\n%s", err, want)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		err := world.Tell(ctx, []story.Step{{Title: "Waiting", Facts: []story.Fact{
			{Text: "never", Holds: func(context.Context, *story.World) error { cancel(cause); return errors.New("never") }},
		}}})
		if !errors.Is(err, cause) {
			t.Errorf("the error is %v", err)
		}
	})
}

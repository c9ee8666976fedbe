package testing_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

const replaysVariable = "RTESTING_REPLAYS"

// attempts is how often a node was called.
var attempts int

var oneChild = []client.Object{controlled(configMap("one"))}

// reported are rows by their name, and what is printed about their replays.
var reported = map[string]struct {
	row  cmCase
	want string
}{
	"replayed":        {cmCase{Metadata: makes("one"), ExpectCreates: oneChild}, "replayed with 9 faults in "},
	"expects failure": {cmCase{Metadata: fails(errOops), ShouldErr: true}, "not replayed: it expects an error"},
	"expects error":   {cmCase{Metadata: fails(errOops), ExpectedErr: errOops}, "not replayed: it expects an error"},
	"halts": {cmCase{
		Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
			return errors.Join(ensures(ctx, cm, "one"), reconcilers.ErrHaltSubReconcilers)
		}),
		ExpectCreates: oneChild, ExpectedErr: reconcilers.ErrHaltSubReconcilers,
	}, "replayed with 9 faults in "},
	"expects a hidden failure": {
		cmCase{
			Metadata:    fails(errors.Join(errOops, reconcilers.ErrSkipStatusUpdate)),
			ExpectedErr: reconcilers.ErrSkipStatusUpdate,
		},
		"not replayed: it expects an error",
	},
	"expects panic": {cmCase{
		Metadata:    does(func(context.Context, *corev1.ConfigMap) error { panic("no") }),
		ShouldPanic: true,
	}, "not replayed: it expects a panic"},
	"reactors": {cmCase{
		Metadata: does(nothing), WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "Pod")},
	}, "not replayed: it has reactors"},
	"builder": {cmCase{
		Metadata: does(nothing), WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b },
	}, "not replayed: it has a WithClientBuilder"},
	"reason": {
		cmCase{Metadata: makes("one"), ExpectCreates: oneChild, Replays: rtesting.NoReplays("the node throws dice")},
		"not replayed: the node throws dice",
	},
	"dice": {
		cmCase{Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
			attempts++
			key := client.ObjectKey{Namespace: "default", Name: strconv.Itoa(attempts)}
			return client.IgnoreNotFound(reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key, &corev1.ConfigMap{}))
		})},
		"not replayed: two runs without a fault",
	},
	"reason and failure": {
		cmCase{Metadata: fails(errOops), ShouldErr: true, Replays: rtesting.NoReplays("the node throws dice")},
		"not replayed: the node throws dice",
	},
	"random values": {
		cmCase{Metadata: draws(), ExpectCreates: []client.Object{configMap("one", "drawn", "1")}},
		`not replayed: two runs without a fault end differently: ConfigMap default/one: data.drawn is "3", not "2"` +
			"\nIf that may be another each time, set:\n" +
			`  Replays: rtesting.Replays{Ignore: []string{"ConfigMap default/one: data.drawn"}},`,
	},
	"random values that do not matter": {
		cmCase{
			Metadata: draws(), ExpectCreates: []client.Object{configMap("one", "drawn", "1")},
			Replays: rtesting.Replays{Ignore: []string{"ConfigMap default/one: data.drawn"}},
		},
		"replayed with 9 faults in ",
	},
	"no rest": {
		cmCase{
			Metadata: counts(time.Minute), ExpectUpdates: counted,
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"not replayed: without a fault it never comes to rest",
	},
	"no rest for a reason": {
		cmCase{Metadata: counts(0), ExpectUpdates: counted, Replays: rtesting.NoReplays("it counts")},
		"not replayed: it counts",
	},
	"a state of the instance": {
		cmCase{
			Prepare: func(_ *testing.T, ctx context.Context, tc *cmCase) (context.Context, error) {
				tc.Metadata = once(map[string]bool{})
				return ctx, nil
			},
			ExpectCreates: oneChild, Replays: rtesting.Replays{Skip: []rtesting.Fault{rtesting.Fails("* ConfigMap *")}},
		},
		"replayed with 4 faults in ",
	},
	"a wait": {
		cmCase{
			VirtualTime: true, Until: rtesting.Rest(), Metadata: expires(func(context.Context) error { return nil }),
			ExpectCreates: oneChild,
		},
		"replayed with 9 faults in ",
	},
	"skipped faults": {
		cmCase{Metadata: makes("one"), ExpectCreates: oneChild, Replays: rtesting.Replays{
			Skip: []rtesting.Fault{rtesting.Fails("* ConfigMap default/*"), rtesting.DiesAfter("create ConfigMap *")},
		}},
		"replayed with 3 faults in ",
	},
}

// makes is the metadata of a row that creates children of the resource unless they are there.
func makes(names ...string) map[string]any {
	return does(func(ctx context.Context, cm *corev1.ConfigMap) error {
		for _, name := range names {
			if err := ensures(ctx, cm, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// draws is the metadata of a row that creates an object with another value each time.
func draws() map[string]any {
	drawn := 0
	return does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		if err := c.Get(ctx, client.ObjectKeyFromObject(configMap("one")), &corev1.ConfigMap{}); err == nil {
			return nil
		} else if client.IgnoreNotFound(err) != nil {
			return err
		}
		drawn++
		return c.Create(ctx, configMap("one", "drawn", strconv.Itoa(drawn)))
	})
}

// TestReportedReplays runs in another process, which TestReplaysAreReported starts.
func TestReportedReplays(t *testing.T) {
	if os.Getenv(replaysVariable) == "" {
		t.Skip("runs in a process of its own only")
	}
	for name, tc := range reported {
		row := tc.row
		row.Resource = settings.Object()
		runNodes(t, cmNodes{name: row})
	}
}

// replayLines returns what a process with the arguments prints about the replays of each row.
func replayLines(t *testing.T, args ...string) map[string]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReportedReplays$", "-test.v")
	command.Args = append(command.Args, args...)
	command.Env = append(os.Environ(), replaysVariable+"=1")
	output, err := printed(command) // some rows fail
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the rows end with %v", err)
		}
	})
	lines, row := map[string]string{}, ""
	for line := range strings.SplitSeq(output, "\n") {
		if _, name, ok := strings.Cut(line, "=== RUN   TestReportedReplays/"); ok {
			row = strings.ReplaceAll(name, "_", " ")
		}
		if at := regexp.MustCompile(`(not )?replayed(: | with )`).FindStringIndex(line); at != nil && row != "" {
			lines[row] = line[at[0]:]
		} else if more, ok := strings.CutPrefix(line, "        "); ok && lines[row] != "" {
			lines[row] += "\n" + more
		}
	}
	return lines
}

func TestReplaysAreReported(t *testing.T) {
	t.Parallel()
	lines := replayLines(t)
	for name, tc := range reported {
		if !strings.HasPrefix(lines[name], tc.want) {
			t.Errorf("%s: want %q, got %q", name, tc.want, lines[name])
		}
	}
	short := replayLines(t, "-test.short")["replayed"]
	if want := "replayed with 3 faults in "; !strings.HasPrefix(short, want) {
		t.Errorf("want %q with -short, got %q", want, short)
	}
	pairs := replayLines(t, "-rtesting.faults=pairs")["replayed"]
	if n, err := strconv.Atoi(strings.Fields(pairs + " ? ? ?")[2]); err != nil || n <= 8 {
		t.Errorf("want more than 8 replays with pairs of faults, got %q", pairs)
	}
	if lines := replayLines(t, "-rtesting.faults=off"); len(lines) != 0 {
		t.Errorf("want no replays, got %q", lines)
	}
}

// TestReplaysLeaveVersionsInReferencesOut replays a row whose resource refers to what it wrote: with a fault, there are
// more writes before, so that the child has a later version.
func TestReplaysLeaveVersionsInReferencesOut(t *testing.T) {
	t.Parallel()
	cron := func(active ...corev1.ObjectReference) *batchv1.CronJob {
		return &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nightly"},
			Spec: batchv1.CronJobSpec{
				Schedule: "@daily",
				JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
					Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
					},
				}}},
			},
			Status: batchv1.CronJobStatus{Active: active},
		}
	}
	rtesting.NodeTests[*batchv1.CronJob]{"case": {
		Resource:      cron(),
		ExpectCreates: []client.Object{configMap("one")},
		ExpectUpdates: []client.Object{configMap("one", "k", "v")},
		ExpectResource: cron(corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "one",
			UID: "7cfc5e3e-905a-6e75-830c-5692354fd9cd", ResourceVersion: "1001",
		}),
	}}.RunNode(t, scheme, func() reconcilers.SubReconciler[*batchv1.CronJob] {
		return node[*batchv1.CronJob]{reconcile: refersTo("one")}
	})
}

// refersTo returns a node that writes a child and notes a reference to it.
func refersTo(name string) func(context.Context, *batchv1.CronJob) (reconcilers.Result, error) {
	return func(ctx context.Context, cron *batchv1.CronJob) (reconcilers.Result, error) {
		c, child := reconcilers.RetrieveConfigOrDie(ctx), configMap(name)
		err := c.Get(ctx, client.ObjectKeyFromObject(child), child)
		if apierrors.IsNotFound(err) {
			err = c.Create(ctx, child)
		}
		if err == nil && child.Data == nil {
			child.Data = map[string]string{"k": "v"}
			err = c.Update(ctx, child)
		}
		if err != nil {
			return reconcilers.Result{}, err
		}
		ref, err := reference.GetReference(scheme, child)
		if err != nil {
			return reconcilers.Result{}, err
		}
		cron.Status.Active = []corev1.ObjectReference{*ref}
		return reconcilers.Result{}, nil
	}
}

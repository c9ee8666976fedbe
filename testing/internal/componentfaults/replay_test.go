package componentfaults_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/replay"
	"github.com/espalier-dev/espalier/testing/internal/store"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/fake"
	clientgotesting "k8s.io/client-go/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// replayed is the platform scenario in memory.
func (p platformOf) replayed(t *testing.T) replay.Program {
	t.Helper()
	s := store.New(store.Options{Scheme: faultScheme, ManagedFields: true})
	given := append(p.bystanders(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}, p.platform())
	if err := s.Give(given...); err != nil {
		t.Fatal(err)
	}
	a := p.platform()
	if err := s.Client(store.ClientOptions{}).Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
		t.Fatal(err)
	}
	return replay.Program{
		Clusters:  map[string]replay.Cluster{"": {Store: s}},
		Start:     p.start,
		Steps:     p.steps(),
		Invariant: invariant{p, ownerIDOf(a)}.check,
	}
}

// start makes a process of the operator.
func (p platformOf) start(_ context.Context, w *replay.World) (replay.Instance, error) {
	live := w.APIReader("")
	resourceLists := &clientgotesting.Fake{Resources: w.Store("").Resources()}
	root := component.NewComponentRoot(faultPrefix, resources.AssemblyGenerator(), component.Options[*resources.Assembly]{
		Config: reconcilers.Config{
			Client: watchingClient{w.Client(""), live}, APIReader: live,
			Discovery: &fake.FakeDiscovery{Fake: resourceLists}, Tracker: tracker.New(faultScheme, time.Hour),
		},
		Parallel: 1,
	})
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p.platform())}
	return func(ctx context.Context) (reconcile.Result, error) { return root.Reconcile(ctx, request) }, nil
}

// watchingClient reads the resource and lists objects from a cache, as an operator and the watches of a component do. It
// is live where these are: for single objects, and for the search for instances of others in all namespaces.
type watchingClient struct {
	client.Client
	live client.Reader
}

func (c watchingClient) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if _, ok := object.(*resources.Assembly); ok {
		return c.Client.Get(ctx, key, object, options...)
	}
	return c.live.Get(ctx, key, object, options...)
}

func (c watchingClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	of := (&client.ListOptions{}).ApplyOptions(options)
	if kind := list.GetObjectKind().GroupVersionKind().Kind; kind == "GadgetList" && of.Namespace == "" {
		return c.live.List(ctx, list, options...)
	}
	// A cache has no pages, and says so in its answer.
	of.Limit, of.Continue = 0, ""
	defer list.SetContinue("")
	return c.Client.List(ctx, list, of)
}

// steps are the phases: each but the first begins once the one before has reached its goal.
func (p platformOf) steps() []replay.Step {
	phases := p.phases()
	end := faultPhase{name: "end", begin: func(context.Context, client.Client) error { return nil }}
	var steps []replay.Step
	for i, phase := range append(phases[1:], end) {
		reached := phases[i].reached
		steps = append(steps, replay.Step{Name: phase.name, Do: func(ctx context.Context, w *replay.World) error {
			c := w.As("", "user")
			if err := reached(ctx, c); err != nil {
				return err
			}
			return phase.begin(ctx, c)
		}})
	}
	return steps
}

var inventoryField = regexp.MustCompile(`^status\.inventory\[.*\]\.(fields|digest)$`)

func ownerIDOf(a *resources.Assembly) string {
	kind := resources.GroupVersion.WithKind("Assembly").GroupKind()
	return engine.OwnerID(engine.OwnerText(kind, client.ObjectKeyFromObject(a), "", a.UID))
}

// mayDiffer reports differences that a fault may lead to: who creates an object owns more of its fields than who applies
// it.
func mayDiffer(object, path string) bool {
	return strings.HasPrefix(object, "Assembly ") && inventoryField.MatchString(path)
}

// TestL11ReplayedComponentFaults runs the platform scenario in memory, once for each call and each fault of it, and
// with ESPALIER_FAULTS=all for pairs of a sample. Invariants L2, L4 and L5 hold at each call. The margins of fences
// pass in the time of a bubble.
func TestL11ReplayedComponentFaults(t *testing.T) {
	t.Parallel()
	program := platformOf{"ns", "platform-x"}.replayed(t)
	tried := map[fault.Kind]int{}
	options := replay.Options{
		Requests: 60, Ignore: mayDiffer, Pairs: os.Getenv("ESPALIER_FAULTS") == "all",
		Skip: func(f fault.Fault) bool { tried[f.Kind]++; return false },
	}
	began := time.Now()
	var report replay.Report
	synctest.Test(t, func(t *testing.T) {
		var err error
		if report, err = replay.Explore(logr.NewContext(t.Context(), logr.Discard()), program, options); err != nil {
			t.Error(err)
		}
	})
	if report.NotReplayed != "" {
		t.Fatal(report.NotReplayed)
	}
	for _, finding := range report.Findings {
		t.Errorf("%s\n%s\n%s", fmt.Sprint(finding.Faults), finding.Story, strings.Join(finding.Differences, "\n"))
	}
	t.Logf("%d replays in %s: %v", report.Replays, time.Since(began).Round(time.Millisecond), tried)
	for _, kind := range []fault.Kind{
		fault.DiesBefore, fault.DiesAfter, fault.Fails, fault.LosesAnswer, fault.Conflicts, fault.Stale,
	} {
		if tried[kind] == 0 {
			t.Errorf("%d faults of the kind %s were tried, want one or more", tried[kind], kind)
		}
	}
}

package replay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/internal/replay"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

var (
	begin  = time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	scheme = newScheme()
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, resources.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// process is an instance of the code: what it has in memory lives as long as it does.
type process struct {
	client.WithWatch
	live  client.Reader
	world *replay.World
	// user is somebody else.
	user client.Client
	// memory has the meaning that a test gives it.
	memory map[string]string
}

// code makes one request.
type code func(ctx context.Context, p *process) error

// given returns a store with objects.
func given(t testing.TB, objs ...client.Object) *store.Store {
	t.Helper()
	s := store.New(store.Options{Scheme: scheme, Now: func() time.Time { return begin }})
	if err := s.Give(objs...); err != nil {
		t.Fatal(err)
	}
	return s
}

// programOf returns a program of one cluster.
func programOf(s *store.Store, make code, externals ...replay.External) replay.Program {
	return replay.Program{
		Clusters:  map[string]replay.Cluster{"": {Store: s}},
		Now:       begin,
		Externals: externals,
		Start: func(_ context.Context, w *replay.World) (replay.Instance, error) {
			p := &process{
				WithWatch: w.Client(""), live: w.APIReader(""), world: w, user: w.As("", "user"),
				memory: map[string]string{},
			}
			return func(ctx context.Context) (reconcile.Result, error) {
				return reconcile.Result{}, make(ctx, p)
			}, nil
		},
	}
}

// widget returns the resource that is reconciled, as it is now. It is nil if there is none.
func (p *process) widget(ctx context.Context) (*resources.Widget, error) {
	w := &resources.Widget{}
	if err := p.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "a"}, w); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return w, nil
}

// note writes a field of the status.
func (p *process) note(ctx context.Context, w *resources.Widget, key, value string) error {
	if w.Status.Fields[key] == value {
		return nil
	}
	w.Status.AddField(key, value)
	return p.Status().Update(ctx, w)
}

// observe writes which generation was seen.
func (p *process) observe(ctx context.Context, w *resources.Widget) error {
	if w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.ObservedGeneration = w.Generation
	return p.Status().Update(ctx, w)
}

// exists reports whether there is a ConfigMap.
func exists(ctx context.Context, c client.Reader, name string) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: name}, &corev1.ConfigMap{})
	return err == nil, client.IgnoreNotFound(err)
}

// ensure has a ConfigMap exist.
func (p *process) ensure(ctx context.Context, name string) error {
	if found, err := exists(ctx, p, name); found || err != nil {
		return err
	}
	return ignoreExists(p.Create(ctx, configMap(name)))
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// ignoreGone accepts that an object is gone, or is another one.
func ignoreGone(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

func widget() *resources.Widget {
	return &resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
		Spec:       resources.WidgetSpec{Fields: map[string]string{"color": "blue"}},
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func generated(prefix string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: prefix}}
}

// explore explores a program that must be replayed.
func explore(t testing.TB, program replay.Program, options replay.Options) replay.Report {
	t.Helper()
	report, err := replay.Explore(context.Background(), program, options)
	if err != nil {
		t.Fatal(err)
	}
	if report.NotReplayed != "" {
		t.Fatalf("the program is not replayed, want it to be: %s", report.NotReplayed)
	}
	return report
}

// shortest returns the finding that takes the fewest words.
func shortest(t testing.TB, report replay.Report) replay.Finding {
	t.Helper()
	if len(report.Findings) == 0 {
		t.Fatalf("nothing was found in %d replays, want a finding", report.Replays)
	}
	best := report.Findings[0]
	for _, f := range report.Findings[1:] {
		if len(strings.Fields(f.Story)) < len(strings.Fields(best.Story)) {
			best = f
		}
	}
	return best
}

// told is a finding in lines.
func told(f replay.Finding) string {
	return strings.Join(append([]string{fmt.Sprint(f.Faults), f.Story}, f.Differences...), "\n")
}

// counter is a service outside of the clusters. It counts what it is asked for.
type counter struct{ calls map[string]int }

func (c *counter) external() replay.External {
	return replay.External{
		Reset: func() { c.calls = map[string]int{} },
		End:   func() any { return c.calls },
	}
}

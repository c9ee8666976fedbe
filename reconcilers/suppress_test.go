package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type widgetSuppress = reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]

// fails is a node that returns these errors one after the other, and then the last one.
func fails(errs ...error) *widgetSync {
	return &widgetSync{SyncDuringFinalization: true, SyncWithResult: func(context.Context, *resources.Widget) (reconcilers.Result, error) {
		err := errs[0]
		if len(errs) > 1 {
			errs = errs[1:]
		}
		return minute, err
	}}
}

// suppressed checks that an error was returned, and that it is hidden; shown checks that it is to be seen.
func suppressed(expected error) rtesting.VerifyFunc {
	return func(t *testing.T, result reconcilers.Result, err error) {
		t.Helper()
		returnsBoth(expected, minute)(t, result, err)
		if !errors.Is(err, reconcilers.ErrQuiet) || !errors.Is(err, reconcilers.ErrSkipStatusUpdate) {
			t.Errorf("the error is %v, want it quiet and without a status update", err)
		}
	}
}

func shown(expected error) rtesting.VerifyFunc {
	return func(t *testing.T, result reconcilers.Result, err error) {
		t.Helper()
		if err != expected || result != minute {
			t.Errorf("it returned %v and %v, want %v and %v", result, err, minute, expected)
		}
	}
}

func TestSuppressTransientErrors(t *testing.T) {
	then := func(verify rtesting.VerifyFunc, changes ...func(*resources.Widget)) widgetCase {
		return widgetCase{Resource: widget.With(changes...).Object(), ShouldErr: true, Verify: verify}
	}
	fine := widgetCase{Resource: widget.Object(), ExpectedResult: minute}
	generation := func(w *resources.Widget) { w.Generation = 2 }
	another := func(w *resources.Widget) { w.UID = "another-uid" }
	loud, quiet := shown(errBoom), suppressed(errBoom)
	tests := map[string]struct {
		threshold uint8
		errs      []error
		requests  []widgetCase
	}{
		"no error":                        {errs: []error{nil}, requests: []widgetCase{fine}},
		"the third is seen, and the next": {errs: []error{errBoom}, requests: []widgetCase{then(quiet), then(quiet), then(loud), then(loud)}},
		"another threshold":               {threshold: 2, errs: []error{errBoom}, requests: []widgetCase{then(quiet), then(loud)}},
		"a threshold of one":              {threshold: 1, errs: []error{errBoom}, requests: []widgetCase{then(loud)}},
		"success starts anew": {
			errs:     []error{errBoom, errBoom, nil, errBoom},
			requests: []widgetCase{then(quiet), then(quiet), fine, then(quiet), then(quiet), then(loud)},
		},
		"a durable error is seen, and starts anew": {
			errs: []error{errBoom, errBoom, reconcilers.ErrDurable, errBoom},
			requests: []widgetCase{
				then(quiet), then(quiet), then(shown(reconcilers.ErrDurable)), then(quiet), then(quiet), then(loud),
			},
		},
		"a halt counts": {
			errs: []error{reconcilers.ErrHaltSubReconcilers},
			requests: []widgetCase{
				then(suppressed(reconcilers.ErrHaltSubReconcilers)), then(suppressed(reconcilers.ErrHaltSubReconcilers)),
				then(shown(reconcilers.ErrHaltSubReconcilers)),
			},
		},
		"a new generation starts anew": {
			errs:     []error{errBoom},
			requests: []widgetCase{then(quiet), then(quiet), then(quiet, generation), then(quiet, generation), then(loud, generation)},
		},
		"each resource has its own count": {
			errs:     []error{errBoom},
			requests: []widgetCase{then(quiet), then(quiet, another), then(quiet), then(quiet, another), then(loud), then(loud, another)},
		},
		"terminating": {
			errs: []error{errBoom},
			requests: []widgetCase{
				then(quiet, terminating(theirs)), then(quiet, terminating(theirs)), then(loud, terminating(theirs)),
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := &widgetSuppress{Threshold: test.threshold, Reconciler: fails(test.errs...)}
			suite := test.requests[0]
			for i, request := range test.requests[1:] {
				request.Name = fmt.Sprint("request ", i+2)
				suite.AdditionalReconciles = append(suite.AdditionalReconciles, request)
			}
			suite.Run(t, widgetScheme, func(*testing.T, *widgetCase, reconcilers.Config) widgetNode { return node })
		})
	}
}

func TestSuppressTransientErrorsCountsNoFurtherThanItCan(t *testing.T) {
	node := &widgetSuppress{Threshold: 255, Reconciler: fails(errBoom)}
	ctx := testContext(t, expectWidget().Config())
	for i := range 600 {
		_, err := node.Reconcile(ctx, widget.Object())
		if quiet := errors.Is(err, reconcilers.ErrQuiet); quiet != (i < 254) {
			t.Fatalf("error %d is suppressed: %t, want %t", i+1, quiet, i < 254)
		}
	}
}

func TestSuppressTransientErrorsValidate(t *testing.T) {
	validationTests{
		"empty": {node: &widgetSuppress{}, shallow: `SuppressTransientErrors "SuppressTransientErrors" must implement Reconciler`},
		"nil":   {node: &widgetSuppress{Name: "mine", Reconciler: (*widgetSync)(nil)}, shallow: `SuppressTransientErrors "mine" must implement Reconciler`},
		"valid": {node: &widgetSuppress{Reconciler: fails(nil)}},
		"invalid": {
			node: &widgetSuppress{Reconciler: &widgetSync{}},
			recursive: `SuppressTransientErrors "SuppressTransientErrors" must have a valid Reconciler: ` +
				`SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		},
		"a list of nothing": {
			node:    &reconcilers.SuppressTransientErrors[*resources.Widget, client.ObjectList]{Reconciler: fails(nil)},
			shallow: `SuppressTransientErrors "SuppressTransientErrors" must define ListType since none can be made of client.ObjectList`,
		},
	}.run(t)
	_, err := (&widgetSuppress{}).Reconcile(t.Context(), widget.Object())
	checkError(t, "in a request", err, `SuppressTransientErrors "SuppressTransientErrors" must implement Reconciler`)
}

func TestSuppressTransientErrorsSetup(t *testing.T) {
	calls := &trace{}
	node := &widgetSuppress{
		Reconciler: calls.step("nested", reconcilers.Result{}, nil),
		Setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
			calls.add("set up %s", reconcilers.RetrievePath(ctx))
			return errBoom
		},
	}
	if err := node.SetupWithManager(t.Context(), nil, nil); err != errBoom {
		t.Errorf("the error is %v, want %v", err, errBoom)
	}
	calls.compare(t, []string{"set up nested", "set up SuppressTransientErrors"})
	if err := (&widgetSuppress{}).SetupWithManager(t.Context(), nil, nil); err == nil {
		t.Error("an invalid node was set up, want an error")
	}
	expected := "SuppressTransientErrors \"SuppressTransientErrors\" up to 2\n└─ step\n"
	if described := reconcilers.Describe(node).String(); described != expected {
		t.Errorf("it is described as\n%s\nwant\n%s", described, expected)
	}
}

// A node that was not set up or validated, and a context that has nothing, are no reason to panic.
func TestSuppressTransientErrorsByItself(t *testing.T) {
	node := &widgetSuppress{Reconciler: fails(errBoom)}
	for i := range 4 {
		// The second request is late enough for a purge, which cannot be made.
		ctx := rtime.StashNow(t.Context(), requestTime.Add(time.Duration(i)*25*time.Hour))
		err := neverPanics(t, "Reconcile", func() error {
			_, err := node.Reconcile(ctx, widget.Object())
			return err
		})
		if !errors.Is(err, errBoom) || errors.Is(err, reconcilers.ErrQuiet) != (i < 2) {
			t.Errorf("request %d returned %v, want %v, quiet: %t", i+1, err, errBoom, i < 2)
		}
	}
}

// lists is a client that notes what is listed, and how.
type lists struct {
	client.Client
	name  string
	mu    sync.Mutex
	calls *trace
	err   error
	// during is called while a list is made.
	during func()
}

func (l *lists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	shared := options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy
	l.mu.Lock()
	l.calls.add("list %T %s by the %s, copies %t", list, list.GetObjectKind().GroupVersionKind().Kind, l.name, !shared)
	l.mu.Unlock()
	if l.during != nil {
		l.during()
	}
	if l.err != nil {
		return l.err
	}
	return l.Client.List(ctx, list, opts...)
}

// purging is a config that records its lists, over a cluster with widget.
func purging(calls *trace) (reconcilers.Config, *lists) {
	config := expectWidget(widget).Config()
	cached := &lists{Client: config.Client, name: "client", calls: calls}
	reader := &lists{Client: config.Client, name: "reader", calls: calls}
	config.Client, config.APIReader = cached, reader
	return config, cached
}

func TestSuppressTransientErrorsPurges(t *testing.T) {
	calls := &trace{}
	config, cached := purging(calls)
	node := &widgetSuppress{Reconciler: fails(errBoom)}
	gone := widget.With(func(w *resources.Widget) { w.UID = "gone" })
	l := &listener{}
	// at returns whether the error was suppressed.
	at := func(elapsed time.Duration, resource *resources.Widget) bool {
		t.Helper()
		ctx := reconcilers.StashConfig(contextWithLogger(t, l), config)
		_, err := node.Reconcile(rtime.StashNow(ctx, requestTime.Add(elapsed)), resource)
		if !errors.Is(err, errBoom) {
			t.Errorf("the error is %v, want %v", err, errBoom)
		}
		return errors.Is(err, reconcilers.ErrQuiet)
	}
	at(0, gone.Object())
	at(time.Hour, gone.Object())
	at(2*time.Hour, widget.Object())
	at(24*time.Hour-time.Nanosecond, widget.Object())
	calls.compare(t, []string{})

	cached.err = errors.New("no list")
	if at(24*time.Hour, gone.Object()) {
		t.Error("the counter went although the list failed, want it to stay")
	}
	cached.err = nil
	heard := strings.Join(l.heard, "\n")
	for _, line := range []string{"purging stale resource counters", "purge failed to list resources"} {
		if strings.Count(heard, line) != 1 {
			t.Errorf("%q was logged %d times, want once:\n%s", line, strings.Count(heard, line), heard)
		}
	}
	// The next request tries again, and drops the counter of what is gone.
	if at(25*time.Hour, widget.Object()) {
		t.Error("the counter of a resource that exists went, want it to stay")
	}
	if heard := strings.Join(l.heard, "\n"); !strings.Contains(heard, `"purging counter" "id"="gone"`) || strings.Contains(heard, `"id"="gadget-uid"`) {
		t.Errorf("the log is\n%s\nwant the counter of gone in it and not that of gadget-uid", heard)
	}
	at(49*time.Hour-time.Nanosecond, widget.Object())
	list := "list *resources.WidgetList  by the client, copies false"
	calls.compare(t, []string{list, list})
	if !at(48*time.Hour, gone.Object()) {
		t.Error("the counter of a resource that is gone stayed, want it to go")
	}
	if at(49*time.Hour, widget.Object()) {
		t.Error("the counter of a resource that exists went, want it to stay")
	}
	calls.compare(t, []string{list, list, list})
}

// What is not in the cache anyway is listed by its metadata, and a cast object by what it stands for.
func TestSuppressTransientErrorsListsMetadata(t *testing.T) {
	day := func(t *testing.T, config reconcilers.Config, i int) context.Context {
		return rtime.StashNow(reconcilers.StashConfig(t.Context(), config), requestTime.Add(time.Duration(i)*24*time.Hour))
	}
	asUnstructured := &unstructured.Unstructured{}
	asUnstructured.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
	asUnstructured.SetUID(widget.GetUID())
	untyped := &reconcilers.SuppressTransientErrors[*unstructured.Unstructured, *unstructured.UnstructuredList]{
		Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
			Sync: func(context.Context, *unstructured.Unstructured) error { return errBoom },
		},
	}
	cast := &asDeployment{Reconciler: &reconcilers.SuppressTransientErrors[*appsv1.Deployment, *appsv1.DeploymentList]{
		Reconciler: &deploymentSync{Sync: func(context.Context, *appsv1.Deployment) error { return errBoom }},
	}}
	for name, reconcile := range map[string]func(ctx context.Context) error{
		"unstructured": func(ctx context.Context) error {
			_, err := untyped.Reconcile(ctx, asUnstructured)
			return err
		},
		"cast": func(ctx context.Context) error {
			_, err := cast.Reconcile(ctx, widget.Object())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := &trace{}
			config, _ := purging(calls)
			for i := range 3 {
				if err := reconcile(day(t, config, i)); errors.Is(err, reconcilers.ErrQuiet) != (i < 2) {
					t.Errorf("request %d returned %v, want it quiet: %t", i+1, err, i < 2)
				}
			}
			list := "list *v1.PartialObjectMetadataList WidgetList by the reader, copies false"
			calls.compare(t, []string{list, list})
		})
	}
}

// Below a root the counters go with the resource, and nothing is listed.
func TestSuppressTransientErrorsBelowARoot(t *testing.T) {
	calls := &trace{}
	config, _ := purging(calls)
	root := &widgetRoot{Config: config, SkipStatusUpdate: true, Reconciler: &widgetSuppress{Reconciler: fails(errBoom)}}
	for i := range 4 {
		ctx := rtime.StashNow(t.Context(), requestTime.Add(time.Duration(i)*25*time.Hour))
		result, err := root.Reconcile(ctx, widgetRequest)
		//lint:ignore SA1019 deprecated, not gone
		if suppressed := err == nil && result.Requeue; suppressed != (i < 2) {
			t.Errorf("request %d returned %v and %v, want it suppressed: %t", i+1, result, err, i < 2)
		}
	}
	calls.compare(t, []string{})
	if err := config.Delete(t.Context(), widget.Object()); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil || root.Remembered() != 0 {
		t.Errorf("%d resources are remembered and the error is %v, want neither", root.Remembered(), err)
	}
}

// Many resources at once, with a purge that fails over and over: no request waits for the list, and there are never two.
func TestSuppressTransientErrorsAtOnce(t *testing.T) {
	config, cached := purging(&trace{})
	cached.err = errBoom
	node := &widgetSuppress{Reconciler: &widgetSync{Sync: func(context.Context, *resources.Widget) error { return errBoom }}}
	at := func(i int) context.Context {
		ctx := reconcilers.StashConfig(context.Background(), config)
		return rtime.StashNow(ctx, requestTime.Add(time.Duration(i)*24*time.Hour))
	}
	if _, err := node.Reconcile(at(0), widget.Object()); !errors.Is(err, errBoom) {
		t.Fatalf("the error is %v, want %v", err, errBoom)
	}
	const workers, requests = 16, 50
	var listing atomic.Int32
	var atOnce atomic.Bool
	others := make(chan struct{})
	cached.during = func() {
		now := listing.Add(1)
		defer listing.Add(-1)
		if now > 1 {
			atOnce.Store(true)
			return
		}
		// The first list ends after all other requests have.
		<-others
	}
	var remaining atomic.Int32
	remaining.Store(workers - 1)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			resource := widget.With(func(w *resources.Widget) { w.UID = types.UID(fmt.Sprint("uid-", worker)) }).Object()
			for i := range requests {
				_, err := node.Reconcile(at(i+1), resource)
				if !errors.Is(err, errBoom) || errors.Is(err, reconcilers.ErrQuiet) != (i < 2) {
					t.Errorf("worker %d: request %d returned %v, want %v, quiet: %t", worker, i+1, err, errBoom, i < 2)
				}
			}
			if remaining.Add(-1) == 0 {
				close(others)
			}
		})
	}
	group.Wait()
	if atOnce.Load() {
		t.Error("two lists were made at once, want one after the other")
	}
}

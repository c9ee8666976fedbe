package reconcilers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/validation"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The tables of this package are about a Widget called gadget, and about a ConfigMap that is its child.

var (
	widgetScheme = resources.NewScheme()
	errBoom      = errors.New("boom")
	errQuiet     = fmt.Errorf("hush: %w", reconcilers.ErrQuiet)
	minute       = reconcilers.Result{RequeueAfter: time.Minute}
	//lint:ignore SA1019 deprecated, not gone
	requeue    = reconcilers.Result{Requeue: true}
	twoMinutes = reconcilers.Result{RequeueAfter: 2 * time.Minute}
	nothing    = reconcilers.Result{}

	requestTime = time.Date(2024, time.May, 17, 8, 30, 0, 0, time.UTC)

	widgetKey     = types.NamespacedName{Namespace: "default", Name: "gadget"}
	widgetRequest = reconcilers.Request{NamespacedName: widgetKey}

	// widget is in the cluster.
	widget = rtesting.NewFixture(&resources.Widget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         widgetKey.Namespace,
			Name:              widgetKey.Name,
			UID:               "gadget-uid",
			Generation:        1,
			CreationTimestamp: metav1.NewTime(time.UnixMilli(1000)),
		},
	})
	terminatingWidget = widget.With(terminating("test.espalier.dev/other"))

	// configMap is what is desired as widget's child.
	configMap = rtesting.NewFixture(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       widgetKey.Namespace,
			Name:            widgetKey.Name,
			OwnerReferences: []metav1.OwnerReference{controlledBy(widget.Object())},
		},
		Data: map[string]string{"color": "blue"},
	})
	// givenConfigMap is configMap in the cluster.
	givenConfigMap = configMap.With(func(child *corev1.ConfigMap) {
		child.UID, child.ResourceVersion = "child-uid", "999"
		child.CreationTimestamp = metav1.NewTime(time.UnixMilli(1000))
	})
)

type (
	widgetNode      = reconcilers.SubReconciler[*resources.Widget]
	widgetSequence  = reconcilers.Sequence[*resources.Widget]
	widgetSync      = reconcilers.SyncReconciler[*resources.Widget]
	widgetIfThen    = reconcilers.IfThen[*resources.Widget]
	widgetFinalizer = reconcilers.WithFinalizer[*resources.Widget]
	widgetRoot      = reconcilers.ResourceReconciler[*resources.Widget]
	widgetCase      = rtesting.SubReconcilerTestCase[*resources.Widget]
	configMapNode   = reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]
	configMaps      = reconcilers.UpdatingObjectManager[*corev1.ConfigMap]
)

func controlledBy(owner *resources.Widget) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         "test.espalier.dev/v1",
		Kind:               "Widget",
		Name:               owner.Name,
		UID:                owner.UID,
		Controller:         new(true),
		BlockOwnerDeletion: new(true),
	}
}

func terminating(finalizers ...string) func(*resources.Widget) {
	return func(w *resources.Widget) {
		w.DeletionTimestamp = new(metav1.NewTime(time.UnixMilli(2000)))
		w.Finalizers = finalizers
	}
}

// statusField is what nodes of the tables leave on the resource.
func statusField(key, value string) func(*resources.Widget) {
	return func(w *resources.Widget) { w.Status.AddField(key, value) }
}

// patchedBy is what the patch of the finalizers leaves of the metadata.
func patchedBy(finalizers ...string) func(*resources.Widget) {
	return func(w *resources.Widget) { w.Finalizers = finalizers }
}

// trace records calls in their order.
type trace struct {
	mu    sync.Mutex
	calls []string
	// reads are recorded too.
	reads bool
	// replays says that the instance is one of a replay.
	replays bool
}

func (c *trace) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, fmt.Sprintf(format, args...))
}

// observe records a call to the client, and lets it through.
func (c *trace) observe(action rtesting.Action) (bool, runtime.Object, error) {
	verb, kind := action.GetVerb(), action.GetResource().Resource
	if !c.reads && (verb == "get" || verb == "list") {
		return false, nil, nil
	}
	if action.GetSubresource() != "" {
		kind += "/" + action.GetSubresource()
	}
	c.add("%s %s", verb, kind)
	return false, nil, nil
}

// step returns a node that records that it runs, and returns what it is given.
func (c *trace) step(name string, result reconcilers.Result, err error) widgetNode {
	return &step{name: name, calls: c, result: result, err: err}
}

type step struct {
	name   string
	calls  *trace
	result reconcilers.Result
	err    error
}

func (s *step) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	s.calls.add("set up %s", s.name)
	return s.err
}

func (s *step) Reconcile(context.Context, *resources.Widget) (reconcilers.Result, error) {
	s.calls.add("%s", s.name)
	return s.result, s.err
}

// nodeTest is a case of the harness together with the node that it is about and the calls that this must make, in
// order. Calls are not compared if they are nil.
type nodeTest struct {
	widgetCase
	node  func(calls *trace) widgetNode
	calls []string
}

type nodeTests map[string]nodeTest

func (tests nodeTests) run(t *testing.T) {
	t.Helper()
	rows := map[string]nodeRow[*resources.Widget]{}
	for name, test := range tests {
		if test.Resource == nil {
			test.Resource = widget.Object()
		}
		rows[name] = nodeRow[*resources.Widget]{test.widgetCase, test.node, test.calls}
	}
	runNodes(t, rows)
}

// nodeRow is nodeTest for a resource of any type.
type nodeRow[T client.Object] struct {
	rtesting.SubReconcilerTestCase[T]
	node  func(calls *trace) reconcilers.SubReconciler[T]
	calls []string
}

func runNodes[T client.Object](t *testing.T, table map[string]nodeRow[T]) {
	t.Helper()
	rows, traces := rtesting.NodeTests[T]{}, traces{}
	for name, row := range table {
		rows[name] = row.SubReconcilerTestCase
	}
	rows.Run(t, widgetScheme, func(
		t *testing.T, row *rtesting.SubReconcilerTestCase[T], c reconcilers.Config,
	) reconcilers.SubReconciler[T] {
		return table[row.Name].node(traces.of(t, c, table[row.Name].calls))
	})
}

// rootTest is nodeTest for a root.
type rootTest struct {
	rtesting.ReconcilerTestCase
	root  func(calls *trace) *widgetRoot
	calls []string
}

type rootTests map[string]rootTest

func (tests rootTests) run(t *testing.T) {
	t.Helper()
	rows := map[string]rootRow{}
	for name, test := range tests {
		rows[name] = rootRow{test.ReconcilerTestCase, func(calls *trace, c reconcilers.Config) reconcile.Reconciler {
			root := test.root(calls)
			root.Config = c
			return root
		}, test.calls}
	}
	runRoots(t, rows)
}

// rootRow is rootTest for a root of any type. Unless it says otherwise, the request is for widget.
type rootRow struct {
	rtesting.ReconcilerTestCase
	root  func(calls *trace, c reconcilers.Config) reconcile.Reconciler
	calls []string
}

func runRoots(t *testing.T, table map[string]rootRow) {
	t.Helper()
	rows, traces := rtesting.RootTests{}, traces{}
	for name, row := range table {
		if row.Request.Name == "" {
			row.Request = widgetRequest
		}
		rows[name] = row.ReconcilerTestCase
	}
	rows.Run(t, widgetScheme, func(
		t *testing.T, row *rtesting.ReconcilerTestCase, c reconcilers.Config,
	) reconcile.Reconciler {
		return table[row.Name].root(traces.of(t, c, table[row.Name].calls), c)
	})
}

// traces are the rows that have been traced.
type traces map[*testing.T]struct{}

// of returns the trace of an instance. That of the first one, which makes the request of the row, also has the calls to
// the client of the config, and is compared at the end of the row. Those of the replays are not.
func (tt traces) of(t *testing.T, c reconcilers.Config, expected []string) *trace {
	_, again := tt[t]
	calls := &trace{replays: again}
	if again {
		return calls
	}
	tt[t] = struct{}{}
	c.Client.(rtesting.TestClient).PrependReactor("*", "*", calls.observe)
	t.Cleanup(func() { calls.compare(t, expected) })
	return calls
}

func (c *trace) compare(t *testing.T, expected []string) {
	t.Helper()
	if expected == nil {
		return
	}
	if diff := cmp.Diff(strings.Join(expected, "\n"), strings.Join(c.calls, "\n")); diff != "" {
		t.Errorf("calls differ (-expected, +actual):\n%s", diff)
	}
}

var assignedUIDs atomic.Int64

// assignUID gives an object that is created what an API server gives it and the fake client does not.
func assignUID(action rtesting.Action) (bool, runtime.Object, error) {
	if create, ok := action.(rtesting.CreateAction); ok && action.GetVerb() == "create" && action.GetSubresource() == "" {
		obj := create.GetObject().(client.Object)
		obj.SetCreationTimestamp(metav1.NewTime(time.UnixMilli(1000)))
		uid := obj.GetName()
		if uid == "" {
			// The name is generated later.
			uid = fmt.Sprint(obj.GetGenerateName(), assignedUIDs.Add(1))
		}
		obj.SetUID(types.UID(uid + "-uid"))
	}
	return false, nil, nil
}

// returns checks the error that a node returned.
func returns(expected error) rtesting.VerifyFunc {
	return func(t *testing.T, _ reconcilers.Result, err error) {
		t.Helper()
		if !errors.Is(err, expected) {
			t.Errorf("returned %v, expected %v", err, expected)
		}
	}
}

// returnsBoth checks the error that a node returned and the result that came with it, which the harness does not
// compare.
func returnsBoth(expected error, result reconcilers.Result) rtesting.VerifyFunc {
	return func(t *testing.T, actual reconcilers.Result, err error) {
		t.Helper()
		returns(expected)(t, actual, err)
		if actual != result {
			t.Errorf("returned %+v, expected %+v", actual, result)
		}
	}
}

// testContext is what a root hands to its tree.
func testContext(t testing.TB, config reconcilers.Config) context.Context {
	ctx := reconcilers.WithStash(t.Context())
	ctx = rtime.StashNow(ctx, requestTime)
	ctx = reconcilers.StashConfig(ctx, config)
	ctx = reconcilers.StashOriginalConfig(ctx, config)
	ctx = reconcilers.StashResourceType(ctx, &resources.Widget{})
	ctx = reconcilers.StashOriginalResourceType(ctx, &resources.Widget{})
	return reconcilers.StashRequest(ctx, widgetRequest)
}

// expectWidget is an ExpectConfig for given objects.
func expectWidget(given ...client.Object) *rtesting.ExpectConfig {
	return &rtesting.ExpectConfig{
		Scheme:                 widgetScheme,
		GivenObjects:           given,
		StatusSubResourceTypes: []client.Object{&resources.Widget{}},
	}
}

// validationTests are nodes with the error of their validation: by itself, and with all that is nested in them.
type validationTests map[string]struct {
	node      validation.Validator
	shallow   string
	recursive string
}

func (tests validationTests) run(t *testing.T) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t, expectWidget().Config())
			checkError(t, "by itself", test.node.Validate(ctx), test.shallow)
			recursive := test.recursive
			if recursive == "" {
				recursive = test.shallow
			}
			checkError(t, "recursively", test.node.Validate(validation.WithRecursive(ctx)), recursive)
		})
	}
}

func checkError(t *testing.T, what string, err error, text string) {
	t.Helper()
	actual := ""
	if err != nil {
		actual = err.Error()
	}
	if actual != text {
		t.Errorf("%s the error is\n\t%q, expected\n\t%q", what, actual, text)
	}
}

// recorded is an event, one of the toolkit's own, on widget.
func recorded(eventtype, reason, message string) rtesting.Event {
	return rtesting.NewEvent(widget, widgetScheme, eventtype, reason, "%s", message)
}

func normal(reason, message string) rtesting.Event {
	return recorded(corev1.EventTypeNormal, reason, message)
}

func warning(reason, message string) rtesting.Event {
	return recorded(corev1.EventTypeWarning, reason, message)
}

// finalizersPatch is the expected patch of widget's finalizers.
func finalizersPatch(body string) rtesting.PatchRef {
	return rtesting.PatchRef{
		Group:     resources.GroupVersion.Group,
		Kind:      "Widget",
		Namespace: widgetKey.Namespace,
		Name:      widgetKey.Name,
		PatchType: types.MergePatchType,
		Patch:     []byte(body),
	}
}

// finalizersPatches is the expected patch of widget's finalizers to these.
func finalizersPatches(finalizers ...string) []rtesting.PatchRef {
	list := "null"
	if len(finalizers) > 0 {
		list = `["` + strings.Join(finalizers, `","`) + `"]`
	}
	return []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":` + list + `,"resourceVersion":"999"}}`)}
}

// failedTo is the event of a ConfigMap that cannot be created, updated or deleted.
func failedTo(verb, name string, err error) []rtesting.Event {
	reason := map[string]string{"create": "CreationFailed", "update": "UpdateFailed", "delete": "DeleteFailed"}[verb]
	return []rtesting.Event{warning(reason, fmt.Sprintf("Failed to %s ConfigMap %q: %v", verb, name, err))}
}

// mergeConfigMap is the usual MergeBeforeUpdate.
func mergeConfigMap(current, desired *corev1.ConfigMap) {
	current.Labels = desired.Labels
	current.Data = maps.Clone(desired.Data)
}

func encode(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

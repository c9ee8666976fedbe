package reconcilers_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Announcement is a node as a package of your own would have it: it records an event when a ConfigMap that all
// resources share has changed since the resource was reconciled last.
type Announcement struct {
	Name   string
	Source types.NamespacedName

	announced reconcilers.ResourceState[*announced]
}

// announced is what the node remembers of one resource.
type announced struct{ text string }

// Close is called when the resource is gone.
func (a *announced) Close() error {
	fmt.Printf("forget %q\n", a.text)
	return nil
}

func (n *Announcement) SetupWithManager(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
	ctx = reconcilers.Enter(ctx, n.Name)
	return reconcilers.WatchTracked(ctx, bldr, &corev1.ConfigMap{})
}

func (n *Announcement) Reconcile(ctx context.Context, resource *resources.Widget) (reconcilers.Result, error) {
	ctx = reconcilers.Enter(ctx, n.Name)
	source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Source.Namespace, Name: n.Source.Name}}
	if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, n.Source, source); err != nil {
		return reconcilers.Result{}, reconcilers.Failed(ctx, source, err)
	}
	last := n.announced.Of(ctx, func() *announced { return &announced{} })
	if text := source.Data["text"]; text != last.text {
		last.text = text
		logr.FromContextOrDiscard(ctx).Info("announcing")
		reconcilers.RecordEvent(ctx, resource, corev1.EventTypeNormal, "Announced", "%s", text)
	}
	return reconcilers.Result{}, nil
}

func (n *Announcement) Describe() reconcilers.Description {
	return reconcilers.Description{
		Kind: "Announcement", Name: n.Name, Detail: n.Source.String(),
		Uses: []reconcilers.Access{{Object: &corev1.ConfigMap{}, Verbs: []string{"get", "list", "watch"}}},
	}
}

func announcementTree(config reconcilers.Config) *widgetRoot {
	return &widgetRoot{
		Name:             "Widgets",
		SkipStatusUpdate: true,
		Config:           config,
		Reconciler: widgetSequence{
			&Announcement{Name: "News", Source: types.NamespacedName{Namespace: "default", Name: "news"}},
		},
	}
}

// A node of another package has a path in logs and errors, remembers something of each resource, and appears in the
// tree and in its RBAC rules.
func Example_nodeOfAnotherPackage() {
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", UID: "u"}}
	news := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "news"},
		Data:       map[string]string{"text": "maintenance at noon"},
	}
	_, config := exampleCluster(widget, news)
	root := announcementTree(config)
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	ctx := logr.NewContext(context.Background(), logger)
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(widget)}
	reconcile := func() {
		if _, err := root.Reconcile(ctx, request); err != nil {
			fmt.Println(err)
		}
	}

	fmt.Print(reconcilers.Describe(root))
	reconcile() // logs and records an event
	reconcile() // remembers
	_ = config.Delete(ctx, news)
	reconcile() // fails
	_ = config.Delete(ctx, widget)
	reconcile() // forgets

	// Output:
	// ResourceReconciler "Widgets" Widget
	// └─ Sequence
	//    └─ Announcement "News" default/news
	// level=INFO msg=announcing logger=Widgets/0/News
	// Widgets/News: ConfigMap default/news: configmaps "news" not found
	// forget "maintenance at noon"
}

// A node of another package is tested by tables as any other.
func TestNodeOfAnotherPackage(t *testing.T) {
	news := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "news"},
		Data:       map[string]string{"text": "maintenance at noon"},
	}
	owner := widget.With(func(w *resources.Widget) { w.Namespace, w.Name = "default", "gadget" })
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(news, owner, widgetScheme)}
	rtesting.RootTests{
		"announces": {
			Request:      ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}},
			GivenObjects: []client.Object{owner, news},
			ExpectTracks: tracks,
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(owner, widgetScheme, corev1.EventTypeNormal, "Announced", "maintenance at noon"),
			},
		},
		"has nothing to announce": {
			Request:      ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}},
			GivenObjects: []client.Object{owner},
			ExpectTracks: tracks,
			ShouldErr:    true,
		},
	}.RunRoot(t, widgetScheme, func(c reconcilers.Config) reconcile.Reconciler { return announcementTree(c) })
	rtesting.SetupTests{
		"watches what it tracks": {ExpectWatches: []client.Object{&resources.Widget{}, &corev1.ConfigMap{}}},
	}.Run(t, widgetScheme, func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		return announcementTree(c)
	})
	rules, err := reconcilers.Describe(announcementTree(reconcilers.Config{})).PolicyRules(widgetScheme, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) == 0 || rules[0].Resources[0] != "configmaps" {
		t.Errorf("the rules are %v, want one for configmaps first", rules)
	}
}

// Failed locates an error, and returns it as it is.
func ExampleFailed() {
	_, config := exampleCluster(&resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"}})
	root := &reconcilers.ResourceReconciler[*resources.Widget]{
		Name:   "Widgets",
		Config: config,
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Name: "Quota",
			Sync: func(ctx context.Context, widget *resources.Widget) error {
				quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: "quota"}}
				return reconcilers.Failed(ctx, quota, fmt.Errorf("there is no limit for pods"))
			},
		},
	}
	_, err := root.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}})
	fmt.Println(err)
	// Output:
	// Widgets/Quota: ResourceQuota default/quota: there is no limit for pods
}

// Enter gives the code of a node a path.
func ExampleEnter() {
	ctx := reconcilers.Enter(context.Background(), "Widgets")
	ctx = reconcilers.Enter(ctx, "Quota")
	fmt.Println(reconcilers.RetrievePath(ctx))
	// Output:
	// Widgets/Quota
}

// ResourceState keeps a value for each resource, which a root, or Embed, drops when the resource is gone.
func ExampleResourceState() {
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"}}
	_, config := exampleCluster(widget)
	var counts reconcilers.ResourceState[*int]
	nodes := reconcilers.Embed(config, reconcilers.SubReconciler[*resources.Widget](
		&reconcilers.SyncReconciler[*resources.Widget]{Sync: func(ctx context.Context, w *resources.Widget) error {
			count := counts.Of(ctx, func() *int { return new(int) })
			*count++
			fmt.Println(w.Name, *count)
			return nil
		}}))
	ctx := context.Background()
	for range 2 {
		if _, err := nodes.Reconcile(ctx, widget); err != nil {
			fmt.Println(err)
		}
	}
	nodes.Forget(reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(widget)})
	if _, err := nodes.Reconcile(ctx, widget); err != nil {
		fmt.Println(err)
	}
	// Output:
	// gadget 1
	// gadget 2
	// gadget 1
}

// RecordEvent records an event on the resource of the root, also below a cast.
func ExampleRecordEvent() {
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"}}
	ctx, config := exampleCluster(widget)
	config.Recorder = printingRecorder{}
	ctx = reconcilers.StashOriginalConfig(ctx, config)
	reconcilers.RecordEvent(ctx, widget, corev1.EventTypeWarning, "Late", "the delivery is %d days late", 3)
	// Output:
	// gadget: Warning Late: the delivery is 3 days late
}

// printingRecorder prints events.
type printingRecorder struct{}

func (printingRecorder) Event(obj runtime.Object, eventType, reason, message string) {
	fmt.Printf("%s: %s %s: %s\n", obj.(client.Object).GetName(), eventType, reason, message)
}

func (r printingRecorder) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	r.Event(obj, eventType, reason, fmt.Sprintf(format, args...))
}

func (r printingRecorder) AnnotatedEventf(obj runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	r.Eventf(obj, eventType, reason, format, args...)
}

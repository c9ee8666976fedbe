package reconcilers_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), resources.AssemblyCRD()},
}}

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

// operator is a manager that runs trees for the Widgets of one namespace on the real API server, with its requests counted.
type operator struct {
	ctrl.Manager
	namespace string
	requests  *controlplane.Requests
	stop      func()
}

// startOperator starts a manager with the given roots, each made with the manager's config, for a namespace of its own. It
// stops with the test.
func startOperator(t testing.TB, roots ...func(reconcilers.Config) *widgetRoot) (*operator, []*widgetRoot) {
	t.Helper()
	return startOperatorIn(t, plane.Namespace(t), ctrl.Options{}, roots...)
}

// startOperatorIn is startOperator for a namespace that is there, or for all, and a manager with options of its own.
func startOperatorIn(t testing.TB, namespace string, options ctrl.Options, roots ...func(reconcilers.Config) *widgetRoot) (*operator, []*widgetRoot) {
	t.Helper()
	config, requests := controlplane.CountRequests(plane.Config(t))
	if namespace != metav1.NamespaceAll {
		options.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	mgr := newManager(t, config, options)
	var made []*widgetRoot
	for _, root := range roots {
		r := root(reconcilers.NewConfig(mgr, &resources.Widget{}, time.Hour))
		if err := r.SetupWithManager(t.Context(), mgr); err != nil {
			t.Fatalf("set-up failed: %v", err)
		}
		made = append(made, r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	}
	t.Cleanup(stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache did not sync, want it to")
	}
	return &operator{Manager: mgr, namespace: namespace, requests: requests, stop: stop}, made
}

func newManager(t testing.TB, config *rest.Config, options ctrl.Options) ctrl.Manager {
	t.Helper()
	options.Scheme = resources.NewScheme()
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatalf("no manager: %v", err)
	}
	return mgr
}

// live returns a client that reads past every cache, and is not counted.
func live(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatalf("no client: %v", err)
	}
	return c
}

var eventually = controlplanetest.Eventually

func isReady(ctx context.Context, c client.Client, widget *resources.Widget) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(widget), widget); err != nil {
		return err
	}
	if ready := widget.Status.GetCondition(resources.WidgetReady); !apis.ConditionIsTrue(ready) {
		return fmt.Errorf("Ready is %v", ready)
	}
	if widget.Status.ObservedGeneration != widget.Generation {
		return fmt.Errorf("generation %d is observed, of %d", widget.Status.ObservedGeneration, widget.Generation)
	}
	return nil
}

func deploymentChild() *reconcilers.ChildReconciler[*resources.Widget, *appsv1.Deployment, *appsv1.DeploymentList] {
	return &reconcilers.ChildReconciler[*resources.Widget, *appsv1.Deployment, *appsv1.DeploymentList]{
		DesiredChild: func(_ context.Context, widget *resources.Widget) (*appsv1.Deployment, error) {
			labels := map[string]string{"widget": widget.Name}
			return &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name},
				Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec: corev1.PodSpec{Containers: []corev1.Container{{
							Name:  "main",
							Image: widget.Spec.Fields["image"],
							Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
						}}},
					},
				},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
			current.Labels = desired.Labels
			current.Spec = desired.Spec
		},
		ReflectChildStatusOnParent: func(ctx context.Context, widget *resources.Widget, child *appsv1.Deployment, err error) {
			if err != nil {
				widget.Status.MarkChildNotReady(ctx, "Failed", err.Error())
				return
			}
			widget.Status.MarkChildReady(ctx)
		},
	}
}

func configMapChild(name string) *reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList] {
	return &reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name:     name,
		OurChild: func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Labels["part"] == name },
		DesiredChild: func(_ context.Context, widget *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: widget.Namespace,
					Name:      widget.Name + "-" + name,
					Labels:    map[string]string{"part": name},
				},
				Data: map[string]string{"image": widget.Spec.Fields["image"]},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Labels = desired.Labels
			current.Data = desired.Data
		},
		ReflectChildStatusOnParent: func(_ context.Context, widget *resources.Widget, child *corev1.ConfigMap, err error) {
			if err == nil && child != nil {
				widget.Status.AddField(name, child.Name)
			}
		},
	}
}

func widgetTree(config reconcilers.Config) *widgetRoot {
	return &widgetRoot{
		Config: config,
		Reconciler: reconcilers.Sequence[*resources.Widget]{
			configMapChild("a"),
			configMapChild("b"),
			deploymentChild(),
		},
	}
}

func (op *operator) createWidget(t testing.TB, c client.Client) *resources.Widget {
	t.Helper()
	widget := &resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "widget"},
		Spec:       resources.WidgetSpec{Fields: map[string]string{"image": "example.com/app:1"}},
	}
	if err := c.Create(t.Context(), widget); err != nil {
		t.Fatalf("no widget: %v", err)
	}
	return widget
}

// reconcileSteadily reconciles a widget until that makes no request, and then again some times, which must make none. It
// returns how many requests it took to get there.
func reconcileSteadily(t *testing.T, op *operator, root reconcile.Reconciler, widget *resources.Widget) int {
	t.Helper()
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(widget)}
	total := 0
	eventually(t, "requests do not end", func(ctx context.Context) error {
		op.requests.Reset()
		if _, err := root.Reconcile(ctx, request); err != nil {
			return err
		}
		total += op.requests.Total()
		if op.requests.Total() > 0 {
			return fmt.Errorf("requests were made:\n%s", op.requests)
		}
		return nil
	})
	// A request of the controller itself may be about to record the event of a write that it made before.
	eventually(t, "steady reconciles make requests", func(ctx context.Context) error {
		op.flushEvents(t, widget)
		op.requests.Reset()
		for range 10 {
			if _, err := root.Reconcile(ctx, request); err != nil {
				return fmt.Errorf("a steady reconcile failed: %w", err)
			}
		}
		op.flushEvents(t, widget)
		if op.requests.Total() != 1 {
			return fmt.Errorf("10 made more than the one for the test's own event:\n%s", op.requests)
		}
		return nil
	})
	return total
}

// flushEvents waits until all events recorded so far are written: they are written in order, by a goroutine of their own, so
// one more is recorded and awaited.
func (op *operator) flushEvents(t *testing.T, widget *resources.Widget) {
	t.Helper()
	reason := fmt.Sprintf("Flush%d", flushes.Add(1))
	//lint:ignore SA1019 the recorder that trees use
	op.GetEventRecorderFor("controller").Event(widget, corev1.EventTypeNormal, reason, "")
	c := live(t)
	eventually(t, "events are not written", func(ctx context.Context) error {
		var events corev1.EventList
		if err := c.List(ctx, &events, client.InNamespace(widget.Namespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("no event %s", reason)
	})
}

var flushes atomic.Int64

func TestL1SteadyTreeMakesNoRequests(t *testing.T) {
	t.Parallel()
	c := live(t)
	op, roots := startOperator(t, widgetTree)
	widget := op.createWidget(t, c)
	eventually(t, "not ready", func(ctx context.Context) error { return isReady(ctx, c, widget) })
	reconcileSteadily(t, op, roots[0], widget)

	deployment := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(widget), deployment); err != nil {
		t.Fatal(err)
	}
	if deployment.Generation != 1 {
		t.Errorf("the generation of the deployment is %d after its creation, want 1", deployment.Generation)
	}
	if deployment.Spec.RevisionHistoryLimit == nil {
		t.Error("the server defaulted nothing, so this test shows nothing, want the history limit")
	}
}

func TestL1RestartConvergesWithoutChangingAnything(t *testing.T) {
	t.Parallel()
	c := live(t)
	first, _ := startOperator(t, widgetTree)
	widget := first.createWidget(t, c)
	eventually(t, "not ready", func(ctx context.Context) error { return isReady(ctx, c, widget) })
	first.stop()
	before := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(widget), before); err != nil {
		t.Fatal(err)
	}

	second, roots := startOperatorIn(t, first.namespace, ctrl.Options{}, widgetTree)
	reconcileSteadily(t, second, roots[0], widget)
	after := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(widget), after); err != nil {
		t.Fatal(err)
	}
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("the restart changed the deployment: it has the version %s, want %s", after.ResourceVersion,
			before.ResourceVersion)
	}
}

func TestDriftIsPutRight(t *testing.T) {
	t.Parallel()
	c := live(t)
	op, roots := startOperator(t, widgetTree)
	widget := op.createWidget(t, c)
	eventually(t, "not ready", func(ctx context.Context) error { return isReady(ctx, c, widget) })

	key := client.ObjectKeyFromObject(widget)
	deployment := &appsv1.Deployment{}
	if err := c.Get(t.Context(), key, deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Spec.Template.Spec.Containers[0].Image = "example.com/other:1"
	if err := c.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the edit stays", func(ctx context.Context) error {
		if err := c.Get(ctx, key, deployment); err != nil {
			return err
		}
		if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "example.com/app:1" {
			return fmt.Errorf("image is %s", image)
		}
		return nil
	})
	if err := c.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deleted child stays away", func(ctx context.Context) error { return c.Get(ctx, key, &appsv1.Deployment{}) })
	reconcileSteadily(t, op, roots[0], widget)
}

func TestTwoRootsOfOneManagerShareTheOwnerIndex(t *testing.T) {
	t.Parallel()
	c := live(t)
	tree := func(part string) func(reconcilers.Config) *widgetRoot {
		return func(config reconcilers.Config) *widgetRoot {
			return &widgetRoot{
				Name:   part,
				Config: config,
				Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Named(part)
					return nil
				},
				SkipStatusUpdate: true,
				Reconciler:       configMapChild(part),
			}
		}
	}
	op, roots := startOperator(t, tree("one"), tree("two"))
	widget := op.createWidget(t, c)
	// The event of a creation is written last, and counts as a request.
	eventually(t, "no children", func(ctx context.Context) error {
		var events corev1.EventList
		if err := c.List(ctx, &events, client.InNamespace(widget.Namespace)); err != nil {
			return err
		}
		created := 0
		for _, event := range events.Items {
			if event.Reason == "Created" {
				created++
			}
		}
		if created != len(roots) {
			return fmt.Errorf("%d children have been created", created)
		}
		return nil
	})
	for _, root := range roots {
		reconcileSteadily(t, op, root, widget)
	}
}

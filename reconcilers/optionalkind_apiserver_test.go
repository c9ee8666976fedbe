package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// meter is of a kind that the cluster may not serve.
type meter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              map[string]string `json:"spec,omitempty"`
}

func (g *meter) DeepCopyObject() runtime.Object {
	return &meter{TypeMeta: g.TypeMeta, ObjectMeta: *g.ObjectMeta.DeepCopy(), Spec: maps.Clone(g.Spec)}
}

type meterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []meter `json:"items"`
}

func (l *meterList) DeepCopyObject() runtime.Object {
	list := &meterList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		list.Items = append(list.Items, *l.Items[i].DeepCopyObject().(*meter))
	}
	return list
}

// meterKinds is how many kinds meterKind has returned.
var meterKinds atomic.Int64

// meterKind returns a kind in a group of its own, at each call.
func meterKind(group string) schema.GroupVersionKind {
	group = fmt.Sprintf("%s-%d.example.com", group, meterKinds.Add(1))
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Meter"}
}

func meterScheme(gvk schema.GroupVersionKind) *runtime.Scheme {
	scheme := resources.NewScheme()
	scheme.AddKnownTypeWithName(gvk, &meter{})
	scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind("MeterList"), &meterList{})
	metav1.AddToGroupVersion(scheme, gvk.GroupVersion())
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		panic(err) // the types are fixed when this is compiled
	}
	return scheme
}

func meterDefinition(gvk schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	crd := resources.CRD()
	crd.Name, crd.Spec.Group = "meters."+gvk.Group, gvk.Group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "meters", Singular: "meter", Kind: "Meter", ListKind: "MeterList",
	}
	crd.Spec.Versions[0].Name = gvk.Version
	crd.Spec.Versions[0].Subresources = nil
	return crd
}

type meterChild = reconcilers.ChildReconciler[*resources.Widget, *meter, *meterList]

// showMeter notes in the status what came of a meter.
func showMeter(w *resources.Widget, key string, g *meter, err error) {
	text := "none"
	switch {
	case apierrs.ReasonForError(err) == reconcilers.StatusReasonKindNotServed:
		text = "not served"
	case apierrs.IsNotFound(err):
		text = "not found"
	case err != nil:
		text = err.Error()
	case g != nil:
		text = "is " + g.Spec["of"]
	}
	w.Status.AddField(key, text)
}

// childMeter keeps a Meter of a Widget that wants one.
func childMeter() *meterChild {
	return &meterChild{
		OptionalKind: true,
		DesiredChild: func(_ context.Context, w *resources.Widget) (*meter, error) {
			if w.Spec.Fields["meter"] == "" {
				return nil, nil
			}
			return &meter{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
				Spec:       map[string]string{"of": w.Spec.Fields["meter"]},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *meter) { current.Spec = desired.Spec },
		ReflectChildStatusOnParent: func(_ context.Context, w *resources.Widget, child *meter, err error) {
			showMeter(w, "child", child, err)
		},
	}
}

// readMeter tracks a Meter called read.
func readMeter() *widgetSync {
	return &widgetSync{
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			return reconcilers.WatchOptional(ctx, bldr, &meter{})
		},
		Sync: func(ctx context.Context, w *resources.Widget) error {
			read := &meter{}
			key := types.NamespacedName{Namespace: w.Namespace, Name: "read"}
			err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, read)
			if errors.Is(err, reconcilers.ErrQuiet) {
				return err
			}
			showMeter(w, "read", read, err)
			return nil
		},
	}
}

// meterOperator runs a tree for Widgets in a namespace, with its requests counted.
type meterOperator struct {
	requests  *controlplane.Requests
	namespace string
	live      client.Client
	gvk       schema.GroupVersionKind
}

func startMeterOperator(
	t *testing.T, gvk schema.GroupVersionKind, base *rest.Config, node widgetNode,
) *meterOperator {
	t.Helper()
	o := &meterOperator{namespace: plane.Namespace(t), gvk: gvk}
	scheme := meterScheme(o.gvk)
	config, requests := controlplane.CountRequests(base)
	o.requests = requests
	options := ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
	options.Cache.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	options.Controller.SkipNameValidation = new(true)
	// A kind that is not served when a source is started is looked for again after ten seconds.
	options.Controller.CacheSyncTimeout = time.Minute
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	root := &widgetRoot{Config: reconcilers.NewConfig(mgr, &resources.Widget{}, time.Hour), Reconciler: node}
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	if o.live, err = client.New(plane.Config(t), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v, want no error", err)
		}
	})
	return o
}

func (o *meterOperator) widget(t *testing.T, name, meter string) *resources.Widget {
	t.Helper()
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name}}
	w.Spec.Fields = map[string]string{"meter": meter}
	if err := o.live.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	return w
}

// shows fails unless the status of a Widget has these fields soon.
func (o *meterOperator) shows(t *testing.T, w *resources.Widget, want map[string]string) {
	t.Helper()
	eventually(t, fmt.Sprintf("Widget %s does not show %v", w.Name, want), func(ctx context.Context) error {
		now := &resources.Widget{}
		if err := o.live.Get(ctx, client.ObjectKeyFromObject(w), now); err != nil {
			return err
		}
		delete(now.Status.Fields, "a") // the ordinary child
		if !maps.Equal(now.Status.Fields, want) {
			return fmt.Errorf("it shows %v", now.Status.Fields)
		}
		return nil
	})
}

// install makes the cluster serve the kind until the test ends.
func (o *meterOperator) install(t *testing.T) {
	t.Helper()
	if err := o.live.Create(t.Context(), meterDefinition(o.gvk)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.live.Delete(context.Background(), meterDefinition(o.gvk)) })
}

func (o *meterOperator) uninstall(t *testing.T) {
	t.Helper()
	if err := o.live.Delete(t.Context(), meterDefinition(o.gvk)); err != nil {
		t.Fatal(err)
	}
}

func (o *meterOperator) createRead(t *testing.T, of string) {
	t.Helper()
	read := &meter{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "read"}, Spec: map[string]string{"of": of},
	}
	eventually(t, "the Meter is not created", func(ctx context.Context) error { return o.live.Create(ctx, read) })
}

// An optional kind that the cluster does not serve stops nothing, and the tree goes on when it comes, goes, and comes.
func TestAnOptionalKindMayComeAndGo(t *testing.T) {
	t.Parallel()
	o := startMeterOperator(t, meterKind("comes"), plane.Config(t),
		widgetSequence{configMapChild("a"), childMeter(), readMeter()})
	w, without := o.widget(t, "with", "fuel"), o.widget(t, "without", "")
	for round := range 2 {
		of := fmt.Sprintf("round %d", round)
		o.shows(t, w, map[string]string{"child": "not served", "read": "not served"})
		o.shows(t, without, map[string]string{"child": "none", "read": "not served"})
		o.install(t)
		o.shows(t, w, map[string]string{"child": "is fuel", "read": "not found"})
		o.createRead(t, of)
		o.shows(t, w, map[string]string{"child": "is fuel", "read": "is " + of})
		o.shows(t, without, map[string]string{"child": "none", "read": "is " + of})
		o.uninstall(t)
	}
	o.shows(t, w, map[string]string{"child": "not served", "read": "not served"})
}

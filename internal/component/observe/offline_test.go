package observe_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/testing/fake"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	prefix  = "test.example.com"
	manager = "us"
)

var (
	configMaps  = schema.GroupKind{Kind: "ConfigMap"}
	jobs        = schema.GroupKind{Group: "batch", Kind: "Job"}
	deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	epoch       = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// evaluate returns that an object is ready if its status says so.
func evaluate(object *unstructured.Unstructured, _ generator.Settings) readiness.Result {
	if ready, _, _ := unstructured.NestedBool(object.Object, "status", "ready"); ready {
		return readiness.Result{Status: apis.ObjectCurrent}
	}
	if replicas, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas"); replicas > 0 {
		return readiness.Result{Status: apis.ObjectCurrent}
	}
	return readiness.Result{Status: apis.ObjectInProgress, Message: "it is not ready"}
}

// offline is an observer whose watches show what the test says.
type offline struct {
	*observe.Watching
	t         testing.TB
	component observe.Component
	// direct reads the same world.
	direct *observe.Direct

	mu    sync.Mutex
	world map[string]*unstructured.Unstructured
	fault error
	// refuse returns the error for a version that is not served.
	refuse func(version string) error
	reads  []string
	woken  []string
}

func newOffline(t testing.TB) *offline {
	t.Helper()
	o := &offline{t: t, world: map[string]*unstructured.Unstructured{}}
	o.component = observe.Component{
		Watcher: types.NamespacedName{Namespace: "default", Name: "shop"}, UID: "uid-1",
		OwnerID: ourID, Owner: ourOwner, Now: epoch,
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}, {Group: "batch", Version: "v1"}})
	mapper.Add(configMaps.WithVersion("v1"), meta.RESTScopeNamespace)
	mapper.Add(jobs.WithVersion("v1"), meta.RESTScopeNamespace)
	mapper.Add(deployments.WithVersion("v1"), meta.RESTScopeNamespace)
	c := interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(mapper).Build(), interceptor.Funcs{Get: o.get, List: o.list})
	w, err := observe.NewWatching(observe.Options{
		Config: &rest.Config{Host: "http://127.0.0.1:1"}, Mapper: mapper, Client: c,
		Prefix: prefix, FieldManager: manager, Evaluate: evaluate, Wake: o.wake,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Offline()
	t.Cleanup(w.Stop)
	o.Watching = w
	o.direct = observe.NewDirect(c, prefix, manager, evaluate)
	return o
}

func (o *offline) wake(watcher types.NamespacedName, low bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := watcher.Name
	if low {
		text += " low"
	}
	o.woken = append(o.woken, text)
}

func (o *offline) get(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	o.mu.Lock()
	o.reads = append(o.reads, "get "+key.Name)
	fault, refuse, found := o.fault, o.refuse, o.world[key.Name]
	o.mu.Unlock()
	if fault != nil {
		return fault
	}
	if refuse != nil {
		if err := refuse(object.GetObjectKind().GroupVersionKind().Version); err != nil {
			return err
		}
	}
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	found.DeepCopyInto(object.(*unstructured.Unstructured))
	return nil
}

func (o *offline) list(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	options := (&client.ListOptions{}).ApplyOptions(opts)
	o.reads = append(o.reads, fmt.Sprintf("list %s %s %d", options.Namespace, options.LabelSelector, options.Limit))
	if o.fault != nil {
		return o.fault
	}
	if o.refuse != nil {
		if err := o.refuse(list.GetObjectKind().GroupVersionKind().Version); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range o.world {
			if !yield(name) {
				return
			}
		}
	}) {
		if object := o.world[name]; object.GetLabels()[prefix+"/owner-id"] == ourID {
			list.(*unstructured.UnstructuredList).Items = append(list.(*unstructured.UnstructuredList).Items, *object.DeepCopy())
		}
	}
	return nil
}

// observe observes and checks which requests that took.
func (o *offline) observe(reads []string, interests ...observe.Interest) *observe.Observation {
	o.t.Helper()
	o.mu.Lock()
	o.reads = nil
	o.mu.Unlock()
	observation, err := o.Observe(o.t.Context(), o.component, interests)
	if err != nil {
		o.t.Fatal(err)
	}
	slices.Sort(o.reads)
	if !slices.Equal(o.reads, reads) {
		o.t.Errorf("got the requests %q, want %q", o.reads, reads)
	}
	return observation
}

// wakes checks which components were woken since the last call.
func (o *offline) wakes(want ...string) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	// Components are woken in no order.
	slices.Sort(o.woken)
	slices.Sort(want)
	if !slices.Equal(o.woken, want) {
		o.t.Errorf("woken: %q, want %q", o.woken, want)
	}
	o.woken = nil
}

// live makes a type live, with some objects.
func (o *offline) live(gk schema.GroupKind, version string, objects ...any) {
	o.t.Helper()
	o.Listed(gk, version, objects...)
	o.Opened(gk)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.woken = nil
}

func (o *offline) after(d time.Duration) { o.component.Now = o.component.Now.Add(d) }

func interest(gk schema.GroupKind, name string, change ...func(*observe.Interest)) observe.Interest {
	in := observe.Interest{Key: plan.Key{Group: gk.Group, Kind: gk.Kind, Namespace: "default", Name: name}, Version: "v1"}
	in.Static = gk == configMaps
	for _, f := range change {
		f(&in)
	}
	return in
}

func fresh(in *observe.Interest)   { in.Fresh = true }
func wanting(in *observe.Interest) { in.Readiness = true }

func recorded(uid types.UID) func(*observe.Interest) {
	return func(in *observe.Interest) { in.UID = uid }
}

// object is one of ours, at a version.
func object(gk schema.GroupKind, name string, uid types.UID, version string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gk.WithVersion("v1"))
	u.SetNamespace("default")
	u.SetName(name)
	u.SetUID(uid)
	u.SetResourceVersion(version)
	u.SetGeneration(1)
	u.SetLabels(map[string]string{prefix + "/owner-id": ourID})
	u.SetAnnotations(map[string]string{prefix + "/owner-id": ourOwner, prefix + "/digest": "d1"})
	u.SetManagedFields([]metav1.ManagedFieldsEntry{managed(manager, metav1.ManagedFieldsOperationApply, "", `{"f:data":{"f:a":{}}}`)})
	for _, f := range change {
		f(u)
	}
	return u
}

func unlabelled(u *unstructured.Unstructured)  { u.SetLabels(nil) }
func terminating(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: epoch}) }
func ready(u *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(u.Object, true, "status", "ready")
}

func (o *offline) presence(observation *observe.Observation, in observe.Interest, want plan.Presence) plan.Observed {
	o.t.Helper()
	got, ok := observation.Objects[in.Key]
	if !ok {
		o.t.Errorf("nothing is said of %s, want an observation", in.Key)
	}
	if got.Presence != want {
		o.t.Errorf("%s: got presence %v, want %v", in.Key, got.Presence, want)
	}
	return got
}

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// work makes requests of all kinds, and returns the answers.
func (w world) work(pass func()) string {
	w.Helper()
	var answers string
	note := func(err error, obj any) {
		raw, _ := json.Marshal(obj)
		answers += fmt.Sprintln(err, string(raw))
	}
	definition, config, deployed := widgets(), configMap(""), deployment("d")
	config.GenerateName, config.Finalizers = "cm-", []string{"example.com/wait"}
	custom := widget("", 1)
	custom.SetName("")
	custom.SetGenerateName("w-")
	for _, obj := range []client.Object{definition, config, deployed, custom} {
		note(w.Create(w.ctx, obj), obj)
	}
	pass()
	for _, patch := range []client.Patch{
		client.RawPatch(types.MergePatchType, []byte(`{"data":{"b":"1"}}`)),
		client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/data/c","value":"1"}]`)),
		client.RawPatch(types.StrategicMergePatchType, []byte(`{"data":{"d":"1"}}`)),
	} {
		note(w.Patch(w.ctx, config, patch), config)
	}
	applied := corev1apply.ConfigMap("applied", "default").WithData(map[string]string{"a": "1"})
	note(w.Apply(w.ctx, applied, client.FieldOwner("one")), applied)
	pass()
	note(w.Apply(w.ctx, applied, client.FieldOwner("one")), applied)
	scheduled := &corev1.Pod{ObjectMeta: meta("p"), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "image"}},
	}}
	note(w.Create(w.ctx, scheduled), scheduled)
	binding := &corev1.Binding{Target: corev1.ObjectReference{Name: "n"}}
	note(w.SubResource("binding").Create(w.ctx, scheduled, binding), nil)
	note(w.Get(w.ctx, client.ObjectKeyFromObject(scheduled), scheduled), scheduled)
	custom.Object["status"] = map[string]any{"ready": true}
	note(w.Status().Update(w.ctx, custom), custom)
	note(w.Status().Update(w.ctx, custom), custom)
	note(w.Patch(w.ctx, custom, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":0}}`))), nil)
	note(w.Delete(w.ctx, config), nil)
	note(w.Get(w.ctx, client.ObjectKeyFromObject(config), config), config)
	note(w.DeleteAllOf(w.ctx, deployed, client.InNamespace("default")), nil)
	list, configs := widgetList(), &corev1.ConfigMapList{}
	note(w.List(w.ctx, list), list)
	note(w.List(w.ctx, configs), configs)
	pass()
	note(w.Delete(w.ctx, definition), nil)
	note(w.Create(w.ctx, widget("late", 1)), nil)
	return answers
}

// TestWorldsHaveOneOutcome makes the same requests in 100 worlds, in bubbles and outside, side by side.
func TestWorldsHaveOneOutcome(t *testing.T) {
	s := shared(t)
	var mu sync.Mutex
	outcomes := map[string]int{}
	everywhere(t, 50, func(t *testing.T, _ int) {
		now := time.Unix(1_000_000_000, 0)
		outcome := worldOf(t, s, func() time.Time { return now }).work(func() { now = now.Add(time.Minute) })
		mu.Lock()
		defer mu.Unlock()
		outcomes[outcome]++
	})
	if len(outcomes) == 1 {
		return
	}
	for outcome, n := range outcomes {
		t.Errorf("in %d worlds:\n%s", n, outcome)
	}
}

func TestWorldIdentities(t *testing.T) {
	w := newWorld(t)
	named := func(options ...client.CreateOption) *corev1.ConfigMap {
		obj := configMap("")
		obj.GenerateName = "a-"
		w.must(w.Create(w.ctx, obj, options...))
		return obj
	}
	dry, first := named(client.DryRunAll), named()
	if dry.Name != "a-001" || first.Name != "a-001" || dry.UID == first.UID {
		t.Errorf("a dry run gave %s with UID %s, and the create after it %s with UID %s",
			dry.Name, dry.UID, first.Name, first.UID)
	}
	fork := w.fork()
	if got := named().Name; got != "a-002" {
		t.Errorf("the second name is %s", got)
	}
	w = fork
	if got := named().Name; got != "a-002" {
		t.Errorf("the second name in a fork is %s", got)
	}
	w.must(w.Delete(w.ctx, first))
	again := configMap(first.Name)
	w.create(again)
	other := configMap("a-001")
	newWorld(t).create(other)
	if again.UID == first.UID || other.UID != first.UID {
		t.Errorf("the UIDs are %s, %s after a deletion, and %s in another world", first.UID, again.UID, other.UID)
	}
}

func TestWorldClock(t *testing.T) {
	now := time.Date(2030, time.May, 1, 0, 0, 0, 0, time.UTC)
	w := worldOf(t, shared(t), func() time.Time { return now })
	obj := configMap("a")
	obj.Finalizers = []string{"example.com/wait"}
	w.create(obj, widgets())
	created := now
	now = now.Add(time.Hour)
	obj.Data["a"] = "2"
	w.must(w.Update(w.ctx, obj, client.FieldOwner("other")))
	w.must(w.Delete(w.ctx, obj))
	w.get(obj)
	if !obj.CreationTimestamp.Equal(&metav1.Time{Time: created}) || !obj.DeletionTimestamp.Equal(&metav1.Time{Time: now}) {
		t.Errorf("it is created at %v and deleted at %v", obj.CreationTimestamp, obj.DeletionTimestamp)
	}
	for i, want := range []time.Time{created, now} {
		if got := obj.ManagedFields[i]; !got.Time.Equal(&metav1.Time{Time: want}) {
			t.Errorf("%s manages fields since %v, want %v", got.Manager, got.Time, want)
		}
	}
	definition := widgets()
	w.get(definition)
	for _, condition := range definition.Status.Conditions {
		if !condition.LastTransitionTime.Equal(&metav1.Time{Time: created}) {
			t.Errorf("the condition %s is of %v", condition.Type, condition.LastTransitionTime)
		}
	}
}

func TestWorldNamespaces(t *testing.T) {
	everywhere(t, 4, func(t *testing.T, _ int) {
		w := newWorld(t)
		own, elsewhere := &corev1.Namespace{}, configMap("a")
		own.Name, elsewhere.Namespace = "own", "own"
		w.refused(w.Create(w.ctx, elsewhere), apierrors.IsNotFound)
		w.create(own)
		w.create(elsewhere)
		w.must(w.Delete(w.ctx, own))
		elsewhere = configMap("b")
		elsewhere.Namespace = "own"
		err := w.Create(w.ctx, elsewhere)
		w.refused(err, apierrors.IsForbidden)
		w.refused(err, func(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) })
		own.Name = "default"
		w.refused(w.Delete(w.ctx, own), apierrors.IsForbidden)
		w.refused(newWorld(t).Create(w.ctx, elsewhere), apierrors.IsForbidden)
	})
}

// TestWorldLag reads kinds as they were, also before the fork.
func TestWorldLag(t *testing.T) {
	w := newWorld(t)
	w.create(widgets(), configMap("a"), configMap("b"), widget("a", 1))
	w = w.fork()
	at, obj, custom := w.Revision(), configMap("a"), widget("a", 1)
	w.get(obj)
	stale := obj.DeepCopy()
	obj.Data["a"] = "2"
	w.must(w.Update(w.ctx, obj))
	w.must(w.Delete(w.ctx, configMap("b")))
	w.create(configMap("c"))
	w.get(custom)
	custom.Object["status"] = map[string]any{"ready": true}
	w.must(w.Status().Update(w.ctx, custom))

	behind := func(prefix string) world {
		w := w
		w.ctx = storage.Behind(w.ctx, storage.Lag{Revisions: map[string]int64{prefix: at}})
		return w
	}
	configs, resources := behind("/configmaps"), behind("/example.com/widgets")
	configs.get(obj)
	if obj.ResourceVersion != stale.ResourceVersion {
		t.Errorf("the version is %s, want %s", obj.ResourceVersion, stale.ResourceVersion)
	}
	configs.get(configMap("b"))
	w.refused(configs.Get(configs.ctx, client.ObjectKeyFromObject(configMap("c")), obj), apierrors.IsNotFound)
	list := &corev1.ConfigMapList{}
	w.must(configs.List(configs.ctx, list))
	if len(list.Items) != 2 || list.ResourceVersion != fmt.Sprint(at) {
		t.Errorf("the list of version %s has %d objects", list.ResourceVersion, len(list.Items))
	}
	if configs.get(custom); custom.Object["status"] == nil {
		t.Error("the other kind lags, too")
	}
	if resources.get(custom); custom.Object["status"] != nil {
		t.Error("the custom resource does not lag")
	}
	w.refused(w.Update(w.ctx, stale), apierrors.IsConflict)
}

func TestWorldWatches(t *testing.T) {
	everywhere(t, 10, func(t *testing.T, _ int) {
		w := newWorld(t)
		w.create(widgets())
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		for _, test := range []struct {
			list client.ObjectList
			obj  client.Object
		}{{&corev1.ConfigMapList{}, configMap("a")}, {widgetList(), widget("a", 1)}} {
			watched, err := w.Watch(ctx, test.list)
			w.must(err)
			w.create(test.obj)
			w.must(w.Delete(w.ctx, test.obj))
			for _, want := range []string{"ADDED", "DELETED"} {
				if got := <-watched.ResultChan(); string(got.Type) != want {
					t.Errorf("the event is %s of %v, want %s", got.Type, got.Object, want)
				}
			}
			defer func() {
				cancel()
				for range watched.ResultChan() { // until the watch has ended
				}
			}()
		}
	})
}

// inWorld has requests carry the values of a context, which informers do not know.
type inWorld struct {
	http.RoundTripper
	world context.Context
}

func (i inWorld) RoundTrip(r *http.Request) (*http.Response, error) {
	return i.RoundTripper.RoundTrip(r.WithContext(withValues{r.Context(), i.world}))
}

type withValues struct {
	context.Context
	values context.Context
}

func (v withValues) Value(key any) any {
	if value := v.Context.Value(key); value != nil {
		return value
	}
	return v.values.Value(key)
}

// TestWorldInformers runs caches of controller-runtime for 30 days.
func TestWorldInformers(t *testing.T) {
	s := shared(t)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			synctest.Test(t, func(t *testing.T) {
				w := worldOf(t, s, nil)
				w.create(widgets())
				ctx, cancel := context.WithCancel(w.ctx)
				defer synctest.Wait()
				defer cancel()
				config := worldConfig(s)
				config.Transport = inWorld{config.Transport, w.ctx}
				informers, err := cache.New(config, cache.Options{Scheme: worldScheme(), Mapper: worldMapper()})
				w.must(err)
				go func() { _ = informers.Start(ctx) }()
				for _, obj := range []client.Object{configMap(""), widget("", 0)} {
					_, err := informers.GetInformer(ctx, obj)
					w.must(err)
				}
				w.create(configMap("a"), widget("a", 1))
				time.Sleep(30 * 24 * time.Hour)
				w.must(informers.Get(ctx, client.ObjectKeyFromObject(configMap("a")), configMap("")))
				w.must(informers.Get(ctx, client.ObjectKeyFromObject(configMap("a")), widget("", 0)))
			})
		})
	}
	running.Wait()
}

// TestServerOfWorldsStartsInBubble uses a server that was started in a bubble in others, and outside. It leaves no
// goroutine behind.
func TestServerOfWorldsStartsInBubble(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var s *server.Server
	synctest.Test(t, func(t *testing.T) {
		var err error
		if s, err = server.StartShared(); err != nil {
			t.Fatal(err)
		}
		worldOf(t, s, nil).work(func() {})
	})
	everywhere(t, 2, func(t *testing.T, _ int) { worldOf(t, s, nil).work(func() {}) })
	goleak.VerifyNone(t, before)
}

// TestWorldEventsStay has an event for longer than a cluster keeps it.
func TestWorldEventsStay(t *testing.T) {
	s := shared(t)
	synctest.Test(t, func(t *testing.T) {
		w := worldOf(t, s, nil)
		event := &corev1.Event{ObjectMeta: meta("a"), InvolvedObject: corev1.ObjectReference{Namespace: "default"}}
		w.create(event)
		time.Sleep(24 * time.Hour)
		w.get(event)
		event.Count++
		w.must(w.Update(w.ctx, event))
		time.Sleep(24 * time.Hour)
		w.get(event)
	})
}

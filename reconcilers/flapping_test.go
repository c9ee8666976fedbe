package reconcilers_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// flappingQueue is a queue for a child whose data is made in each request. It returns the recorder of its events.
func flappingQueue(manager reconcilers.ObjectManager[*corev1.ConfigMap], data func(now time.Time) map[string]string, given ...client.Object) (*virtualQueue, *record.FakeRecorder) {
	node := statusChild()
	node.ChildObjectManager = manager
	q, _ := newVirtualQueue(node, append([]client.Object{steadyWidget}, given...))
	node.DesiredChild = func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-child"}, Data: data(q.now)}, nil
	}
	recorder := record.NewFakeRecorder(100_000)
	q.root.(*widgetRoot).Config.Recorder = recorder
	return q, recorder
}

// writes returns how often the child was written.
func (q *virtualQueue) writes() int {
	n := 0
	for _, call := range q.calls.calls {
		if strings.HasSuffix(call, " ConfigMap") {
			n++
		}
	}
	return n
}

func flappingManagers() map[string]func() reconcilers.ObjectManager[*corev1.ConfigMap] {
	return map[string]func() reconcilers.ObjectManager[*corev1.ConfigMap]{
		"updated": func() reconcilers.ObjectManager[*corev1.ConfigMap] {
			return &configMaps{MergeBeforeUpdate: mergeConfigMap}
		},
		"applied": func() reconcilers.ObjectManager[*corev1.ConfigMap] { return &configMapManager{FieldManager: "widgets"} },
	}
}

// What is desired depends on the time, or on chance. It is written a few times at once, and then a few times a minute.
func TestFlappingChildIsWrittenWithDelays(t *testing.T) {
	at := map[string]string{"updated": "/data/at", "applied": ".data.at"}
	chance := rand.New(rand.NewPCG(1, 2))
	for name, data := range map[string]func(time.Time) map[string]string{
		"the time": func(now time.Time) map[string]string {
			return map[string]string{"color": "blue", "at": now.Format(time.RFC3339Nano)}
		},
		"chance": func(time.Time) map[string]string {
			return map[string]string{"color": "blue", "at": fmt.Sprint(chance.Int())}
		},
		"the order of a map": func(time.Time) map[string]string {
			return map[string]string{"color": "blue", "at": fmt.Sprint(chance.Perm(9))}
		},
	} {
		for kind, manager := range flappingManagers() {
			t.Run(name+", "+kind, func(t *testing.T) {
				q, recorder := flappingQueue(manager(), data)
				q.run(t, 8*time.Second)
				if n := q.writes(); n < 4 || n > 7 {
					t.Errorf("there are %d writes in eight seconds, want 4 to 7: %v", n, q.at)
				}
				before := q.writes()
				q.run(t, 10*time.Minute)
				if n := q.writes() - before; n < 2 || n > 10 {
					t.Errorf("there are %d writes in the next ten minutes, want 2 to 10", n)
				}
				if n := q.count("update Widget/status"); n != 2 {
					t.Errorf("the status was written %d times, want 2, at %v", n, q.at)
				}
				condition := q.widget(t).Status.GetCondition(resources.WidgetChildReady)
				want := "ConfigMap default/gadget-child was written 5 times in five minutes, and differs again in " + at[kind] +
					"; it is written with delays; what is desired must not depend on time, chance or the order of a map"
				if condition.Message != want {
					t.Errorf("the condition says %q, want %q", condition.Message, want)
				}
				flapping := 0
				for range len(recorder.Events) {
					if event := <-recorder.Events; event == "Warning NondeterministicChild "+want {
						flapping++
					}
				}
				if flapping != 1 {
					t.Errorf("%d events say that it is flapping, want 1", flapping)
				}
			})
		}
	}
}

// A child that stays the same again is as good as any, also where no event brings the resource back.
func TestFlappingEnds(t *testing.T) {
	for name, mend := range map[string]func(t *testing.T, q *virtualQueue, stable *bool){
		"by itself": func(_ *testing.T, q *virtualQueue, stable *bool) { *stable = true },
		"by a change of the resource": func(t *testing.T, q *virtualQueue, stable *bool) {
			*stable = true
			w := q.widget(t)
			w.Generation++
			if err := q.client.Update(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			q.wake(latency)
		},
	} {
		t.Run(name, func(t *testing.T) {
			stable := false
			q, _ := flappingQueue(&configMaps{MergeBeforeUpdate: mergeConfigMap}, func(now time.Time) map[string]string {
				if stable {
					return map[string]string{"color": "green"}
				}
				return map[string]string{"at": now.Format(time.RFC3339Nano)}
			})
			q.run(t, time.Minute)
			mend(t, q, &stable)
			start := q.now
			ready := func() bool {
				return q.widget(t).Status.GetCondition(resources.WidgetChildReady).Status == metav1.ConditionTrue
			}
			for !ready() && q.now.Sub(start) < time.Hour {
				q.run(t, time.Second)
			}
			if took := q.now.Sub(start); took > 3*time.Minute || name != "by itself" && took > 2*time.Second {
				t.Errorf("%s: the child is ready after %v, want at most 3m, and 2s if not by itself", name, took)
			}
			requests := len(q.at)
			q.run(t, time.Hour)
			if len(q.at) > requests+1 {
				t.Errorf("there are %d requests when all is as desired, want at most 1", len(q.at)-requests)
			}
		})
	}
}

// followingStatus is a queue for a child with the data of the status. Step changes the status before, and returns when
// it wants to run again.
func followingStatus(
	manager reconcilers.ObjectManager[*corev1.ConfigMap],
	step func(now time.Time, fields map[string]string) time.Duration,
) *virtualQueue {
	var q *virtualQueue
	child := statusChild()
	child.ChildObjectManager = manager
	child.DesiredChild = func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		meta := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-child"}
		return &corev1.ConfigMap{ObjectMeta: meta, Data: maps.Clone(w.Status.Fields)}, nil
	}
	q, _ = newVirtualQueue(widgetSequence{
		&widgetSync{SyncWithResult: func(_ context.Context, w *resources.Widget) (reconcilers.Result, error) {
			if w.Status.Fields == nil {
				w.Status.Fields = map[string]string{}
			}
			return reconcilers.Result{RequeueAfter: step(q.now, w.Status.Fields)}, nil
		}},
		child,
	}, []client.Object{steadyWidget})
	return q
}

// A canary: each step is in the status, and the child follows it at once.
func TestChildFollowsTheStatusAtOnce(t *testing.T) {
	const steps = 60
	for name, every := range map[string]time.Duration{
		"steps of ten seconds": 10 * time.Second, "a little early": 10*time.Second - 500*time.Millisecond,
	} {
		for kind, manager := range flappingManagers() {
			t.Run(name+", "+kind, func(t *testing.T) {
				weight, last := 0, requestTime
				q := followingStatus(manager(), func(now time.Time, fields map[string]string) time.Duration {
					fields["color"] = fmt.Sprint(weight)
					if wait := every - now.Sub(last); wait > 0 || weight == steps {
						return wait
					}
					weight, last = weight+1, now
					fields["color"] = fmt.Sprint(weight)
					return every
				})
				for range steps {
					q.run(t, every+time.Second)
					child := &corev1.ConfigMap{}
					key := types.NamespacedName{Namespace: "default", Name: "gadget-child"}
					if err := q.client.Get(t.Context(), key, child); err != nil || child.Data["color"] != fmt.Sprint(weight) {
						t.Fatalf("the child is at %q, %v, want it at %d as the status", child.Data["color"], err, weight)
					}
				}
				if weight != steps {
					t.Errorf("there were %d steps, want %d", weight, steps)
				}
			})
		}
	}
}

// What flaps is written with delays also if the tree itself writes it into the status.
func TestFlappingThroughTheStatusIsWrittenWithDelays(t *testing.T) {
	for kind, manager := range flappingManagers() {
		t.Run(kind, func(t *testing.T) {
			q := followingStatus(manager(), func(now time.Time, fields map[string]string) time.Duration {
				fields["color"] = now.Format(time.RFC3339Nano)
				return 0
			})
			// The status itself changes in each request. That is another fault, and no requests end it.
			q.run(t, 2*time.Second)
			if n := q.writes(); n > 7 {
				t.Errorf("the child is written %d times in two seconds, want at most 7", n)
			}
		})
	}
}

// What users change of the resource is written at once, however often they do. Of other changes, the sixth within five
// minutes waits.
func TestChangesOfTheResourceAreWrittenAtOnce(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "tracked"}
	for name, test := range map[string]struct {
		read, change func(ctx context.Context, config reconcilers.Config, w *resources.Widget, color string) error
		waits        bool
	}{
		"the resource": {change: func(ctx context.Context, c reconcilers.Config, w *resources.Widget, color string) error {
			w.Labels = map[string]string{"color": color}
			return c.Update(ctx, w)
		}},
		"the spec": {change: func(ctx context.Context, c reconcilers.Config, w *resources.Widget, color string) error {
			w.Spec.Fields, w.Generation = map[string]string{"color": color}, w.Generation+1
			return c.Update(ctx, w)
		}},
		"what is tracked": {waits: true, change: func(ctx context.Context, c reconcilers.Config, _ *resources.Widget, color string) error {
			from := &corev1.ConfigMap{}
			if err := c.Get(ctx, key, from); err != nil {
				return err
			}
			from.Data = map[string]string{"color": color}
			return c.Update(ctx, from)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			node := statusChild()
			node.DesiredChild = func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
				from := &corev1.ConfigMap{}
				err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, from)
				color := w.Labels["color"] + w.Spec.Fields["color"] + from.Data["color"]
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-child"}, Data: map[string]string{"color": color},
				}, err
			}
			tracked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "tracked-uid"}}
			q, _ := newVirtualQueue(node, []client.Object{steadyWidget, tracked})
			for i := range 20 {
				color, changed := fmt.Sprint("color-", i), q.now
				if err := test.change(t.Context(), reconcilers.Config{Client: q.client}, q.widget(t), color); err != nil {
					t.Fatal(err)
				}
				q.wake(0)
				child := &corev1.ConfigMap{}
				for child.Data["color"] != color && q.now.Sub(changed) < time.Hour {
					q.run(t, time.Second)
					if err := q.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "gadget-child"}, child); err != nil {
						t.Fatal(err)
					}
				}
				// The first one is the create.
				if waited := q.now.Sub(changed) > time.Second; waited != (test.waits && i > 5) {
					t.Fatalf("change %d was written after %s", i, q.now.Sub(changed))
				}
			}
		})
	}
}

// The path of a flapping field is said, the values of a Secret are not.
func TestValuesOfAFlappingSecretAreNotSaid(t *testing.T) {
	node := &reconcilers.ChildReconciler[*resources.Widget, *corev1.Secret, *corev1.SecretList]{
		MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(ctx context.Context, w *resources.Widget, _ *corev1.Secret, err error) {
			if err != nil {
				w.Status.MarkChildNotReady(ctx, "Failed", err.Error())
			}
		},
	}
	q, _ := newVirtualQueue(node, []client.Object{steadyWidget})
	i := 0
	node.DesiredChild = func(_ context.Context, w *resources.Widget) (*corev1.Secret, error) {
		i++
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-child"},
			Data:       map[string][]byte{"tls.key": fmt.Append(nil, "hidden-", i)},
		}, nil
	}
	for range 10 {
		q.wake(latency)
		q.run(t, time.Second)
	}
	message := q.widget(t).Status.GetCondition(resources.WidgetChildReady).Message
	if !strings.Contains(message, "differs again in /data/tls.key;") || strings.Contains(message, "hidden") {
		t.Errorf("the condition says %q, want that it differs in tls.key, and no value", message)
	}
}

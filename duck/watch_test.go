package duck_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/duck"
)

// watching returns a wrapped client whose inner client watches with the given watch.
func watching(inner watch.Interface) client.WithWatch {
	c, _ := newClient()
	c = interceptor.NewClient(c, interceptor.Funcs{
		Watch: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
			if list.GetObjectKind().GroupVersionKind().Kind != "DeploymentList" {
				return nil, errors.New("not a list of deployments")
			}
			return inner, nil
		},
	})
	return duck.NewDuckAwareClientWrapper(c).(client.WithWatch)
}

func deploymentEvent(name string, spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name},
		"spec":     spec,
	}}
}

func TestEventsBringDucks(t *testing.T) {
	inner := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})
	w, err := watching(inner).Watch(t.Context(), newWorkloadList())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	inner.Add(deploymentEvent("web", map[string]any{"replicas": int64(3)}))
	event := <-w.ResultChan()
	obj, ok := event.Object.(*workload)
	if !ok || event.Type != watch.Added {
		t.Fatalf("want a workload added, got %s %T", event.Type, event.Object)
	}
	if obj.Kind != "Deployment" || obj.Name != "web" || *obj.Spec.Replicas != 3 {
		t.Errorf("the duck is not what the event brought: %+v", obj)
	}

	inner.Modify(deploymentEvent("web", "weird"))
	event = <-w.ResultChan()
	want := "Internal error occurred: unable to convert to object: cannot restore struct from: string"
	if status, ok := event.Object.(*metav1.Status); !ok || event.Type != watch.Error || status.Message != want {
		t.Errorf("want an error event %q, got %s %v", want, event.Type, event.Object)
	}

	gone := &metav1.Status{Reason: metav1.StatusReasonExpired}
	inner.Error(gone)
	if event = <-w.ResultChan(); event.Type != watch.Error || event.Object != runtime.Object(gone) {
		t.Errorf("want the error event as it is, got %s %v", event.Type, event.Object)
	}

	inner.Stop()
	if _, open := <-w.ResultChan(); open {
		t.Error("want the watch to end with the inner one")
	}
}

func TestAWatchLeavesNoGoroutineBehind(t *testing.T) {
	tests := map[string]func(watch.Interface, context.CancelFunc){
		"stopped":             func(w watch.Interface, _ context.CancelFunc) { w.Stop(); w.Stop() },
		"context of the call": func(_ watch.Interface, cancel context.CancelFunc) { cancel() },
	}
	for name, end := range tests {
		for _, pending := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				before := goleak.IgnoreCurrent()
				inner := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w, err := watching(inner).Watch(ctx, newWorkloadList())
				if err != nil {
					t.Fatal(err)
				}
				if pending {
					// Nobody ever receives it.
					inner.Add(deploymentEvent("web", map[string]any{}))
				}
				end(w, cancel)
				goleak.VerifyNone(t, before)
				if !inner.IsStopped() {
					t.Error("the inner watch goes on")
				}
			})
		}
	}
}

// listOfNothing is a duck of a list whose items are no objects.
type listOfNothing struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []string
}

func (l *listOfNothing) DeepCopyObject() runtime.Object { return l }

// itemless is a duck of a list without items.
type itemless struct {
	metav1.TypeMeta
	metav1.ListMeta
}

func (l *itemless) DeepCopyObject() runtime.Object { return l }

func TestL7WatchErrors(t *testing.T) {
	kind := metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}
	able := watching(watch.NewFake())
	inner, _ := newClient()
	unable := duck.NewDuckAwareClientWrapper(struct{ client.Client }{inner}).(client.WithWatch)

	_, err := unable.Watch(t.Context(), newWorkloadList())
	wantError(t, err, "unable to call Watch with wrapped client that does not implement client.WithWatch")

	_, err = able.Watch(t.Context(), &listOfNothing{TypeMeta: kind})
	wantError(t, err, "unable to find the item type of *duck_test.listOfNothing: string is not an object")

	if _, err = able.Watch(t.Context(), &itemless{TypeMeta: kind}); err == nil {
		t.Error("want an error for a list without items")
	}

	list := newWorkloadList()
	list.Kind = "OtherList"
	_, err = able.Watch(t.Context(), list)
	wantError(t, err, "not a list of deployments")
}

package execute_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestCreate(t *testing.T) {
	b := newBench(t)
	o := b.desire(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: x
  uid: not-to-be-sent
  resourceVersion: "1"
  labels: {app: web}
  annotations: {note: text}
data: {a: "1"}
`, "d1")
	before := o.DeepCopy()
	answer := b.create(o)
	live := b.live(o)
	if answer.GetUID() == "" || answer.GetUID() != live.GetUID() {
		t.Errorf("the answer has the UID %q, the object %q", answer.GetUID(), live.GetUID())
	}
	for key, want := range map[string]string{"app": "web", ownerLabel: myID} {
		if got := live.GetLabels()[key]; got != want {
			t.Errorf("the label %s is %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]string{"note": "text", ownerNote: myOwner, digestNote: "d1"} {
		if got := live.GetAnnotations()[key]; got != want {
			t.Errorf("the annotation %s is %q, want %q", key, got, want)
		}
	}
	if got := managersOf(live); len(got) != 1 || got[0] != prefix+" Update v1" {
		t.Errorf("the managers are %v", got)
	}
	if !equal(o.Object, before.Object) {
		t.Error("the manifest was changed")
	}
}

func TestCreateWhatExists(t *testing.T) {
	b := newBench(t)
	other := b.put(configMap, ownedBy(otherID, otherOwner))
	o := b.desire(configMap, "d1")
	op := operation(plan.ActionCreate, o)
	b.warm(op)
	result := b.run(op)
	var exists *execute.ExistsError
	if !errors.As(result.Err, &exists) || exists.Key != op.Key {
		t.Fatalf("got the error %v", result.Err)
	}
	b.wantText(result.Err, "unable to create ConfigMap NS/x: ConfigMap NS/x exists already")
	if result.Object == nil || result.Object.GetUID() != other.GetUID() ||
		result.Object.GetLabels()[ownerLabel] != otherID {
		t.Errorf("got the object %v", result.Object)
	}
	if got := b.requests.Total(); got != 2 {
		t.Errorf("made %d requests:\n%s", got, b.requests)
	}
	if b.live(o).GetResourceVersion() != other.GetResourceVersion() {
		t.Error("the object was written")
	}
}

// An object that exists at the create, and is gone when it is read, is created.
func TestCreateWhatVanishes(t *testing.T) {
	var b *bench
	b = newBench(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			if err := b.Delete(ctx, named(o)); client.IgnoreNotFound(err) != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	b.put(configMap)
	o := b.desire(configMap, "d1")
	if result := b.run(operation(plan.ActionCreate, o)); result.Err != nil || result.Object == nil {
		t.Fatalf("got the error %v", result.Err)
	}
	if b.live(o).GetLabels()[ownerLabel] != myID {
		t.Error("the object there is not ours")
	}
}

// A create whose answer is lost is an error; trying again finds the object, which is ours.
func TestCreateWhoseAnswerIsLost(t *testing.T) {
	lost := true
	b := newBench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, o, opts...)
			if lost && err == nil {
				return apierrs.NewTimeoutError("the answer was lost", 0)
			}
			return err
		},
	})
	o := b.desire(configMap, "d1")
	result := b.run(operation(plan.ActionCreate, o))
	if !apierrs.IsTimeout(result.Err) || result.Object != nil {
		t.Fatalf("got the error %v, and the object %v", result.Err, result.Object)
	}
	lost = false
	result = b.run(operation(plan.ActionCreate, o))
	var exists *execute.ExistsError
	if !errors.As(result.Err, &exists) || result.Object.GetLabels()[ownerLabel] != myID {
		t.Errorf("got the error %v, and the object %v", result.Err, result.Object)
	}
}

func TestCreateThatHasToWait(t *testing.T) {
	b := newBench(t)
	var wait *execute.WaitError

	b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: nowhere}}`, "d1")
	result := b.run(plan.Operation{Action: plan.ActionCreate, Version: "v1",
		Key: plan.Key{Kind: "ConfigMap", Namespace: "nowhere", Name: "x"}})
	var namespace *execute.NamespaceError
	if !errors.As(result.Err, &namespace) || errors.As(result.Err, &wait) {
		t.Errorf("got the error %v for a namespace that does not exist", result.Err)
	}
	b.wantText(result.Err, "unable to create ConfigMap nowhere/x: the namespace nowhere does not exist")

	gone := b.put(`{apiVersion: v1, kind: Namespace, metadata: {name: going-` + b.namespace + `}}`)
	if err := b.Delete(t.Context(), named(gone)); err != nil {
		t.Fatal(err)
	}
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: going-`+b.namespace+`}}`, "d1")
	result = b.run(operation(plan.ActionCreate, o))
	if !errors.As(result.Err, &wait) || wait.TypeMissing || wait.Namespace != gone.GetName() ||
		!apierrs.IsForbidden(result.Err) {
		t.Errorf("got the error %v for a namespace that is being deleted", result.Err)
	}
	b.wantText(result.Err, "unable to create ConfigMap going-NS/x: the namespace going-NS is being deleted")

	o = b.desire(`{apiVersion: nobody.example.com/v1, kind: Thing, metadata: {name: x}}`, "d1")
	result = b.run(operation(plan.ActionCreate, o))
	if !errors.As(result.Err, &wait) || !wait.TypeMissing {
		t.Errorf("got the error %v for a type that is not served", result.Err)
	}
	b.wantText(result.Err, "unable to create Thing NS/x: the API server does not serve the type")
}

// The error is the same for a type that is not served any more and for one that never was.
func TestCreateOfTypeThatWasRemoved(t *testing.T) {
	b := newBench(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrs.NewGenericServerResponse(404, "post", schema.GroupResource{Group: "g", Resource: "things"},
				"", "404 page not found", 0, true)
		},
	})
	o := b.desire(configMap, "d1")
	result := b.run(operation(plan.ActionCreate, o))
	var wait *execute.WaitError
	if !errors.As(result.Err, &wait) || !wait.TypeMissing {
		t.Errorf("got the error %v", result.Err)
	}
}

// The error of a create says both if an object exists and cannot be read. A create gives up if an object exists again
// and again, and is gone each time it is read.
func TestCreateThatCannotRead(t *testing.T) {
	var read error
	creates := 0
	b := newBench(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			creates++
			return apierrs.NewAlreadyExists(configMaps, "x")
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return read
		},
	})
	op := operation(plan.ActionCreate, b.desire(configMap, "d1"))
	var exists *execute.ExistsError
	read = apierrs.NewForbidden(configMaps, "x", errors.New("because"))
	result := b.run(op)
	if !errors.As(result.Err, &exists) || !apierrs.IsForbidden(result.Err) || result.Object != nil || creates != 1 {
		t.Errorf("got the error %v, and the object %v, after %d creates", result.Err, result.Object, creates)
	}
	b.wantText(result.Err,
		"unable to create ConfigMap NS/x: ConfigMap NS/x exists already, and cannot be read: "+
			`configmaps "x" is forbidden: because`)
	read, creates = apierrs.NewNotFound(configMaps, "x"), 0
	result = b.run(op)
	if !errors.As(result.Err, &exists) || result.Object != nil || creates != 5 {
		t.Errorf("got the error %v, and the object %v, after %d creates", result.Err, result.Object, creates)
	}
}

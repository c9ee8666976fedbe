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
		t.Errorf("the answer has the UID %q and the object %q, want the same one", answer.GetUID(), live.GetUID())
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
		t.Errorf("the managers are %v, want [%s]", got, prefix+" Update v1")
	}
	if !equal(o.Object, before.Object) {
		t.Errorf("the manifest was changed to %v, want %v", o.Object, before.Object)
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
		t.Fatalf("the error is %v, want an ExistsError for %s", result.Err, op.Key)
	}
	b.wantText(result.Err, "unable to create ConfigMap NS/x: ConfigMap NS/x exists already")
	if result.Object == nil || result.Object.GetUID() != other.GetUID() ||
		result.Object.GetLabels()[ownerLabel] != otherID {
		t.Errorf("the object is %v, want the one with the UID %s of %s", result.Object, other.GetUID(), otherID)
	}
	if got := b.requests.Total(); got != 2 {
		t.Errorf("there are %d requests, want 2:\n%s", got, b.requests)
	}
	if b.live(o).GetResourceVersion() != other.GetResourceVersion() {
		t.Errorf("the object was written: resource version %s, want %s", b.live(o).GetResourceVersion(),
			other.GetResourceVersion())
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
		t.Fatalf("the object is %v and the error %v, want an object and no error", result.Object, result.Err)
	}
	if b.live(o).GetLabels()[ownerLabel] != myID {
		t.Errorf("the object there has the owner %q, want %q", b.live(o).GetLabels()[ownerLabel], myID)
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
		t.Fatalf("the error is %v and the object %v, want a timeout and no object", result.Err, result.Object)
	}
	lost = false
	result = b.run(operation(plan.ActionCreate, o))
	var exists *execute.ExistsError
	if !errors.As(result.Err, &exists) || result.Object.GetLabels()[ownerLabel] != myID {
		t.Errorf("the error is %v and the object %v, want an ExistsError and our object", result.Err, result.Object)
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
		t.Errorf("for a namespace that does not exist the error is %v, want a NamespaceError", result.Err)
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
		t.Errorf("for a namespace that is being deleted the error is %v, want a WaitError for %s that is forbidden",
			result.Err, gone.GetName())
	}
	b.wantText(result.Err, "unable to create ConfigMap going-NS/x: the namespace going-NS is being deleted")

	o = b.desire(`{apiVersion: nobody.example.com/v1, kind: Thing, metadata: {name: x}}`, "d1")
	result = b.run(operation(plan.ActionCreate, o))
	if !errors.As(result.Err, &wait) || !wait.TypeMissing {
		t.Errorf("for a type that is not served the error is %v, want a WaitError for a missing type", result.Err)
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
		t.Errorf("the error is %v, want a WaitError for a missing type", result.Err)
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
		t.Errorf("the error is %v and the object %v after %d creates, want a forbidden ExistsError and none after 1",
			result.Err, result.Object, creates)
	}
	b.wantText(result.Err,
		"unable to create ConfigMap NS/x: ConfigMap NS/x exists already, and cannot be read: "+
			`configmaps "x" is forbidden: because`)
	read, creates = apierrs.NewNotFound(configMaps, "x"), 0
	result = b.run(op)
	if !errors.As(result.Err, &exists) || result.Object != nil || creates != 5 {
		t.Errorf("the error is %v and the object %v after %d creates, want an ExistsError and no object after 5",
			result.Err, result.Object, creates)
	}
}

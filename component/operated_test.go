package component_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/fake"
	rtime "github.com/espalier-dev/espalier/time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operated is a component that a root as of NewComponentRoot reconciles in memory, from request to request, and what
// became of that.
type operated struct {
	client client.Client
	root   *reconcilers.ResourceReconciler[*resources.Assembly]
	key    client.ObjectKey
	now    time.Time
	// requests are all that were made of the API server by the last call, writes those of them that change something.
	requests, writes []string
	// events are all that were ever recorded.
	events eventTexts
}

// eventTexts is a recorder.
type eventTexts []string

func (e *eventTexts) Event(_ runtime.Object, eventType, reason, message string) {
	*e = append(*e, eventType+" "+reason+": "+message)
}

func (e *eventTexts) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	e.Event(object, eventType, reason, fmt.Sprintf(format, args...))
}

func (e *eventTexts) AnnotatedEventf(object runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	e.Eventf(object, eventType, reason, format, args...)
}

// newOperated gives the house and other objects to a cluster in memory. The first reaction is asked first.
func newOperated(t testing.TB, node *component.ComponentReconciler[*resources.Assembly], house *resources.Assembly,
	given []client.Object, reactors ...rtesting.ReactionFunc) *operated {
	t.Helper()
	o := &operated{key: client.ObjectKeyFromObject(house), now: rtesting.RolledOutAt}
	note := func(action rtesting.Action) (bool, runtime.Object, error) {
		name := ""
		switch named := action.(type) {
		case interface{ GetName() string }:
			name = named.GetName()
		case rtesting.CreateAction:
			name = named.GetObject().(client.Object).GetName()
		}
		line := fmt.Sprintf("%s %s/%s %s/%s", action.GetVerb(), action.GetResource().Resource, action.GetSubresource(), action.GetNamespace(), name)
		o.requests = append(o.requests, line)
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			o.writes = append(o.writes, line)
		}
		return false, nil, nil
	}
	cluster := rtesting.ExpectConfig{
		Scheme:       assemblyScheme,
		UseFake:      true,
		GivenObjects: append(given, house),
		WithReactors: append([]rtesting.ReactionFunc{note}, reactors...),
	}
	config := cluster.Config()
	config.APIReader, config.Recorder = config.Client, &o.events
	o.client = config.Client
	o.root = component.NewComponentRoot(componentPrefix, nil, component.Options[*resources.Assembly]{Config: config})
	o.root.Reconciler = node
	return o
}

// reconcile makes one request, at a time after the one before.
func (o *operated) reconcile(t testing.TB, after time.Duration) (reconcilers.Result, error) {
	t.Helper()
	o.now = o.now.Add(after)
	o.requests, o.writes = nil, nil
	fake.CollectGarbage(o.client)
	return o.root.Reconcile(rtime.StashNow(t.Context(), o.now), reconcilers.Request{NamespacedName: o.key})
}

// untilIdle makes requests until nothing is written.
func (o *operated) untilIdle(t testing.TB) {
	t.Helper()
	for range 20 {
		if _, err := o.reconcile(t, 0); err != nil {
			t.Fatal(err)
		}
		if len(o.writes) == 0 {
			return
		}
	}
	t.Fatalf("the component does not come to an end, want no more writes than %v", o.writes)
}

// house is the resource as it is stored.
func (o *operated) house(t testing.TB) *resources.Assembly {
	t.Helper()
	house := &resources.Assembly{}
	o.get(t, o.key.Name, house)
	return house
}

// get reads an object that is where the resource is.
func (o *operated) get(t testing.TB, name string, object client.Object) {
	t.Helper()
	if err := o.client.Get(t.Context(), client.ObjectKey{Namespace: o.key.Namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
}

// change changes an object as another client.
func (o *operated) change(t testing.TB, object client.Object, change func()) {
	t.Helper()
	o.get(t, object.GetName(), object)
	change()
	if err := o.client.Update(context.Background(), object, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
}

package observe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inTheWay is an observer of an object that is in the way of a component, as a create has found it at version 10.
func inTheWay(t *testing.T) (*offline, observe.Interest) {
	t.Helper()
	o := newOffline(t)
	in := interest(configMaps, "a", fresh)
	o.observe(nil, in)
	o.live(configMaps, "20")
	in.Fresh = false
	o.Wrote(o.component, in, object(configMaps, "a", "1", "10", unlabelled))
	return o, in
}

// watched watches the object by name, and checks whether that covers it.
func (o *offline) watched(want bool, keys ...plan.Key) {
	o.t.Helper()
	if got := o.WatchNames(o.component, keys); got != want {
		o.t.Errorf("the objects are watched: %v, want %v", got, want)
	}
}

func TestAnObjectInTheWayIsWatchedByName(t *testing.T) {
	o, in := inTheWay(t)
	o.watched(false, in.Key)
	if o.Names() != 1 {
		t.Fatalf("%d objects are watched by name, want 1", o.Names())
	}
	o.NameListed("21", object(configMaps, "a", "1", "10", unlabelled))
	o.watched(true, in.Key)
	o.wakes()

	// What it shows counts as long as it is open, without a request.
	o.after(time.Hour)
	o.presence(o.observe(nil, in), in, plan.Present)
	o.watched(true, in.Key)

	// A new version is news only if it says something else.
	o.NameShown(object(configMaps, "a", "1", "22", unlabelled))
	o.wakes()
	o.NameShown(object(configMaps, "a", "1", "23", unlabelled, func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "9", Controller: new(true)}})
	}))
	o.wakes("shop")
	if got := o.presence(o.observe(nil, in), in, plan.Present); got.Claim != "is controlled by ReplicaSet web" {
		t.Errorf("the object shows %+v, want the claim of ReplicaSet web", got)
	}
	o.NameShown(object(configMaps, "a", "1", "24", unlabelled, terminating))
	o.wakes("shop")
	if got := o.presence(o.observe(nil, in), in, plan.Present); !got.Terminating {
		t.Errorf("the object shows %+v, want it terminating", got)
	}
	o.watched(true, in.Key)

	// It is gone at once, and a late answer does not bring it back for long.
	o.NameGone(object(configMaps, "a", "1", "25", unlabelled, terminating))
	o.wakes("shop")
	o.presence(o.observe(nil, in), in, plan.Absent)
	o.watched(true)
	if o.Names() != 0 {
		t.Errorf("%d objects are watched by name, want none", o.Names())
	}
}

func TestAnObjectInTheWayThatIsGoneBeforeItIsWatched(t *testing.T) {
	o, in := inTheWay(t)
	o.watched(false, in.Key)
	o.NameListed("9")
	o.wakes()
	o.presence(o.observe(nil, in), in, plan.Present)
	o.NameListed("30")
	o.wakes("shop")
	o.presence(o.observe(nil, in), in, plan.Absent)
}

func TestAnotherObjectTakesTheWay(t *testing.T) {
	o, in := inTheWay(t)
	o.watched(false, in.Key)
	o.NameListed("21", object(configMaps, "a", "1", "10", unlabelled))
	o.NameGone(object(configMaps, "a", "1", "25", unlabelled))
	o.wakes("shop")
	o.NameShown(object(configMaps, "a", "2", "26", unlabelled))
	o.wakes("shop")
	if got := o.presence(o.observe(nil, in), in, plan.Present); got.UID != "2" {
		t.Errorf("the object shows %+v, want the UID 2", got)
	}
	o.watched(true, in.Key)

	// A late answer is not believed.
	o.Wrote(o.component, in, object(configMaps, "a", "1", "12", unlabelled))
	if got := o.presence(o.observe(nil, in), in, plan.Present); got.UID != "2" {
		t.Errorf("the object shows %+v, want the UID 2", got)
	}
	// What gets the label is shown by the watch of the type.
	o.NameShown(object(configMaps, "a", "2", "27"))
	o.wakes()
	o.Shown(configMaps, object(configMaps, "a", "2", "27"))
	o.wakes("shop")
	if got := o.presence(o.observe(nil, in), in, plan.Present); got.Ownership != plan.Ours {
		t.Errorf("the object shows %+v, want it ours", got)
	}
	o.watched(true, in.Key)
	if o.Names() != 0 {
		t.Errorf("%d objects are watched by name, want none", o.Names())
	}
}

// The number of watches by name is limited. What is not watched has to be polled.
func TestFewObjectsAreWatchedByName(t *testing.T) {
	o := newOffline(t)
	var interests []observe.Interest
	var keys []plan.Key
	for i := range 20 {
		interests = append(interests, interest(configMaps, fmt.Sprintf("a%02d", i), fresh))
		keys = append(keys, interests[i].Key)
	}
	o.observe(nil, interests...)
	o.live(configMaps, "20")
	for _, in := range interests {
		o.Wrote(o.component, in, object(configMaps, in.Key.Name, "1", "10", unlabelled))
	}
	o.watched(false, keys...)
	if o.Names() != 16 {
		t.Errorf("%d objects are watched by name, want 16", o.Names())
	}
	o.watched(false, keys[10:]...)
	if o.Names() != 10 {
		t.Errorf("%d objects are watched by name, want 10", o.Names())
	}
	// A type that is not served any more has no objects.
	o.Lost(configMaps)
	if o.Names() != 0 {
		t.Errorf("%d objects are watched by name, want none", o.Names())
	}
	o.watched(false, keys...)
	o.watched(true)
	if o.Names() != 0 {
		t.Errorf("%d objects are watched by name, want none", o.Names())
	}
}

// A watch by name ends with the interest, and with the component.
func TestWatchesByNameEnd(t *testing.T) {
	for name, end := range map[string]func(o *offline){
		"the interest":  func(o *offline) { o.observe(nil) },
		"the component": func(o *offline) { o.Release(o.component) },
	} {
		o, in := inTheWay(t)
		o.watched(false, in.Key)
		end(o)
		if o.Names() != 0 {
			t.Errorf("%s ends: %d objects are watched by name, want none", name, o.Names())
		}
	}
	o, in := inTheWay(t)
	for range 4 {
		o.Failed(configMaps, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil))
	}
	o.watched(false, in.Key)
	if o.Names() != 0 {
		t.Errorf("%d objects of a type that cannot be watched are watched by name, want none", o.Names())
	}
}

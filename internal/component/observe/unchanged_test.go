package observe_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/observe"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// settled is an observer that has seen all there is of a ConfigMap, a Deployment that is ready, and a ConfigMap that was purged.
func settled(t testing.TB) (*offline, []observe.Interest) {
	t.Helper()
	o := newOffline(t)
	interests := []observe.Interest{
		interest(configMaps, "a", recorded("uid-a"), wanting), interest(deployments, "d", recorded("uid-d"), wanting), interest(configMaps, "gone"),
	}
	o.world["d"] = object(deployments, "d", "uid-d", "20", ready)
	o.observe(nil, interests...)
	o.live(configMaps, "100", object(configMaps, "a", "uid-a", "10"))
	o.live(deployments, "100", object(deployments, "d", "uid-d", "20", ready))
	o.observe([]string{"get d", "get gone"}, interests...)
	return o, interests
}

// An observer says that nothing has changed only if another Observe would return the same, and make no request.
func TestUnchanged(t *testing.T) {
	changed := func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{prefix + "/digest": "d2"}) }
	newer := func() *unstructured.Unstructured { return object(configMaps, "a", "uid-a", "110", changed) }
	for name, test := range map[string]struct {
		happens func(o *offline, interests []observe.Interest)
		want    bool
	}{
		"nothing":           {func(*offline, []observe.Interest) {}, true},
		"time":              {func(o *offline, _ []observe.Interest) { o.after(24 * time.Hour) }, true},
		"a bookmark":        {func(o *offline, _ []observe.Interest) { o.Progressed(configMaps, "200") }, true},
		"an interruption":   {func(o *offline, _ []observe.Interest) { o.Interrupted(configMaps) }, true},
		"the same again":    {func(o *offline, _ []observe.Interest) { o.Shown(configMaps, object(configMaps, "a", "uid-a", "110")) }, true},
		"an unknown object": {func(o *offline, _ []observe.Interest) { o.Shown(configMaps, object(configMaps, "z", "uid-z", "110")) }, true},
		"a change":          {func(o *offline, _ []observe.Interest) { o.Shown(configMaps, newer()) }, false},
		"a status":          {func(o *offline, _ []observe.Interest) { o.Shown(deployments, object(deployments, "d", "uid-d", "110")) }, false},
		"a deletion":        {func(o *offline, _ []observe.Interest) { o.Gone(configMaps, object(configMaps, "a", "uid-a", "110")) }, false},
		"a lost label": {func(o *offline, _ []observe.Interest) {
			o.Gone(configMaps, object(configMaps, "a", "uid-a", "110", unlabelled))
		}, false},
		"what was purged": {func(o *offline, _ []observe.Interest) {
			o.Shown(configMaps, object(configMaps, "gone", "uid-g", "110"))
		}, false},
		"a list without it":   {func(o *offline, _ []observe.Interest) { o.Listed(configMaps, "200") }, false},
		"a type that is lost": {func(o *offline, _ []observe.Interest) { o.Lost(configMaps) }, false},
		"a type that fails": {func(o *offline, _ []observe.Interest) {
			for range 10 {
				o.Failed(configMaps, apierrors.NewForbidden(schema.GroupResource{}, "", nil))
			}
		}, false},
		"a write": {func(o *offline, is []observe.Interest) { o.Wrote(o.component, is[0], newer()) }, false},
		"a write that is shown": {func(o *offline, is []observe.Interest) {
			o.Wrote(o.component, is[0], newer())
			o.Shown(configMaps, newer())
		}, true},
		"a write that is older": {func(o *offline, is []observe.Interest) {
			o.Shown(configMaps, newer())
			o.Wrote(o.component, is[0], newer())
		}, true},
		"an own deletion": {func(o *offline, is []observe.Interest) { o.Deleted(o.component, is[0].Key, "uid-a", false) }, false},
		"an own deletion that is through": {func(o *offline, is []observe.Interest) {
			o.Deleted(o.component, is[0].Key, "uid-a", true)
			o.Gone(configMaps, object(configMaps, "a", "uid-a", "110"))
		}, true},
		"an end of interest": {func(o *offline, _ []observe.Interest) { o.Release(o.component) }, false},
		"another resource":   {func(o *offline, _ []observe.Interest) { o.component.UID = types.UID("uid-2") }, false},
		"a stop":             {func(o *offline, _ []observe.Interest) { o.Stop() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, interests := settled(t)
			if !o.Unchanged(o.component) {
				t.Fatal("the observation is not settled at the beginning, want that it is")
			}
			before := o.observe(nil, interests...)
			test.happens(o, interests)
			for range 2 {
				if got := o.Unchanged(o.component); got != test.want {
					t.Errorf("got %v, want %v", got, test.want)
				}
			}
			if name == "nothing" || name == "time" || name == "an interruption" || name == "the same again" {
				after := o.observe(nil, interests...)
				for _, in := range interests {
					was, is := before.Objects[in.Key], after.Objects[in.Key]
					if was.ResourceVersion, is.ResourceVersion = "", ""; was != is {
						t.Errorf("%s was %v and is %v, want it unchanged", in.Key, was, is)
					}
				}
			}
		})
	}
}

// Nothing is certain before all has been seen.
func TestUnchangedIsFalseBeforeAllIsSeen(t *testing.T) {
	o := newOffline(t)
	if o.Unchanged(o.component) {
		t.Error("the observation counts as unchanged before the first one, want that it does not")
	}
	in := interest(deployments, "d", recorded("uid-d"), wanting)
	o.observe(nil, in)
	if o.Unchanged(o.component) {
		t.Error("the observation counts as unchanged before the watch has begun, want that it does not")
	}
	o.live(deployments, "100", object(deployments, "d", "uid-d", "20"))
	if o.Unchanged(o.component) {
		t.Error("the observation counts as unchanged before it returned what the watch shows, want that it does not")
	}
	o.world["d"] = object(deployments, "d", "uid-d", "30")
	o.observe([]string{"get d"}, in)
	if o.Unchanged(o.component) {
		t.Error("the observation counts as unchanged before the watch shows what was read, want that it does not")
	}
	o.Shown(deployments, o.world["d"])
	if !o.Unchanged(o.component) {
		t.Error("the observation does not count as unchanged, want that it does, for it is settled")
	}
	if o.direct.Unchanged(o.component) {
		t.Error("the direct observation counts as unchanged, want that it does not, for it must ask")
	}
}

func TestUnchangedAllocatesNothing(t *testing.T) {
	o, _ := settled(t)
	if n := testing.AllocsPerRun(10, func() { o.Unchanged(o.component) }); n > 0 {
		t.Errorf("there are %v allocations, want none", n)
	}
}

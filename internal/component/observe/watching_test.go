package observe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestNothingIsKnownBeforeTheWatchHasBegun(t *testing.T) {
	o := newOffline(t)
	made, old, written := interest(configMaps, "made", fresh), interest(configMaps, "old"), interest(configMaps, "written", fresh)
	got := o.observe(nil, made, old, written)
	o.presence(got, made, plan.Absent)
	o.presence(got, old, plan.PresenceUnknown)
	if diff := cmp.Diff([]schema.GroupKind{configMaps}, got.Syncing); diff != "" {
		t.Errorf("the types that are being synced differ (-want +got): %s", diff)
	}
	answer := object(configMaps, "written", "1", "10")
	wrote := o.Wrote(o.component, written, answer)
	if wrote.Presence != plan.Present || wrote.UID != "1" || wrote.Ownership != plan.Ours || wrote.Digest != "d1" || wrote.Fields == "" {
		t.Errorf("what was written shows as %+v, want it ours and present, with the UID 1, the digest d1 and fields",
			wrote)
	}
	got = o.observe(nil, made, old, written)
	if diff := cmp.Diff(wrote, got.Objects[written.Key]); diff != "" {
		t.Errorf("the object differs (-written +observed), want the same: %s", diff)
	}
	o.wakes()
	// A list that is older than what was written.
	o.Listed(configMaps, "9", object(configMaps, "old", "2", "5"))
	o.wakes("shop low")
	o.presence(o.observe(nil, made, old, written), old, plan.PresenceUnknown)
	o.Opened(configMaps)
	o.wakes("shop low")
	got = o.observe(nil, made, old, written)
	o.presence(got, made, plan.Absent)
	o.presence(got, old, plan.Present)
	o.presence(got, written, plan.Present)
	if got.Syncing != nil || got.Polled != nil {
		t.Errorf("the observation is %+v, want nothing synced or polled", got)
	}
}

func TestWrittenIsBelievedUntilTheWatchHasCaughtUp(t *testing.T) {
	in := interest(configMaps, "a", fresh)
	wrote := object(configMaps, "a", "1", "10")
	for name, test := range map[string]struct {
		then func(o *offline)
		want plan.Presence
		uid  types.UID
		wake []string
	}{
		"nothing":          {func(*offline) {}, plan.Present, "1", nil},
		"nothing for long": {func(o *offline) { o.after(11 * time.Minute) }, plan.Absent, "", nil},
		"not far enough":   {func(o *offline) { o.Progressed(configMaps, "9") }, plan.Present, "1", nil},
		"not shown":        {func(o *offline) { o.Progressed(configMaps, "10") }, plan.Absent, "", nil},
		"its own event":    {func(o *offline) { o.Shown(configMaps, wrote) }, plan.Present, "1", nil},
		"an older one":     {func(o *offline) { o.Shown(configMaps, object(configMaps, "a", "0", "8")) }, plan.Present, "1", nil},
		"an older one for long": {func(o *offline) {
			o.Shown(configMaps, object(configMaps, "a", "0", "8"))
			o.after(11 * time.Minute)
		}, plan.Present, "0", nil},
		"an older one gone": {func(o *offline) { o.Gone(configMaps, object(configMaps, "a", "0", "9")) }, plan.Present, "1", nil},
		"gone since":        {func(o *offline) { o.Shown(configMaps, wrote); o.Gone(configMaps, object(configMaps, "a", "1", "11")) }, plan.Absent, "", []string{"shop"}},
		"another since":     {func(o *offline) { o.Shown(configMaps, object(configMaps, "a", "2", "11")) }, plan.Present, "2", []string{"shop"}},
		"listed without it": {func(o *offline) { o.Listed(configMaps, "11") }, plan.Absent, "", []string{"shop"}},
		"listed with it":    {func(o *offline) { o.Listed(configMaps, "11", wrote) }, plan.Present, "1", nil},
		"listed too early":  {func(o *offline) { o.Listed(configMaps, "9") }, plan.Present, "1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffline(t)
			o.observe(nil, in)
			o.live(configMaps, "5")
			o.presence(o.observe(nil, in), in, plan.Absent)
			o.Wrote(o.component, in, wrote)
			test.then(o)
			o.wakes(test.wake...)
			if got := o.presence(o.observe(nil, in), in, test.want); got.UID != test.uid {
				t.Errorf("got UID %q, want %q", got.UID, test.uid)
			}
		})
	}
}

func TestDeletedIsBelieved(t *testing.T) {
	in := interest(configMaps, "a", recorded("1"))
	shown := object(configMaps, "a", "1", "10")
	for name, test := range map[string]struct {
		gone        bool
		then        func(o *offline)
		want        plan.Presence
		terminating bool
		wake, reads []string
	}{
		"gone":                {true, func(*offline) {}, plan.Absent, false, nil, nil},
		"gone, stale event":   {true, func(o *offline) { o.Shown(configMaps, object(configMaps, "a", "1", "11")) }, plan.Absent, false, nil, nil},
		"gone, its event":     {true, func(o *offline) { o.Gone(configMaps, object(configMaps, "a", "1", "12")) }, plan.Absent, false, nil, nil},
		"gone, listed":        {true, func(o *offline) { o.Listed(configMaps, "12") }, plan.Absent, false, nil, nil},
		"gone, another":       {true, func(o *offline) { o.Shown(configMaps, object(configMaps, "a", "2", "12")) }, plan.Present, false, []string{"shop"}, nil},
		"gone, for long":      {true, func(o *offline) { o.after(11 * time.Minute) }, plan.Present, false, nil, nil},
		"lingering":           {false, func(*offline) {}, plan.Present, true, nil, nil},
		"lingering, event":    {false, func(o *offline) { o.Shown(configMaps, object(configMaps, "a", "1", "11", terminating)) }, plan.Present, true, []string{"shop"}, nil},
		"lingering, gone":     {false, func(o *offline) { o.Gone(configMaps, object(configMaps, "a", "1", "12")) }, plan.Absent, false, []string{"shop"}, nil},
		"lingering, listed":   {false, func(o *offline) { o.Listed(configMaps, "12") }, plan.Absent, false, []string{"shop"}, nil},
		"lingering, another":  {false, func(o *offline) { o.Shown(configMaps, object(configMaps, "a", "2", "12")) }, plan.Present, false, []string{"shop"}, nil},
		"lingering, for long": {false, func(o *offline) { o.after(11 * time.Minute) }, plan.Present, false, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffline(t)
			o.observe(nil, in)
			o.live(configMaps, "10", shown)
			o.presence(o.observe(nil, in), in, plan.Present)
			o.Deleted(o.component, in.Key, "1", test.gone)
			test.then(o)
			o.wakes(test.wake...)
			got := o.presence(o.observe(test.reads, in), in, test.want)
			if got.Terminating != test.terminating {
				t.Errorf("got terminating %v, want %v", got.Terminating, test.terminating)
			}
		})
	}
}

func TestTheWatchMayBeFasterThanTheAnswerToADelete(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a", recorded("1"))
	o.observe(nil, in)
	o.live(configMaps, "10", object(configMaps, "a", "1", "10"))
	o.observe(nil, in)
	o.Gone(configMaps, object(configMaps, "a", "1", "11"))
	o.Deleted(o.component, in.Key, "1", false)
	o.presence(o.observe(nil, in), in, plan.Absent)
}

func TestCreatedAnewAfterDelete(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a")
	o.observe(nil, in)
	o.live(configMaps, "10", object(configMaps, "a", "1", "10"))
	o.Deleted(o.component, in.Key, "1", true)
	o.Wrote(o.component, in, object(configMaps, "a", "2", "12"))
	if got := o.presence(o.observe(nil, in), in, plan.Present); got.UID != "2" {
		t.Errorf("the UID is %s, want 2", got.UID)
	}
	o.Gone(configMaps, object(configMaps, "a", "1", "11"))
	o.Shown(configMaps, object(configMaps, "a", "2", "12"))
	o.wakes()
	if got := o.presence(o.observe(nil, in), in, plan.Present); got.UID != "2" {
		t.Errorf("the UID is %s, want 2", got.UID)
	}
}

func TestWhatTheWatchCannotShowIsBelievedForAWhile(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a", fresh)
	o.observe(nil, in)
	o.live(configMaps, "20")
	o.Wrote(o.component, in, object(configMaps, "a", "1", "10", unlabelled))
	if got := o.presence(o.observe(nil, in), in, plan.Present); got.Ownership != plan.Unlabelled || got.Claim != "was written by us" {
		t.Errorf("the object shows %+v, want the claim that it was written by us", got)
	}
	o.after(10 * time.Second)
	o.presence(o.observe(nil, in), in, plan.Present)
	o.after(time.Second)
	o.presence(o.observe(nil, in), in, plan.Absent)
}

func TestALostLabelIsNotAbsence(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a", recorded("1"))
	o.world["a"] = object(configMaps, "a", "1", "12", unlabelled)
	o.observe(nil, in)
	o.live(configMaps, "10", object(configMaps, "a", "1", "10"))
	o.observe(nil, in)
	o.Gone(configMaps, object(configMaps, "a", "1", "12"))
	o.wakes("shop")
	if got := o.presence(o.observe([]string{"get a"}, in), in, plan.Present); got.Ownership != plan.Unlabelled || got.UID != "1" {
		t.Errorf("the object shows %+v, want the UID 1 and no owner", got)
	}
	o.observe(nil, in)
	o.after(11 * time.Second)
	delete(o.world, "a")
	o.presence(o.observe([]string{"get a"}, in), in, plan.Absent)
	o.after(time.Hour)
	o.presence(o.observe(nil, in), in, plan.Absent)
	o.Shown(configMaps, object(configMaps, "a", "2", "13"))
	o.presence(o.observe(nil, in), in, plan.Present)
}

func TestReadinessIsReadOnceForAVersion(t *testing.T) {
	o := newOffline(t)
	in := interest(deployments, "a", wanting)
	o.world["a"] = object(deployments, "a", "1", "10")
	o.observe(nil, in)
	o.live(deployments, "10", o.world["a"])
	check := func(reads []string, status apis.ObjectStatus) {
		t.Helper()
		if got := o.presence(o.observe(reads, in), in, plan.Present); got.Status != status {
			t.Errorf("got %q (%s), want %q", got.Status, got.Message, status)
		}
	}
	check([]string{"get a"}, apis.ObjectInProgress)
	check(nil, apis.ObjectInProgress)
	// What is read is newer than what is shown, and counts for all that is shown up to there.
	o.world["a"] = object(deployments, "a", "1", "13", ready)
	o.Shown(deployments, object(deployments, "a", "1", "11"))
	o.wakes("shop")
	check([]string{"get a"}, apis.ObjectCurrent)
	o.Shown(deployments, object(deployments, "a", "1", "12"))
	o.Shown(deployments, object(deployments, "a", "1", "13"))
	o.wakes()
	check(nil, apis.ObjectCurrent)
	// The answer to a write is as good.
	o.Wrote(o.component, in, object(deployments, "a", "1", "14"))
	check(nil, apis.ObjectInProgress)
	// What makes it ready has changed.
	o.world["a"] = object(deployments, "a", "1", "14", ready)
	in.Settings.ReadyWhen = "true"
	check([]string{"get a"}, apis.ObjectCurrent)
	in.Settings.StatusHint.Conditions = []string{"X"}
	check([]string{"get a"}, apis.ObjectCurrent)
	check(nil, apis.ObjectCurrent)
	// Terminating objects are not read.
	o.Shown(deployments, object(deployments, "a", "1", "15", terminating))
	check(nil, apis.ObjectTerminating)
	o.wakes("shop")
	o.Shown(deployments, object(deployments, "a", "1", "16", terminating))
	o.wakes()
	// It does not matter how ready it is.
	in.Readiness = false
	check(nil, "")
}

func TestReadinessOfManyIsListed(t *testing.T) {
	o := newOffline(t)
	var interests []observe.Interest
	var all []any
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		interests = append(interests, interest(deployments, name, wanting))
		o.world[name] = object(deployments, name, types.UID(name), "10", ready)
		all = append(all, o.world[name])
	}
	o.observe(nil, interests...)
	o.live(deployments, "10", all...)
	// Lost its label a moment ago.
	unlabelled(o.world["c"])
	got := o.observe([]string{"get c", "list default " + prefix + "/owner-id=" + ourID + " 500"}, interests...)
	for _, in := range interests {
		if s := got.Objects[in.Key].Status; s != apis.ObjectCurrent {
			t.Errorf("%s is %q, want %q", in.Key, s, apis.ObjectCurrent)
		}
	}
	o.observe(nil, interests...)
	// Where it may not be listed it is read one by one, and not tried again.
	o.fault = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for i := range interests {
		interests[i].Settings.ReadyWhen = "x"
	}
	got = o.observe(append([]string{"get a", "get b", "get c", "get d", "get e", "get f", "get g", "get h", "get i"},
		"list default "+prefix+"/owner-id="+ourID+" 500"), interests...)
	if got.Polled[deployments] != "may not be read: forbidden" {
		t.Errorf("the polled types are %v, want Deployments, which may not be read", got.Polled)
	}
	o.after(time.Minute)
	o.fault = nil
	o.observe([]string{"get a", "get b", "get c", "get d", "get e", "get f", "get g", "get h", "get i"}, interests...)
}

func TestReadinessThatCannotBeRead(t *testing.T) {
	o := newOffline(t)
	a, b := interest(deployments, "a", wanting), interest(deployments, "b", wanting)
	o.observe(nil, a, b)
	o.live(deployments, "10", object(deployments, "a", "1", "10"), object(deployments, "b", "2", "10"))
	o.fault = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for _, reads := range [][]string{{"get a", "get b"}, nil} {
		got := o.observe(reads, a, b)
		if s := o.presence(got, a, plan.Present); s.Status != apis.ObjectUnknown || s.Message != "may not be read: forbidden" {
			t.Errorf("the status is %q: %s, want %q and that it may not be read", s.Status, s.Message,
				apis.ObjectUnknown)
		}
		if got.Polled[deployments] != "may not be read: forbidden" {
			t.Errorf("the polled types are %v, want Deployments, which may not be read", got.Polled)
		}
	}
	o.after(10 * time.Second)
	o.fault, o.world["a"], o.world["b"] = nil, object(deployments, "a", "1", "10", ready), object(deployments, "b", "2", "10", ready)
	got := o.observe([]string{"get a", "get b"}, a, b)
	if s := o.presence(got, a, plan.Present); s.Status != apis.ObjectCurrent || got.Polled != nil {
		t.Errorf("the status is %q and the polled types are %v, want %q and none", s.Status, got.Polled,
			apis.ObjectCurrent)
	}
}

func TestEventsWake(t *testing.T) {
	for name, test := range map[string]struct {
		readiness bool
		change    func(u *unstructured.Unstructured)
		want      []string
	}{
		"nothing":            {false, func(*unstructured.Unstructured) {}, nil},
		"nothing we look at": {false, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"x/y"}) }, nil},
		"others' fields": {false, func(u *unstructured.Unstructured) {
			u.SetManagedFields(append(u.GetManagedFields(), managed("x", "Update", "", `{}`)))
		}, nil},
		"our status": {false, func(u *unstructured.Unstructured) {
			u.SetManagedFields(append(u.GetManagedFields(), managed(manager, "Update", "status", `{}`)))
		}, nil},
		"status that matters": {true, func(*unstructured.Unstructured) {}, []string{"shop"}},
		"generation":          {false, func(u *unstructured.Unstructured) { u.SetGeneration(2) }, []string{"shop"}},
		"label":               {false, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{prefix + "/owner-id": "x"}) }, []string{"shop"}},
		"owner":               {false, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{prefix + "/digest": "d1"}) }, []string{"shop"}},
		"digest": {false, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{prefix + "/owner-id": ourOwner})
		}, []string{"shop"}},
		"our fields": {false, func(u *unstructured.Unstructured) {
			u.SetManagedFields([]metav1.ManagedFieldsEntry{managed(manager, "Apply", "", `{}`)})
		}, []string{"shop"}},
		"our kind of write": {false, func(u *unstructured.Unstructured) {
			u.SetManagedFields([]metav1.ManagedFieldsEntry{managed(manager, "Update", "", `{"f:data":{"f:a":{}}}`)})
		}, []string{"shop"}},
		"no fields":            {false, func(u *unstructured.Unstructured) { u.SetManagedFields(nil) }, []string{"shop"}},
		"deletion":             {false, terminating, []string{"shop"}},
		"another of that name": {false, func(u *unstructured.Unstructured) { u.SetUID("2") }, []string{"shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffline(t)
			in := interest(deployments, "a", func(in *observe.Interest) { in.Readiness = test.readiness })
			o.world["a"] = object(deployments, "a", "1", "10")
			o.observe(nil, in)
			o.live(deployments, "10", o.world["a"], object(deployments, "b", "3", "9"))
			var reads []string
			if test.readiness {
				reads = []string{"get a"}
			}
			o.observe(reads, in)
			o.Shown(deployments, object(deployments, "b", "3", "11", terminating))
			o.wakes()
			o.Shown(deployments, object(deployments, "a", "1", "12", test.change))
			o.wakes(test.want...)
		})
	}
}

func TestForeignObjectsWakeTheComponentThatWaits(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a")
	foreign := func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{prefix + "/owner-id": "other"})
		u.SetAnnotations(map[string]string{prefix + "/owner-id": "Shop.example.com/default/other/uid-9"})
	}
	o.observe(nil, in)
	o.live(configMaps, "10", object(configMaps, "a", "1", "10", foreign))
	got := o.presence(o.observe(nil, in), in, plan.Present)
	if got.Ownership != plan.Foreign || got.Claim != "belongs to Shop.example.com default/other" {
		t.Errorf("the object shows %+v, want a foreign one that belongs to Shop.example.com default/other", got)
	}
	o.Gone(configMaps, object(configMaps, "a", "1", "11", foreign))
	o.wakes("shop")
}

func TestPause(t *testing.T) {
	in := interest(configMaps, "a", fresh)
	wrote := object(configMaps, "a", "1", "10")
	for name, test := range map[string]struct {
		during func(o *offline)
		want   []string
	}{
		"nothing":                 {func(*offline) {}, nil},
		"event before the answer": {func(o *offline) { o.Shown(configMaps, wrote); o.Wrote(o.component, in, wrote) }, nil},
		"event after the answer":  {func(o *offline) { o.Wrote(o.component, in, wrote); o.Shown(configMaps, wrote) }, nil},
		"observed":                {func(o *offline) { o.Shown(configMaps, wrote); o.observe(nil, in) }, nil},
		"another change":          {func(o *offline) { o.Shown(configMaps, wrote) }, []string{"shop"}},
		"a change before the write": {func(o *offline) {
			o.Shown(configMaps, object(configMaps, "a", "1", "9"))
			o.Wrote(o.component, in, wrote)
		}, nil},
		"a change after the write": {func(o *offline) {
			o.Shown(configMaps, wrote)
			o.Shown(configMaps, object(configMaps, "a", "1", "11", terminating))
			o.Wrote(o.component, in, wrote)
		}, []string{"shop"}},
		"deleted": {func(o *offline) {
			o.Wrote(o.component, in, wrote)
			o.Shown(configMaps, wrote)
			o.Gone(configMaps, object(configMaps, "a", "1", "11"))
			o.Deleted(o.component, in.Key, "1", true)
		}, nil},
		"going and gone": {func(o *offline) {
			o.Wrote(o.component, in, wrote)
			o.Shown(configMaps, wrote)
			o.Gone(configMaps, object(configMaps, "a", "1", "11"))
			o.Deleted(o.component, in.Key, "1", false)
		}, []string{"shop"}},
		"the type begins to be polled": {func(o *offline) {
			for range 4 {
				o.Failed(configMaps, apierrors.NewServiceUnavailable(""))
			}
		}, []string{"shop low"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffline(t)
			o.observe(nil, in)
			o.live(configMaps, "5")
			o.observe(nil, in)
			outer, inner := o.Pause(o.component), o.Pause(o.component)
			test.during(o)
			inner()
			inner()
			o.wakes()
			outer()
			o.wakes(test.want...)
		})
	}
}

func TestPolledTypes(t *testing.T) {
	o := newOffline(t)
	old, made := interest(configMaps, "old", recorded("1")), interest(configMaps, "made", fresh)
	o.world["old"] = object(configMaps, "old", "1", "10")
	o.observe(nil, old, made)
	o.Failed(configMaps, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")))
	o.wakes("shop low")
	got := o.observe([]string{"get old"}, old, made)
	o.presence(got, old, plan.Present)
	o.presence(got, made, plan.Absent)
	if got.Polled[configMaps] != "may not be listed in the whole cluster: forbidden" || got.Syncing != nil {
		t.Errorf("the types %v are polled and %v synced, want ConfigMaps, which may not be listed, and none",
			got.Polled, got.Syncing)
	}
	o.after(29 * time.Second)
	o.observe(nil, old, made)
	o.Wrote(o.component, made, object(configMaps, "made", "2", "11"))
	o.world["made"] = object(configMaps, "made", "2", "11")
	o.after(time.Second)
	got = o.observe([]string{"get old"}, old, made)
	o.presence(got, made, plan.Present)
	// What cannot be read stays as it was.
	o.after(time.Minute)
	o.fault = errors.New("no connection")
	got, err := o.Observe(t.Context(), o.component, []observe.Interest{old, made})
	if err != nil {
		t.Fatal(err)
	}
	o.presence(got, old, plan.Present)
	o.presence(got, made, plan.Present)
	o.observe(nil, old, made)
	o.fault = nil
	o.after(10 * time.Second)
	delete(o.world, "old")
	got = o.observe([]string{"get made", "get old"}, old, made)
	o.presence(got, old, plan.Absent)
	// Deleted objects are looked for at once.
	delete(o.world, "made")
	o.Deleted(o.component, made.Key, "2", false)
	got = o.observe([]string{"get made"}, old, made)
	o.presence(got, made, plan.Absent)
	// The watch takes over.
	o.Listed(configMaps, "20", object(configMaps, "old", "3", "19"))
	o.Opened(configMaps)
	o.wakes("shop low", "shop low")
	got = o.observe(nil, old, made)
	if s := o.presence(got, old, plan.Present); s.UID != "3" || got.Polled != nil {
		t.Errorf("the object shows %+v and the polled types are %v, want the UID 3 and none", s, got.Polled)
	}
	o.presence(got, made, plan.Absent)
}

func TestAWatchThatFailsForAWhileIsBelieved(t *testing.T) {
	unavailable, unreachable := apierrors.NewServiceUnavailable(""), errors.New("connection refused")
	for name, test := range map[string]struct {
		live   bool
		errors []error
		want   string
	}{
		"live, not for long":           {true, []error{unavailable, unavailable, unavailable}, ""},
		"live, for long":               {true, []error{unavailable, unavailable, unavailable, unavailable}, "cannot be watched: the API is unavailable"},
		"live, no answer":              {true, []error{unreachable, unreachable, unreachable, unreachable, unreachable}, ""},
		"starting":                     {false, []error{unavailable}, "cannot be watched: the API is unavailable"},
		"starting, no answer":          {false, []error{unreachable, unreachable, unreachable}, ""},
		"starting, no answer for long": {false, []error{unreachable, unreachable, unreachable, unreachable}, "cannot be watched: the API server cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffline(t)
			in := interest(configMaps, "a")
			o.observe(nil, in)
			if test.live {
				o.live(configMaps, "10", object(configMaps, "a", "1", "10"))
			}
			for _, err := range test.errors {
				o.Failed(configMaps, err)
			}
			o.fault = errors.New("connection refused")
			var reads []string
			if test.want != "" {
				reads = []string{"get a"}
			}
			got := o.observe(reads, in)
			want := plan.PresenceUnknown
			if test.live {
				want = plan.Present
			}
			o.presence(got, in, want)
			if reason := got.Polled[configMaps]; reason != test.want {
				t.Errorf("polled: %q, want %q", reason, test.want)
			}
		})
	}
}

func TestTypesThatAreNotServed(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a", recorded("1"))
	o.observe(nil, in)
	o.live(configMaps, "10", object(configMaps, "a", "1", "10"))
	o.Lost(configMaps)
	o.Lost(configMaps)
	o.wakes("shop")
	o.after(-time.Hour)
	got := o.presence(o.observe(nil, in), in, plan.Absent)
	if !got.TypeMissing {
		t.Errorf("the object shows %+v, want its type missing", got)
	}
}

func TestInterestEnds(t *testing.T) {
	o := newOffline(t)
	a, b := interest(configMaps, "a"), interest(deployments, "b")
	other := o.component
	other.Watcher.Name, other.UID = "other", "uid-2"
	o.observe(nil, a, b)
	o.live(configMaps, "10", object(configMaps, "a", "1", "10"))
	if _, err := o.Observe(t.Context(), other, []observe.Interest{a}); err != nil {
		t.Fatal(err)
	}
	if o.Types() != 2 || o.Components() != 2 {
		t.Errorf("there are %d types and %d components, want 2 and 2", o.Types(), o.Components())
	}
	if types, objects, running := o.Size(); types != 2 || objects != 2 || !running {
		t.Errorf("%d types with %d objects are watched, running is %v, want 2, 2 and true", types, objects, running)
	}
	o.Shown(configMaps, object(configMaps, "a", "1", "11", terminating))
	o.wakes("shop", "other")
	o.observe(nil, a)
	if o.Types() != 1 {
		t.Errorf("%d types, want 1", o.Types())
	}
	o.Release(o.component)
	if o.Types() != 1 || o.Components() != 1 {
		t.Errorf("there are %d types and %d components, want 1 and 1", o.Types(), o.Components())
	}
	o.Gone(configMaps, object(configMaps, "a", "1", "12"))
	o.wakes("other")
	// Another component of that name knows nothing of what the first one wrote.
	o.Wrote(other, a, object(configMaps, "a", "2", "13"))
	other.UID = "uid-3"
	got, err := o.Observe(t.Context(), other, []observe.Interest{a})
	if err != nil {
		t.Fatal(err)
	}
	o.presence(got, a, plan.PresenceUnknown)
	o.Release(observe.Component{Watcher: other.Watcher, UID: "uid-2"})
	if o.Components() != 1 {
		t.Errorf("there are %d components, want 1: one of another UID was released", o.Components())
	}
	o.Release(observe.Component{Watcher: other.Watcher})
	if o.Types() != 0 || o.Components() != 0 {
		t.Errorf("there are %d types and %d components, want none", o.Types(), o.Components())
	}
	// Nothing is known of it, and nothing comes of it.
	o.Deleted(other, a.Key, "1", true)
	if o.Managed(other, a.Key) != nil {
		t.Errorf("the managed fields for a component that was released are %v, want none", o.Managed(other, a.Key))
	}
}

func TestInterestsInAnyOrder(t *testing.T) {
	o := newOffline(t)
	name := func(names ...string) []observe.Interest {
		var list []observe.Interest
		for _, n := range names {
			list = append(list, interest(configMaps, n, fresh))
		}
		return list
	}
	o.observe(nil, name("a", "b", "c", "d")...)
	o.live(configMaps, "10", object(configMaps, "a", "1", "1"), object(configMaps, "b", "2", "2"),
		object(configMaps, "c", "3", "3"), object(configMaps, "e", "5", "5"))
	for _, names := range [][]string{
		{"a", "b", "c", "d"}, {"d", "c", "b", "a"}, {"a", "c"}, {"c", "a", "e"}, {"e", "e", "a"}, {}, {"b", "a", "c", "d", "e"}, {"a", "c", "d", "e"},
	} {
		got := o.observe(nil, name(names...)...)
		want := map[string]bool{}
		for _, n := range names {
			want[n] = true
		}
		if len(got.Objects) != len(want) {
			t.Errorf("%v: there are %d objects, want %d", names, len(got.Objects), len(want))
		}
		for n := range want {
			key := interest(configMaps, n).Key
			uid := map[string]types.UID{"a": "1", "b": "2", "c": "3", "e": "5"}[n]
			if len(names) > 0 && o.Types() == 1 && len(got.Syncing) == 0 && got.Objects[key].UID != uid {
				t.Errorf("%v: %s has the UID %q, want %q", names, n, got.Objects[key].UID, uid)
			}
		}
		if len(names) == 0 {
			if o.Types() != 0 {
				t.Errorf("%d types are watched, want none, for no component is interested", o.Types())
			}
			o.observe(nil, name("a")...)
			o.live(configMaps, "10", object(configMaps, "a", "1", "1"), object(configMaps, "b", "2", "2"),
				object(configMaps, "c", "3", "3"), object(configMaps, "e", "5", "5"))
		}
	}
}

func TestManaged(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a")
	o.observe(nil, in)
	if got := o.Managed(o.component, in.Key); got != nil {
		t.Errorf("the managed fields are %v, want none", got)
	}
	stamped := managed(manager, "Update", "", `{"f:data":{"f:b":{}}}`)
	stamped.Time = new(metav1.Unix(1700000000, 0))
	o.live(configMaps, "10", object(configMaps, "a", "1", "10", func(u *unstructured.Unstructured) {
		u.SetManagedFields(append(u.GetManagedFields(), stamped, managed("x", "Update", "", `{}`), managed(manager, "Update", "status", `{}`)))
	}))
	want := []metav1.ManagedFieldsEntry{managed(manager, "Apply", "", `{"f:data":{"f:a":{}}}`), stamped}
	if diff := cmp.Diff(want, o.Managed(o.component, in.Key)); diff != "" {
		t.Errorf("the managed fields differ (-want +got): %s", diff)
	}
	o.Wrote(o.component, in, object(configMaps, "a", "1", "11"))
	if diff := cmp.Diff(want[:1], o.Managed(o.component, in.Key)); diff != "" {
		t.Errorf("the managed fields after a write differ (-want +got): %s", diff)
	}
}

func TestIgnoredFieldsAreNoDrift(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a", func(in *observe.Interest) { in.Settings = generator.Settings{IgnoreFields: []string{"/data/b"}} })
	with := func(u *unstructured.Unstructured) {
		u.SetManagedFields([]metav1.ManagedFieldsEntry{managed(manager, "Apply", "", `{"f:data":{"f:a":{},"f:b":{}}}`)})
	}
	o.observe(nil, in)
	o.live(configMaps, "10", object(configMaps, "a", "1", "10", with))
	before := o.observe(nil, in).Objects[in.Key].Fields
	o.Shown(configMaps, object(configMaps, "a", "1", "11"))
	after := o.observe(nil, in).Objects[in.Key].Fields
	if before != after {
		t.Errorf("the fields are %q and then %q, want the same", before, after)
	}
	in.Settings.IgnoreFields = []string{"/data"}
	if got := o.observe(nil, in).Objects[in.Key].Fields; got == after {
		t.Errorf("the fields are %q also with other ignored fields, want different ones", got)
	}
}

func TestErrorsOfObserve(t *testing.T) {
	o := newOffline(t)
	in := interest(deployments, "a", wanting)
	o.observe(nil, in)
	o.live(deployments, "10", object(deployments, "a", "1", "10"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.fault = context.Canceled
	if _, err := o.Observe(ctx, o.component, []observe.Interest{in}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want %v", err, context.Canceled)
	}
	// It is not held against the object.
	o.fault, o.world["a"] = nil, object(deployments, "a", "1", "10", ready)
	if got := o.observe([]string{"get a"}, in).Objects[in.Key]; got.Status != apis.ObjectCurrent {
		t.Errorf("the object shows %+v, want the status %s", got, apis.ObjectCurrent)
	}
	if got := o.Wrote(o.component, in, nil); got != (plan.Observed{}) {
		t.Errorf("no object shows %+v, want nothing", got)
	}
	o.Stop()
	if _, err := o.Observe(t.Context(), o.component, nil); err == nil {
		t.Error("an observer that was stopped observes, want an error")
	}
	if _, err := observe.NewWatching(observe.Options{}); err == nil {
		t.Error("an observer without options was made, want an error")
	}
}

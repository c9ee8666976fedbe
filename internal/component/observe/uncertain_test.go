package observe_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/testing/fake"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// An object that was recorded, but whose creation was never seen to succeed, may exist although the watch does not show
// it: its list may come from a cache that lags behind. It is looked for, once.
func TestWhatMayHaveBeenMadeIsLookedForOnce(t *testing.T) {
	o := newOffline(t)
	made, lost, none := interest(configMaps, "made", fresh), interest(configMaps, "lost"), interest(configMaps, "none")
	o.world["lost"] = object(configMaps, "lost", "1", "12")
	o.presence(o.observe(nil, made, lost, none), lost, plan.PresenceUnknown)
	o.live(configMaps, "10")
	got := o.observe([]string{"get lost", "get none"}, made, lost, none)
	o.presence(got, made, plan.Absent)
	o.presence(got, none, plan.Absent)
	if got := o.presence(got, lost, plan.Present); got.UID != "1" {
		t.Errorf("the object shows %+v, want the UID 1", got)
	}
	o.after(time.Hour)
	o.Progressed(configMaps, "11")
	o.Shown(configMaps, o.world["lost"])
	got = o.observe(nil, made, lost, none)
	o.presence(got, none, plan.Absent)
	o.presence(got, lost, plan.Present)
}

// Another process may create an object while it is looked for. The watch may then show it before the answer arrives,
// which says that there was none.
func TestAnAnswerIsOlderThanWhatTheWatchShowsMeanwhile(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a")
	o.presence(o.observe(nil, in), in, plan.PresenceUnknown)
	o.live(configMaps, "10")
	o.refuse = func(string) error {
		o.Shown(configMaps, object(configMaps, "a", "1", "11"))
		return nil
	}
	if got := o.presence(o.observe([]string{"get a"}, in), in, plan.Present); got.UID != "1" {
		t.Errorf("the object shows %+v, want the UID 1", got)
	}
}

// What cannot be looked at is not known to be absent.
func TestWhatCannotBeLookedAtIsNotAbsent(t *testing.T) {
	for name, in := range map[string]observe.Interest{
		"never seen": interest(configMaps, "a"),
		"recorded":   interest(configMaps, "a", recorded("1")),
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffline(t)
			o.fault = errors.New("no answer")
			o.observe(nil, in)
			o.live(configMaps, "10")
			o.presence(o.observe([]string{"get a"}, in), in, plan.PresenceUnknown)
			o.presence(o.observe(nil, in), in, plan.PresenceUnknown)
			// Nor is it once the type is polled.
			o.Failed(configMaps, apierrors.NewForbidden(schema.GroupResource{}, "", nil))
			for range 4 {
				o.Failed(configMaps, apierrors.NewForbidden(schema.GroupResource{}, "", nil))
			}
			o.after(time.Minute)
			got := o.observe([]string{"get a"}, in)
			o.presence(got, in, plan.PresenceUnknown)
			if got.Polled[configMaps] == "" {
				t.Error("the type is not polled, want it polled, or this test shows nothing")
			}
		})
	}
}

// While the watch of a type is interrupted, what it showed may be old. Nothing is then known of the managed fields, so
// that an object is looked at before anything is done to it.
func TestAnInterruptedWatchIsNotUpToDate(t *testing.T) {
	o := newOffline(t)
	in := interest(configMaps, "a", recorded("1"))
	there := object(configMaps, "a", "1", "10")
	known := func() bool { return len(o.Managed(o.component, in.Key)) > 0 }
	o.observe(nil, in)
	o.live(configMaps, "10", there)
	o.observe(nil, in)
	if !known() {
		t.Error("nothing is known while the watch is open, want the object known")
	}
	o.Interrupted(configMaps)
	o.presence(o.observe(nil, in), in, plan.Present)
	if known() {
		t.Error("something is known while the watch is interrupted, want nothing")
	}
	o.Wrote(o.component, in, object(configMaps, "a", "1", "11"))
	if !known() {
		t.Error("nothing is known of what was just written, want it known")
	}
	o.after(time.Second)
	if known() {
		t.Error("what was written is still known after a second, want nothing")
	}
	o.Opened(configMaps)
	if !known() {
		t.Error("nothing is known when the watch is open again, want the object known")
	}
}

// Two Observes of one component wait for each other, so that none returns the objects of the other.
func TestObservesOfOneComponentWaitForEachOther(t *testing.T) {
	o := newOffline(t)
	a, b := interest(configMaps, "a", recorded("1")), interest(configMaps, "b", recorded("2"))
	o.observe(nil, a)
	o.live(configMaps, "10", object(configMaps, "a", "1", "10"), object(configMaps, "b", "2", "9"))
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			got, err := o.Observe(context.Background(), o.component, []observe.Interest{b})
			if err != nil || len(got.Objects) != 1 || got.Objects[b.Key].UID != "2" {
				t.Errorf("the observation is %+v and the error %v, want b alone with the UID 2 and none", got, err)
				return
			}
		}
	}()
	for range 500 {
		got, err := o.Observe(t.Context(), o.component, []observe.Interest{a, b})
		if err != nil || got.Objects[a.Key].UID != "1" || got.Objects[b.Key].UID != "2" {
			t.Errorf("the observation is %+v and the error %v, want a with the UID 1, b with 2 and none", got, err)
			break
		}
	}
	close(stop)
	<-done
	// One that waits can be called off.
	c := interest(configMaps, "c")
	reading, read, proceed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	o.refuse = func(string) error {
		close(reading)
		<-proceed
		return errors.New("no answer")
	}
	go func() {
		defer close(read)
		_, _ = o.Observe(context.Background(), o.component, []observe.Interest{c})
	}()
	<-reading
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Nothing has to be read for it, so it fails only because it waits.
	for range 20 {
		if _, err := o.Observe(ctx, o.component, []observe.Interest{a}); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want %v", err, context.Canceled)
		}
	}
	close(proceed)
	<-read
}

// An object is read in the version in which its type is served, also if another version was recorded.
func TestReadingInTheServedVersion(t *testing.T) {
	refusals := map[string]error{
		"unknown to the mapper":     &meta.NoKindMatchError{GroupKind: configMaps, SearchedVersions: []string{"v1alpha1"}},
		"unknown to the API server": apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true),
	}
	old := interest(configMaps, "a", recorded("1"), func(in *observe.Interest) { in.Version = "v1alpha1" })
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			o := newOffline(t)
			o.refuse = func(version string) error {
				if version != "v1" {
					return refusal
				}
				return nil
			}
			o.world["a"] = object(configMaps, "a", "1", "10", unlabelled)
			o.observe(nil, old)
			o.live(configMaps, "11")
			o.presence(o.observe([]string{"get a", "get a"}, old), old, plan.Present)

			got, err := o.direct.Observe(t.Context(), o.component, []observe.Interest{old})
			if err != nil {
				t.Fatal(err)
			}
			o.presence(got, old, plan.Present)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A time-out of the HTTP client ends no watch, while a list has to come to an end.
func TestAWatchHasNoDeadline(t *testing.T) {
	type request struct{ watch, deadline bool }
	requests := make(chan request)
	answer := func(status int, text string) *http.Response {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)),
		}
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(configMaps.WithVersion("v1"), meta.RESTScopeNamespace)
	w, err := observe.NewWatching(observe.Options{
		Config: &rest.Config{Host: "http://127.0.0.1:1"}, Mapper: mapper, Client: fake.NewClientBuilder().Build(),
		Prefix: prefix, FieldManager: manager,
		HTTPClient: &http.Client{Timeout: time.Hour, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			_, deadline := r.Context().Deadline()
			query := r.URL.Query()
			select {
			case requests <- request{query.Get("watch") == "true" || query.Get("watch") == "1", deadline}:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			switch {
			case query.Get("sendInitialEvents") != "":
				return answer(http.StatusBadRequest, `{"kind": "Status", "apiVersion": "v1", "code": 400, "reason": "Invalid"}`), nil
			case query.Get("watch") != "":
				return answer(http.StatusOK, ""), nil
			}
			return answer(http.StatusOK, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "5"}}`), nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	c := observe.Component{Watcher: types.NamespacedName{Namespace: "default", Name: "shop"}, UID: "uid-1", OwnerID: ourID, Owner: ourOwner, Now: epoch}
	if _, err := w.Observe(t.Context(), c, []observe.Interest{interest(configMaps, "a", fresh)}); err != nil {
		t.Fatal(err)
	}
	lists := 0
	for watches := 0; watches < 3 || lists == 0; {
		select {
		case r := <-requests:
			if r.watch == r.deadline {
				t.Errorf("watch is %t and deadline %t, want a deadline only without a watch", r.watch, r.deadline)
			}
			if r.watch {
				watches++
			} else {
				lists++
			}
		case <-t.Context().Done():
			t.Fatal("the watch does not begin, want its request")
		}
	}
}

package testing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"
)

// A row with a Fault passes only if its runs come to rest and the fault happens. So these rows show what replays have.
func TestReplaysHaveWhatTheRowHas(t *testing.T) {
	t.Parallel()
	seen := stash.Key("example.com/seen")
	remote := func(ctx context.Context) client.Client {
		return reconcilers.RetrieveAdditionalConfigs(ctx)["remote"].Client
	}
	prepared, cleaned := 0, 0
	t.Cleanup(func() {
		if prepared != 3 || prepared != cleaned {
			t.Errorf("want Prepare and CleanUp for each run, got %d and %d", prepared, cleaned)
		}
	})
	runNodes(t, cmNodes{
		"stashed values": {
			Resource:           settings.Object(),
			GivenStashedValues: map[stash.Key]any{seen: "it"},
			Fault:              rtesting.DiesAfter("create ConfigMap default/it"),
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return ensures(ctx, cm, stash.RetrieveValue(ctx, seen).(string))
			}),
		},
		"an additional config": {
			Resource:          settings.Object(),
			AdditionalConfigs: map[string]rtesting.ExpectConfig{"remote": {GivenObjects: []client.Object{pod}}},
			Fault:             rtesting.LosesAnswer("create ConfigMap default/one in remote"),
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				if err := remote(ctx).Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}); err != nil {
					return err
				}
				return client.IgnoreAlreadyExists(remote(ctx).Create(ctx, configMap("one")))
			}),
		},
		"what Prepare makes": {
			Resource: settings.Object(),
			Fault:    rtesting.Fails("create ConfigMap default/prepared"),
			Prepare: func(_ *testing.T, ctx context.Context, tc *cmCase) (context.Context, error) {
				prepared++
				tc.GivenObjects = append(tc.GivenObjects, pod)
				return context.WithValue(ctx, preparedKey{}, "prepared"), nil
			},
			CleanUp: func(*testing.T, context.Context, *cmCase) error { cleaned++; return nil },
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				if err := c.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}); err != nil {
					return err
				}
				return ensures(ctx, cm, ctx.Value(preparedKey{}).(string))
			}),
		},
		"what the cache has not seen": {
			Resource:        settings.Object(),
			APIGivenObjects: []client.Object{configMap("one")},
			Fault:           rtesting.DiesBefore("create ConfigMap default/one", 1),
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return client.IgnoreAlreadyExists(ensures(ctx, cm, "one"))
			}),
		},
		"discovery": {
			Resource:          settings.Object(),
			GivenAPIResources: []*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "apps", Kind: "App"}}}},
			Fault:             rtesting.DiesAfter("create ConfigMap default/apps"),
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				resources, err := reconcilers.RetrieveConfigOrDie(ctx).Discovery.ServerResourcesForGroupVersion("example.com/v1")
				if err != nil {
					return err
				}
				return ensures(ctx, cm, resources.APIResources[0].Name)
			}),
		},
		"the time that passes": {
			Resource: settings.Object(),
			Now:      time.Unix(1000, 0),
			Fault:    rtesting.DiesAfter("create ConfigMap default/late"),
			Metadata: map[string]any{"node": waits(time.Hour)},
		},
		"two faults": {
			Resource: settings.Object(),
			Fault: rtesting.DiesAfter("create ConfigMap default/one").And(
				rtesting.Fails("get ConfigMap default/one", 2)),
			Metadata: makes("one", "two"),
		},
	})
}

// waits is a node that creates a child once a time has passed since 1000 seconds after the epoch.
func waits(until time.Duration) node[*corev1.ConfigMap] {
	return node[*corev1.ConfigMap]{reconcile: func(ctx context.Context, cm *corev1.ConfigMap) (reconcilers.Result, error) {
		if left := time.Unix(1000, 0).Add(until).Sub(rtime.RetrieveNow(ctx)); left > 0 {
			return reconcilers.Result{RequeueAfter: left}, nil
		}
		return reconcilers.Result{}, ensures(ctx, cm, "late")
	}}
}

// bank is an external service that charges once for each key.
type bank map[string]int

func (b bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, err := io.ReadAll(r.Body)
	if err != nil || r.RequestURI != "/charge?of=me" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b[string(key)]++
	_, _ = io.WriteString(w, "charged "+string(key))
}

func (b bank) external() rtesting.External {
	return rtesting.External{Reset: func() { clear(b) }, End: func() any { return len(b) }}
}

func TestExternals(t *testing.T) {
	t.Parallel()
	charged := bank{"before": 1}
	web := rtesting.HTTP(charged)
	post := func(ctx context.Context, _ *corev1.ConfigMap) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://bank.example.com/charge?of=me", strings.NewReader("me"))
		if err != nil {
			return err
		}
		response, err := web.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if string(text) != "charged me" || charged["before"] > 0 {
			return errors.Join(err, fmt.Errorf("got %q and %v", text, charged))
		}
		return err
	}
	called := bank{}
	call := func(ctx context.Context, _ *corev1.ConfigMap) error {
		return rtesting.Call(ctx, "charge me", func() error { called["me"]++; return nil })
	}
	runNodes(t, cmNodes{
		"a request": {
			Resource:  settings.Object(),
			Metadata:  does(post),
			Externals: []rtesting.External{charged.external()},
		},
		"a fault at a request": {
			Resource:  settings.Object(),
			Metadata:  does(post),
			Externals: []rtesting.External{charged.external()},
			Fault:     rtesting.LosesAnswer("POST bank.example.com/charge"),
		},
		"a fault at a call": {
			Resource:  settings.Object(),
			Metadata:  does(call),
			Externals: []rtesting.External{called.external()},
			Fault:     rtesting.DiesAfter("charge me"),
		},
	})
	called["me"] = 0
	if err := call(t.Context(), nil); err != nil || called["me"] != 1 {
		t.Errorf("got %v and %v", err, called)
	}
	if err := post(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A transport closes the body of a request that it refuses, as http.RoundTripper says.
func TestHTTPClosesTheBody(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sent := &body{Reader: strings.NewReader("me")}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://bank.example.com/charge", sent)
	if err != nil {
		t.Fatal(err)
	}
	response, err := rtesting.HTTP(bank{}).Transport.RoundTrip(request)
	if !errors.Is(err, context.Canceled) || !sent.closed {
		t.Errorf("got %v and %v, closed: %t", response, err, sent.closed)
	}
}

type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestAs(t *testing.T) {
	t.Parallel()
	kubelet := does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		c := rtesting.As(reconcilers.RetrieveConfigOrDie(ctx), "kubelet")
		ready := running.Object()
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), ready); err != nil {
			return err
		}
		ready.Status.Phase = corev1.PodRunning
		if err := c.Status().Update(ctx, ready); err != nil {
			return err
		}
		stored := &corev1.Pod{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), stored); err != nil {
			return err
		}
		if stored.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("got %s", stored.Status.Phase)
		}
		for _, entry := range stored.ManagedFields {
			if entry.Manager == "kubelet" {
				return nil
			}
		}
		return fmt.Errorf("got %v", stored.ManagedFields)
	})
	managed := pod.With(func(p *corev1.Pod) {
		p.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "me", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
		}}
	})
	row := cmCase{Resource: settings.Object(), GivenObjects: []client.Object{managed}, Metadata: kubelet, ExpectOrder: []string{}}
	runNodes(t, cmNodes{"not recorded": row})
	row.StatusSubResourceTypes = []client.Object{&corev1.Pod{}}
	runNode(t, cmTests{"not recorded": row})
}

func TestUntil(t *testing.T) {
	t.Parallel()
	runNodes(t, cmNodes{
		"delays pass": {
			Resource:      settings.Object(),
			Now:           time.Unix(1000, 0),
			Until:         rtesting.Rest(),
			Metadata:      map[string]any{"node": waits(time.Hour)},
			ExpectCreates: []client.Object{controlled(configMap("late"))},
		},
		"a conflict is retried": {
			Resource:        settings.Object(),
			APIGivenObjects: []client.Object{configMap("one")},
			Until:           rtesting.Rest(),
			Metadata:        makes("one", "two"),
			ExpectCreates: []client.Object{
				controlled(configMap("one")), controlled(configMap("two")),
			},
		},
		"an expected error ends": {
			Resource:  settings.Object(),
			Until:     rtesting.Rest(),
			Metadata:  fails(errOops),
			ShouldErr: true,
		},
		"a node that waits is at rest": {
			Resource: settings.Object(),
			Until:    rtesting.Rest(),
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				for _, name := range []string{"one", "two"} {
					err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKeyFromObject(configMap(name)), configMap(name))
					if err != nil {
						return errors.Join(ensures(ctx, cm, name), reconcilers.ErrHaltSubReconcilers)
					}
				}
				return reconcilers.ErrHaltSubReconcilers
			}),
			ExpectCreates: []client.Object{controlled(configMap("one")), controlled(configMap("two"))},
			ExpectedErr:   reconcilers.ErrHaltSubReconcilers,
		},
		"a requeue is a poll": {
			Resource: settings.Object(),
			Until:    rtesting.Rest(),
			Metadata: map[string]any{"node": node[*corev1.ConfigMap]{
				reconcile: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) {
					//lint:ignore SA1019 Nodes may still set it.
					return reconcilers.Result{Requeue: true}, nil
				},
			}},
			//lint:ignore SA1019 Nodes may still set it.
			ExpectedResult: reconcilers.Result{Requeue: true},
		},
		"a poll is rest": {
			Resource: settings.Object(),
			Until:    rtesting.Rest(),
			Metadata: map[string]any{"node": node[*corev1.ConfigMap]{
				reconcile: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) {
					return reconcilers.Result{RequeueAfter: time.Minute}, nil
				},
			}},
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
	})
	pods := rtesting.NodeTests[*corev1.Pod]{
		"the status stays": {
			Resource:       pod.Object(),
			Until:          rtesting.Rest(),
			ExpectResource: pod.With(func(p *corev1.Pod) { p.Status.Message = "xxx" }).Object(),
		},
	}
	pods.RunNode(t, scheme, func() reconcilers.SubReconciler[*corev1.Pod] {
		return &reconcilers.SyncReconciler[*corev1.Pod]{
			SyncWithResult: func(_ context.Context, p *corev1.Pod) (reconcilers.Result, error) {
				if len(p.Status.Message) == 3 {
					return reconcilers.Result{}, nil
				}
				p.Status.Message += "x"
				return reconcilers.Result{RequeueAfter: 1}, nil
			},
		}
	})
}

// A row in virtual time does not wait, in any table.
func TestVirtualTime(t *testing.T) {
	t.Parallel()
	sleeps := does(func(ctx context.Context, cm *corev1.ConfigMap) error {
		began := time.Now()
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
			return ctx.Err()
		}
		if slept := time.Since(began); slept != time.Hour {
			return fmt.Errorf("it took %s", slept)
		}
		return nil
	})
	runNodes(t, cmNodes{"of a node": {Resource: settings.Object(), VirtualTime: true, Metadata: sleeps}})
	runNode(t, cmTests{"of a sub-reconciler": {Resource: settings.Object(), VirtualTime: true, Metadata: sleeps}})
	before := time.Now()
	runNodes(t, cmNodes{"until rest": {
		Resource: settings.Object(), VirtualTime: true, Until: rtesting.Rest(), Now: time.Unix(1000, 0),
		Metadata:      map[string]any{"node": waits(time.Hour)},
		ExpectCreates: []client.Object{controlled(configMap("late"))},
	}})
	if time.Since(before) > time.Minute {
		t.Error("time passed")
	}
}

func TestRootTests(t *testing.T) {
	t.Parallel()
	copied := settings.With(func(c *corev1.ConfigMap) { c.Name = "copy" })
	event := rtesting.NewEvent(settings, clientgoscheme.Scheme, corev1.EventTypeNormal, "Copied", `Copied to %q`, "copy")
	rtesting.RootTests{
		"gone": {Request: request},
		"created": {
			Request:       request,
			GivenObjects:  []client.Object{pod, settings},
			ExpectCreates: []client.Object{copied},
			ExpectEvents:  []rtesting.Event{event},
		},
		"updated": {
			Request:       request,
			GivenObjects:  []client.Object{settings, copied.With(func(c *corev1.ConfigMap) { c.Data = nil })},
			ExpectUpdates: []client.Object{copied},
			ExpectEvents:  []rtesting.Event{event},
		},
		"to rest": {
			Request:       request,
			GivenObjects:  []client.Object{settings},
			Until:         rtesting.Rest(),
			ExpectCreates: []client.Object{copied},
			ExpectUpdates: []client.Object{copied},
			ExpectEvents:  []rtesting.Event{event, event},
		},
	}.Run(t, clientgoscheme.Scheme, newCopier)
}

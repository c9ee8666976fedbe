package testing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"
)

// do is what code under test does with a config.
type do func(ctx context.Context, c reconcilers.Config) error

var (
	pod      = rtesting.NewFixture(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	running  = pod.With(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	changed  = settings.With(func(c *corev1.ConfigMap) { c.Data["k"] = "w" })
	settingK = corev1ac.ConfigMap("settings", "default")
	scheme   = clientgoscheme.Scheme

	patchRef = rtesting.PatchRef{
		Kind: "ConfigMap", Namespace: "default", Name: "settings", PatchType: types.MergePatchType, Patch: []byte(`{"data":{"k":"w"}}`),
	}
	statusPatchRef = rtesting.PatchRef{
		Kind: "Pod", Namespace: "default", Name: "web", SubResource: "status",
		PatchType: types.MergePatchType, Patch: []byte(`{"status":{"phase":"Running"}}`),
	}
	deleteRef     = rtesting.NewDeleteRefFromObject(settings, scheme)
	collectionRef = rtesting.DeleteCollectionRef{
		Kind: "ConfigMap", Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{"a": "b"}),
	}
	applyRef = rtesting.ApplyRef{
		Kind: "ConfigMap", Namespace: "default", Name: "settings",
		ApplyConfiguration: settingK.WithData(map[string]string{"k": "w"}),
	}
	statusApplyRef = rtesting.ApplyRef{
		Kind: "Pod", Namespace: "default", Name: "web",
		ApplyConfiguration: corev1ac.Pod("web", "default").WithStatus(corev1ac.PodStatus().WithPhase(corev1.PodRunning)),
	}
	event   = rtesting.NewEvent(settings, scheme, corev1.EventTypeNormal, "Seen", "Seen %s", "it")
	eventf  = rtesting.NewEventf(settings, pod, scheme, corev1.EventTypeWarning, "Seen", "Look", "Seen %s", "it")
	track   = rtesting.NewTrackRequest(settings, pod, scheme)
	keep    = client.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"w"}}`))
	promote = client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`))
)

// kinds has one call of each kind, with the expectation that it meets.
var kinds = map[string]struct {
	field  string
	expect func(*rtesting.ExpectConfig)
	do     do
	// wrong is an expectation of that kind which the call does not meet.
	wrong func(*rtesting.ExpectConfig)
	// paste is part of the literal that an unexpected call is answered with.
	paste string
}{
	"Apply": {
		field:  "ExpectApplies",
		expect: func(c *rtesting.ExpectConfig) { c.ExpectApplies = []rtesting.ApplyRef{applyRef} },
		do: func(ctx context.Context, c reconcilers.Config) error {
			config := corev1ac.ConfigMap("settings", "default").WithData(map[string]string{"k": "w"})
			return c.Apply(ctx, config, client.FieldOwner("me"), client.ForceOwnership)
		},
		wrong: func(c *rtesting.ExpectConfig) {
			c.ExpectApplies = []rtesting.ApplyRef{{Kind: "ConfigMap", Namespace: "default", Name: "settings"}}
		},
		paste: `Data: map[string]string{"k": "w"}`,
	},
	"Create": {
		field: "ExpectCreates",
		expect: func(c *rtesting.ExpectConfig) {
			c.ExpectCreates = []client.Object{settings.With(func(m *corev1.ConfigMap) { m.Name = "other" })}
		},
		do: func(ctx context.Context, c reconcilers.Config) error {
			return c.Create(ctx, settings.With(func(m *corev1.ConfigMap) { m.Name = "other" }).Object())
		},
		wrong: func(c *rtesting.ExpectConfig) { c.ExpectCreates = []client.Object{settings} },
		paste: `&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "default"}, Data: map[string]string{"k": "v"}},`,
	},
	"Update": {
		field:  "ExpectUpdates",
		expect: func(c *rtesting.ExpectConfig) { c.ExpectUpdates = []client.Object{changed} },
		do:     func(ctx context.Context, c reconcilers.Config) error { return c.Update(ctx, changed.Object()) },
		wrong:  func(c *rtesting.ExpectConfig) { c.ExpectUpdates = []client.Object{settings} },
		paste:  `Data: map[string]string{"k": "w"}, },`,
	},
	"Patch": {
		field:  "ExpectPatches",
		expect: func(c *rtesting.ExpectConfig) { c.ExpectPatches = []rtesting.PatchRef{patchRef} },
		do:     func(ctx context.Context, c reconcilers.Config) error { return c.Patch(ctx, settings.Object(), keep) },
		wrong:  func(c *rtesting.ExpectConfig) { c.ExpectPatches = []rtesting.PatchRef{statusPatchRef} },
		paste:  "[]byte(`{\"data\":{\"k\":\"w\"}}`)",
	},
	"Delete": {
		field:  "ExpectDeletes",
		expect: func(c *rtesting.ExpectConfig) { c.ExpectDeletes = []rtesting.DeleteRef{deleteRef} },
		do:     func(ctx context.Context, c reconcilers.Config) error { return c.Delete(ctx, settings.Object()) },
		wrong:  func(c *rtesting.ExpectConfig) { c.ExpectDeletes = []rtesting.DeleteRef{{Kind: "ConfigMap"}} },
		paste:  `rtesting.DeleteRef{Kind: "ConfigMap", Namespace: "default", Name: "settings"},`,
	},
	"DeleteCollection": {
		field: "ExpectDeleteCollections",
		expect: func(c *rtesting.ExpectConfig) {
			c.ExpectDeleteCollections = []rtesting.DeleteCollectionRef{collectionRef}
		},
		do: func(ctx context.Context, c reconcilers.Config) error {
			return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"a": "b"})
		},
		wrong: func(c *rtesting.ExpectConfig) {
			c.ExpectDeleteCollections = []rtesting.DeleteCollectionRef{{Kind: "ConfigMap", Namespace: "default"}}
		},
		paste: `Labels: labels.SelectorFromSet(labels.Set{"a": "b"}), },`,
	},
	"StatusUpdate": {
		field:  "ExpectStatusUpdates",
		expect: func(c *rtesting.ExpectConfig) { c.ExpectStatusUpdates = []client.Object{running} },
		do:     func(ctx context.Context, c reconcilers.Config) error { return c.Status().Update(ctx, running.Object()) },
		wrong:  func(c *rtesting.ExpectConfig) { c.ExpectStatusUpdates = []client.Object{pod} },
		paste:  `Status: corev1.PodStatus{Phase: "Running"}`,
	},
	"StatusPatch": {
		field:  "ExpectStatusPatches",
		expect: func(c *rtesting.ExpectConfig) { c.ExpectStatusPatches = []rtesting.PatchRef{statusPatchRef} },
		do: func(ctx context.Context, c reconcilers.Config) error {
			return c.Status().Patch(ctx, pod.Object(), promote)
		},
		wrong: func(c *rtesting.ExpectConfig) { c.ExpectStatusPatches = []rtesting.PatchRef{patchRef} },
		paste: `SubResource: "status"`,
	},
	"StatusApply": {
		field:  "ExpectStatusApplies",
		expect: func(c *rtesting.ExpectConfig) { c.ExpectStatusApplies = []rtesting.ApplyRef{statusApplyRef} },
		do: func(ctx context.Context, c reconcilers.Config) error {
			config := corev1ac.Pod("web", "default").WithStatus(corev1ac.PodStatus().WithPhase(corev1.PodRunning))
			return c.Status().Apply(ctx, config, client.FieldOwner("me"))
		},
		wrong: func(c *rtesting.ExpectConfig) { c.ExpectStatusApplies = []rtesting.ApplyRef{applyRef} },
		paste: `Phase: new(corev1.PodPhase("Running"))`,
	},
	"Event": {
		field:  "ExpectEvents",
		expect: func(c *rtesting.ExpectConfig) { c.ExpectEvents = []rtesting.Event{event} },
		do: func(_ context.Context, c reconcilers.Config) error {
			c.Recorder.Eventf(settings.Object(), corev1.EventTypeNormal, "Seen", "Seen %s", "it")
			return nil
		},
		wrong: func(c *rtesting.ExpectConfig) { c.ExpectEvents = []rtesting.Event{eventf} },
		paste: `Message: `,
	},
	"Track": {
		field:  "ExpectTracks",
		expect: func(c *rtesting.ExpectConfig) { c.ExpectTracks = []rtesting.TrackRequest{track} },
		do: func(_ context.Context, c reconcilers.Config) error {
			return c.Tracker.TrackObject(settings.Object(), pod.Object())
		},
		wrong: func(c *rtesting.ExpectConfig) {
			c.ExpectTracks = []rtesting.TrackRequest{rtesting.CreateTrackRequest("", "Secret", "default", "settings").By("default", "web")}
		},
		paste: `rtesting.CreateTrackRequest("", "ConfigMap", "default", "settings").By("default", "web"),`,
	},
}

func newExpectConfig() *rtesting.ExpectConfig {
	return &rtesting.ExpectConfig{Scheme: scheme, GivenObjects: []client.Object{settings, pod}}
}

func TestExpectConfig(t *testing.T) {
	for kind, tc := range kinds {
		assert := func(name string, c *rtesting.ExpectConfig, call bool, want ...string) {
			t.Run(kind+" "+name, func(t *testing.T) {
				if call {
					if err := tc.do(t.Context(), c.Config()); err != nil {
						t.Fatal(err)
					}
				}
				c.AssertExpectations(nil)
				got := c.Failures()
				if len(got) != len(want) {
					t.Fatalf("want %d failures, got %q", len(want), got)
				}
				for i := range want {
					if !strings.HasPrefix(got[i], want[i]) {
						t.Errorf("failure %d: want it to start with %q, got %q", i, want[i], got[i])
					}
				}
			})
		}
		met := newExpectConfig()
		tc.expect(met)
		assert("as expected", met, true)

		missing := newExpectConfig()
		missing.Name = "default"
		tc.expect(missing)
		assert("missing", missing, false, tc.field+"[0] not observed: ")

		different := newExpectConfig()
		tc.wrong(different)
		assert("different", different, true, tc.field+"[0] differs: ")
		if failures := different.Failures(); len(failures) == 1 {
			for _, want := range []string{
				"\n  field:    ", "\n  expected: ", "\n  seen:     ",
				"\n" + tc.field + "[0] differs (-expected, +actual):\n", "\nTo expect it, set " + tc.field + "[0] to:\n",
			} {
				if !strings.Contains(failures[0], want) {
					t.Errorf("%s: want %q in %q", kind, want, failures[0])
				}
			}
		}

		extra := newExpectConfig()
		extra.Name = "other"
		assert("extra", extra, true, fmt.Sprintf(`Unexpected %s observed for config "other": `, kind))
		if failures := extra.Failures(); len(failures) == 1 {
			if want := "\nTo expect it, add to " + tc.field + ":\n"; !strings.Contains(failures[0], want) {
				t.Errorf("%s: want %q in %q", kind, want, failures[0])
			}
			if !strings.Contains(strings.Join(strings.Fields(failures[0]), " "), tc.paste) {
				t.Errorf("%s: want the literal %q in %s", kind, tc.paste, failures[0])
			}
		}
	}
}

func TestMissingTracksAreNamed(t *testing.T) {
	c := newExpectConfig()
	c.ExpectTracks = []rtesting.TrackRequest{track}
	c.AssertExpectations(nil)
	want := []string{`ExpectTracks[0] not observed: ConfigMap default/settings by default/web
  expected: 1 Track
  seen:     no Track
ExpectTracks[0] not observed:
rtesting.CreateTrackRequest("", "ConfigMap", "default", "settings").By("default", "web")`}
	if diff := cmp.Diff(want, c.Failures()); diff != "" {
		t.Errorf("differs (-want, +got):\n%s", diff)
	}
}

func TestCopiesOfAnExpectConfigShareTheConfig(t *testing.T) {
	c := newExpectConfig()
	first := c.Config()
	other := *c
	if first != c.Config() || first != other.Config() {
		t.Error("a config is made once")
	}
}

func TestOptionsAreComparedWhenSet(t *testing.T) {
	uid, version := types.UID("one"), "999"
	foreground, none := metav1.DeletePropagationForeground, metav1.DeletionPropagation("")
	given := settings.With(func(c *corev1.ConfigMap) { c.UID = uid })
	tests := map[string]struct {
		do     do
		expect func(*rtesting.ExpectConfig)
		fails  bool
	}{
		"delete": {
			do: func(ctx context.Context, c reconcilers.Config) error {
				return c.Delete(ctx, given.Object(), client.Preconditions{UID: &uid, ResourceVersion: &version},
					client.PropagationPolicy(foreground))
			},
			expect: func(c *rtesting.ExpectConfig) {
				ref := deleteRef
				ref.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
				ref.PropagationPolicy, ref.DryRun = &foreground, new(false)
				c.ExpectDeletes = []rtesting.DeleteRef{ref}
			},
		},
		"delete without the preconditions": {
			do: func(ctx context.Context, c reconcilers.Config) error { return c.Delete(ctx, given.Object()) },
			expect: func(c *rtesting.ExpectConfig) {
				ref := deleteRef
				ref.Preconditions = &metav1.Preconditions{UID: &uid}
				c.ExpectDeletes = []rtesting.DeleteRef{ref}
			},
			fails: true,
		},
		"delete with no options expected": {
			do: func(ctx context.Context, c reconcilers.Config) error { return c.Delete(ctx, given.Object()) },
			expect: func(c *rtesting.ExpectConfig) {
				ref := deleteRef
				ref.Preconditions, ref.PropagationPolicy = &metav1.Preconditions{}, &none
				c.ExpectDeletes = []rtesting.DeleteRef{ref}
			},
		},
		"apply": {
			do: kinds["Apply"].do,
			expect: func(c *rtesting.ExpectConfig) {
				ref := applyRef
				ref.FieldOwner, ref.Force, ref.DryRun = "me", new(true), new(false)
				c.ExpectApplies = []rtesting.ApplyRef{ref}
			},
		},
		"apply by another": {
			do: kinds["Apply"].do,
			expect: func(c *rtesting.ExpectConfig) {
				ref := applyRef
				ref.FieldOwner = "you"
				c.ExpectApplies = []rtesting.ApplyRef{ref}
			},
			fails: true,
		},
		"create and update": {
			do: func(ctx context.Context, c reconcilers.Config) error {
				return errors.Join(
					kinds["Create"].do(ctx, c),
					c.Update(ctx, changed.Object(), client.FieldOwner("me"), client.DryRunAll),
				)
			},
			expect: func(c *rtesting.ExpectConfig) {
				kinds["Create"].expect(c)
				c.ExpectUpdates = []client.Object{
					rtesting.WithOptions(changed, rtesting.WriteOptions{FieldOwner: "me", DryRun: new(true)}),
				}
			},
		},
		"update by another": {
			do: kinds["Update"].do,
			expect: func(c *rtesting.ExpectConfig) {
				c.ExpectUpdates = []client.Object{rtesting.WithOptions(changed, rtesting.WriteOptions{FieldOwner: "me"})}
			},
			fails: true,
		},
		"create for real": {
			do: kinds["Create"].do,
			expect: func(c *rtesting.ExpectConfig) {
				kinds["Create"].expect(c)
				c.ExpectCreates[0] = rtesting.WithOptions(c.ExpectCreates[0], rtesting.WriteOptions{DryRun: new(true)})
			},
			fails: true,
		},
		"patch as a dry run": {
			do: func(ctx context.Context, c reconcilers.Config) error {
				return c.Patch(ctx, given.Object(), keep, client.FieldOwner("me"), client.DryRunAll)
			},
			expect: func(c *rtesting.ExpectConfig) {
				ref := patchRef
				ref.FieldOwner, ref.Force, ref.DryRun = "me", new(false), new(true)
				c.ExpectPatches = []rtesting.PatchRef{ref}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &rtesting.ExpectConfig{Scheme: scheme, GivenObjects: []client.Object{given}}
			tc.expect(c)
			if err := tc.do(t.Context(), c.Config()); err != nil {
				t.Fatal(err)
			}
			c.AssertExpectations(nil)
			if failures := c.Failures(); (len(failures) > 0) != tc.fails {
				t.Errorf("failures wanted %v, got %q", tc.fails, failures)
			}
		})
	}
}

func TestBadSetUpIsReported(t *testing.T) {
	c := &rtesting.ExpectConfig{
		Scheme:            scheme,
		GivenAPIResources: []*metav1.APIResourceList{{GroupVersion: "a/b/c"}},
		GivenTracks:       []rtesting.TrackRequest{{TrackedReference: tracker.Reference{Kind: "ConfigMap"}}},
	}
	c.AssertExpectations(nil)
	if failures := c.Failures(); len(failures) != 2 {
		t.Errorf("want 2 failures, got %q", failures)
	}
}

func TestRESTMapperHasTheGivenResources(t *testing.T) {
	c := &rtesting.ExpectConfig{Scheme: scheme, GivenAPIResources: []*metav1.APIResourceList{{
		GroupVersion: "v1",
		APIResources: []metav1.APIResource{{Name: "configmaps", SingularName: "configmap", Namespaced: true, Kind: "ConfigMap"}},
	}}}
	namespaced, err := c.Config().IsObjectNamespaced(settings.Object())
	if err != nil || !namespaced {
		t.Errorf("got %v, %v", namespaced, err)
	}
	lists, err := c.Config().Discovery.ServerResourcesForGroupVersion("v1")
	if err != nil || len(lists.APIResources) != 1 {
		t.Errorf("discovery has %v, %v", lists, err)
	}
}

func TestUnstructuredObjectsMeetTypedExpectations(t *testing.T) {
	for name, test := range map[string]struct {
		data     map[string]any
		extra    any
		expected client.Object
		differs  bool
	}{
		"the same":         {data: map[string]any{"k": "v"}, expected: settings},
		"another value":    {data: map[string]any{"k": "w"}, expected: settings, differs: true},
		"an unknown field": {data: map[string]any{"k": "v"}, extra: "x", expected: settings, differs: true},
		"another type":     {data: map[string]any{"k": "v"}, expected: pod, differs: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"data": test.data}}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			u.SetNamespace("default")
			u.SetName("settings")
			if test.extra != nil {
				u.Object["extra"] = test.extra
			}
			c := rtesting.ExpectConfig{Scheme: scheme, ExpectCreates: []client.Object{test.expected}}
			if err := c.Config().Create(context.Background(), u); err != nil && test.extra == nil {
				t.Fatal(err)
			}
			c.AssertClientCreateExpectations(nil)
			if differs := len(c.Failures()) > 0; differs != test.differs {
				t.Errorf("differs: %v, want %v: %v", differs, test.differs, c.Failures())
			}
		})
	}
}

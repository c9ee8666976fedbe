package shop

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"
)

type (
	row   = rtesting.SubReconcilerTestCase[*Shop]
	table = rtesting.SubReconcilerTests[*Shop]
)

var (
	scheme   = NewScheme()
	shop     = &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "corner"}}
	settings = &core.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings", UID: "settings-uid"},
		Data:       map[string]string{"k": "v"},
	}
	corner = rtesting.NewFixture(shop)
	shelf  = rtesting.NewFixture(&core.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shelf", Labels: map[string]string{"a": "b"}},
		Data:       map[string]string{"k": "v", "l": "v"},
	})
	web = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"a": "b"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Template: core.PodTemplateSpec{Spec: core.PodSpec{
				Containers: []core.Container{{Name: "web", Image: "web:1"}},
				Volumes:    []core.Volume{{Name: "tmp", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}}},
			}},
		},
	}
)

// named returns a copy of the settings with another name.
func named(name string) *core.ConfigMap {
	c := settings.DeepCopy()
	c.Name, c.UID = name, ""
	return c
}

func asUnstructured(obj client.Object, kind string) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(core.SchemeGroupVersion.WithKind(kind))
	if kind == "Deployment" {
		u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind))
	}
	delete(u.Object, "status")
	return u
}

// does is the metadata of a row whose node does f.
func does(f func(ctx context.Context, c reconcilers.Config, s *Shop) error) map[string]any {
	return map[string]any{"node": &reconcilers.SyncReconciler[*Shop]{
		Sync: func(ctx context.Context, s *Shop) error { return f(ctx, reconcilers.RetrieveConfigOrDie(ctx), s) },
	}}
}

func run(t *testing.T, rows table) {
	t.Helper()
	rows.Run(t, scheme, node)
}

func node(_ *testing.T, tc *row, _ reconcilers.Config) reconcilers.SubReconciler[*Shop] {
	return tc.Metadata["node"].(reconcilers.SubReconciler[*Shop])
}

func opened(s *Shop) {
	s.Status.Conditions = []metav1.Condition{{
		Type: "Open", Status: metav1.ConditionTrue, Reason: "Opened", LastTransitionTime: metav1.Now(),
	}}
	s.Status.Seen = &Visit{By: "ann"}
}

func TestWrites(t *testing.T) {
	run(t, table{
		"creates": {
			Resource: shop,
			Metadata: does(func(ctx context.Context, c reconcilers.Config, s *Shop) error {
				c.Recorder.Event(s, "Normal", "Made", `made "one"`)
				c.Eventf(s, nil, "Warning", "Made", "Make", "made %d", 2)
				return c.Create(ctx, named("one"))
			}),
		},
		"creates what has no Go type": {
			Resource: shop,
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				return c.Create(ctx, asUnstructured(named("one"), "ConfigMap"))
			}),
		},
		"creates with options": {
			Resource: shop,
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				return c.Create(ctx, named("one"), client.DryRunAll, client.FieldOwner("me"))
			}),
		},
		"updates": {
			Resource:     shop,
			GivenObjects: []client.Object{settings},
			// One stays, one changes, one is not there any more.
			ExpectCreates: []client.Object{
				named("one"),
				// The second.
				named("too"),
				named("three"),
			},
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				changed := settings.DeepCopy()
				changed.Data["k"] = "w"
				for _, name := range []string{"one", "two"} {
					if err := c.Create(ctx, named(name)); err != nil {
						return err
					}
				}
				return c.Update(ctx, changed)
			}),
		},
		"patches": {
			Resource:     shop,
			GivenObjects: []client.Object{settings},
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"k":"w"}}`))
				return c.Patch(ctx, settings.DeepCopy(), patch, client.FieldOwner("me"))
			}),
		},
		"patches a condition": {
			Resource:               shop,
			StatusSubResourceTypes: []client.Object{&Shop{}},
			Metadata: does(func(ctx context.Context, c reconcilers.Config, s *Shop) error {
				s = s.DeepCopyObject().(*Shop)
				before := s.DeepCopyObject().(*Shop)
				opened(s)
				s.Status.Conditions[0].LastTransitionTime = metav1.Unix(time.Now().UnixNano()%1e9, 0)
				return c.Status().Patch(ctx, s, client.MergeFrom(before))
			}),
		},
		"deletes": {
			Resource:     shop,
			GivenObjects: []client.Object{settings},
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				return c.Delete(ctx, settings.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationForeground),
					client.Preconditions{UID: new(settings.UID), ResourceVersion: new("999")})
			}),
		},
		"deletes many": {
			Resource: shop,
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				some, err := labels.Parse("a in (b,c),d")
				if err != nil {
					return err
				}
				return c.DeleteAllOf(ctx, settings.DeepCopy(), client.InNamespace("default"), client.MatchingLabelsSelector{Selector: some})
			}),
		},
		"applies a Go type": {
			Resource: shop,
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(asUnstructured(web, "Deployment")),
					client.FieldOwner("me"), client.ForceOwnership)
			}),
		},
		"applies no Go type": {
			Resource: shop,
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				sparse := asUnstructured(web, "Deployment")
				unstructured.RemoveNestedField(sparse.Object, "spec", "strategy")
				unstructured.RemoveNestedField(sparse.Object, "spec", "template", "metadata")
				containers, _, _ := unstructured.NestedSlice(sparse.Object, "spec", "template", "spec", "containers")
				delete(containers[0].(map[string]any), "resources")
				if err := unstructured.SetNestedSlice(sparse.Object, containers, "spec", "template", "spec", "containers"); err != nil {
					return err
				}
				return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sparse), client.FieldOwner("me"))
			}),
		},
		"applies an unknown kind": {
			Resource: shop,
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				u := asUnstructured(named("one"), "Unheard")
				return client.IgnoreNotFound(ignore(c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me"))))
			}),
		},
		"writes a status": {
			Resource:               shop,
			StatusSubResourceTypes: []client.Object{&Shop{}},
			Metadata: does(func(ctx context.Context, c reconcilers.Config, s *Shop) error {
				s = s.DeepCopyObject().(*Shop)
				opened(s)
				return c.Status().Update(ctx, s)
			}),
		},
		"does more in another cluster": {
			Resource:          shop,
			AdditionalConfigs: map[string]rtesting.ExpectConfig{"elsewhere": {Scheme: scheme}},
			ExpectOrder:       []string{"create ConfigMap default/two"},
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
				if err := reconcilers.RetrieveAdditionalConfigs(ctx)["elsewhere"].Create(ctx, named("one")); err != nil {
					return err
				}
				return c.Create(ctx, named("one"))
			}),
		},
		"writes nothing": {
			Resource: shop, ExpectCreates: []client.Object{settings}, ExpectResource: shop,
			Metadata: does(func(context.Context, reconcilers.Config, *Shop) error { return nil }),
		},
		"changes fixtures": {
			Resource:     corner.Object(),
			GivenObjects: []client.Object{shelf.With(func(c *core.ConfigMap) { c.Labels = nil }), settings},
			Metadata: does(func(ctx context.Context, c reconcilers.Config, s *Shop) error {
				s.Status.Seen = &Visit{By: "ann"}
				full := shelf.Object()
				full.Data["k"], full.Labels = "w", map[string]string{"full": "true"}
				delete(full.Data, "l")
				full.ResourceVersion = "999"
				return c.Update(ctx, full)
			}),
		},
		"again": {
			Resource: shop,
			Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error { return c.Create(ctx, named("one")) }),
			AdditionalReconciles: []row{
				{Name: "once more", Resource: shop},
			},
		},
	})
}

func ignore(error) error { return nil }

var memory = table{
	"changes the resource": {
		Resource: shop,
		Metadata: does(func(_ context.Context, _ reconcilers.Config, s *Shop) error { opened(s); return nil }),
	},
	"changes it at a known time": {
		Resource: shop, Now: time.Unix(1000, 0), Differ: rtesting.StrictDiffer,
		Metadata: does(func(_ context.Context, _ reconcilers.Config, s *Shop) error {
			opened(s)
			s.Status.Conditions[0].LastTransitionTime = metav1.Unix(1000, 0)
			return nil
		}),
	},
	"tracks": {
		Resource: shop,
		Metadata: does(func(_ context.Context, c reconcilers.Config, s *Shop) error {
			if err := c.Tracker.TrackObject(settings.DeepCopy(), s); err != nil {
				return err
			}
			return c.Tracker.TrackReference(tracker.Reference{
				Kind: "Secret", Namespace: "default", Selector: labels.SelectorFromSet(labels.Set{"a": "b"}),
			}, s)
		}),
	},
	"stashes": {
		Resource:            shop,
		ExpectStashedValues: map[stash.Key]any{"text": "", "visit": &Visit{}},
		Metadata: does(func(ctx context.Context, _ reconcilers.Config, _ *Shop) error {
			stash.StoreValue(ctx, "text", "a")
			stash.StoreValue(ctx, "visit", &Visit{By: "ann"})
			return nil
		}),
	},
	"comes back": {
		Resource: shop,
		Metadata: map[string]any{"node": &reconcilers.SyncReconciler[*Shop]{
			SyncWithResult: func(context.Context, *Shop) (reconcilers.Result, error) {
				return reconcilers.Result{RequeueAfter: 90 * time.Second, Priority: new(3)}, nil
			},
		}},
	},
	"halts": {
		Resource: shop,
		Metadata: does(func(context.Context, reconcilers.Config, *Shop) error { return reconcilers.ErrHaltSubReconcilers }),
	},
}

func TestMemory(t *testing.T) { memory.Run(t, scheme, node) }

func TestSuite(t *testing.T) {
	rtesting.SubReconcilerTestSuite[*Shop]{
		{Name: "first", Resource: shop, Metadata: does(func(ctx context.Context, c reconcilers.Config, _ *Shop) error {
			return c.Create(ctx, named("one"))
		})},
	}.Run(t, scheme, node)
}

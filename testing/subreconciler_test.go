package testing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/validation"
)

// node is a sub-reconciler made of a function.
type node[Type client.Object] struct {
	reconcile func(ctx context.Context, resource Type) (reconcilers.Result, error)
	validate  func(ctx context.Context) error
}

func (n node[Type]) SetupWithManager(context.Context, manager.Manager, *builder.Builder) error {
	return nil
}

func (n node[Type]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	return n.reconcile(ctx, resource)
}

func (n node[Type]) Validate(ctx context.Context) error {
	if n.validate == nil {
		return nil
	}
	return n.validate(ctx)
}

type (
	cmCase  = rtesting.SubReconcilerTestCase[*corev1.ConfigMap]
	cmTests = rtesting.SubReconcilerTests[*corev1.ConfigMap]
)

// runNode runs cases whose sub-reconciler is in their metadata.
func runNode(t *testing.T, tests cmTests) {
	tests.Run(t, scheme, func(_ *testing.T, tc *cmCase, _ reconcilers.Config) reconcilers.SubReconciler[*corev1.ConfigMap] {
		return tc.Metadata["node"].(reconcilers.SubReconciler[*corev1.ConfigMap])
	})
}

// does is the metadata of a case whose sub-reconciler does f.
func does(f func(ctx context.Context, cm *corev1.ConfigMap) error) map[string]any {
	return map[string]any{"node": node[*corev1.ConfigMap]{
		reconcile: func(ctx context.Context, cm *corev1.ConfigMap) (reconcilers.Result, error) {
			return reconcilers.Result{}, f(ctx, cm)
		},
	}}
}

func TestSubReconcilerTests(t *testing.T) {
	now := time.Unix(1000, 0)
	runNode(t, cmTests{
		"the resource is changed in memory": {
			Resource:       settings.Object(),
			ExpectResource: changed.Object(),
			Metadata:       does(func(_ context.Context, cm *corev1.ConfigMap) error { cm.Data["k"] = "w"; return nil }),
		},
		"the resource has been given": {
			Resource:        settings.Object(),
			APIGivenObjects: []client.Object{pod},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				stored, key := &corev1.ConfigMap{}, client.ObjectKeyFromObject(cm)
				if err := errors.Join(c.Get(ctx, key, stored), c.APIReader.Get(ctx, key, stored)); err != nil {
					return err
				}
				if cm.ResourceVersion != "999" || stored.ResourceVersion != "999" {
					return fmt.Errorf("versions %q and %q", cm.ResourceVersion, stored.ResourceVersion)
				}
				return errors.Join(
					c.APIReader.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}),
					client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{})))
			}),
		},
		"the context is that of a root": {
			Resource: settings.Object(),
			Now:      now,
			Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
				if rtime.RetrieveNow(ctx) != now || reconcilers.RetrieveRequest(ctx) != request || !validation.IsRecursive(ctx) {
					return errors.New("now, request or recursion is wrong")
				}
				if _, ok := reconcilers.RetrieveResourceType(ctx).(*corev1.ConfigMap); !ok {
					return errors.New("resource type is wrong")
				}
				if reconcilers.RetrieveConfigOrDie(ctx) != reconcilers.RetrieveOriginalConfigOrDie(ctx) {
					return errors.New("the configs differ")
				}
				return nil
			}),
		},
		"statuses are expected": {
			Resource:            settings.Object(),
			GivenObjects:        []client.Object{pod},
			ExpectStatusUpdates: []client.Object{running},
			ExpectStatusPatches: []rtesting.PatchRef{statusPatchRef},
			ExpectStatusApplies: []rtesting.ApplyRef{statusApplyRef},
			ExpectDeletes:       []rtesting.DeleteRef{deleteRef},
			ExpectTracks:        []rtesting.TrackRequest{track},
			ExpectEvents:        []rtesting.Event{event, eventf},
			ExpectStashedValues: map[stash.Key]any{"seen": settings},
			GivenStashedValues:  map[stash.Key]any{"seen": settings, "gone": nil},
			Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				c := reconcilers.RetrieveConfigOrDie(ctx)
				c.Recorder.Eventf(cm, corev1.EventTypeNormal, "Seen", "Seen %s", "it")
				c.Eventf(cm, pod.Object(), corev1.EventTypeWarning, "Seen", "Look", "Seen %s", "it")
				for _, kind := range []string{"StatusUpdate", "StatusPatch", "StatusApply", "Track", "Delete"} {
					if err := kinds[kind].do(ctx, c); err != nil {
						return fmt.Errorf("%s: %w", kind, err)
					}
				}
				if _, ok := stash.RetrieveValue(ctx, "seen").(*corev1.ConfigMap); !ok {
					return errors.New("a fixture is stashed as the object it stands for")
				}
				return nil
			}),
		},
		"it panics": {
			Resource:    settings.Object(),
			ShouldPanic: true,
			Metadata:    does(func(context.Context, *corev1.ConfigMap) error { panic("as it should") }),
		},
		"a requeue is a delay or a flag": {
			Resource:       settings.Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
			Metadata: map[string]any{"node": node[*corev1.ConfigMap]{
				reconcile: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) {
					//lint:ignore SA1019 Trees for older versions still set it.
					return reconcilers.Result{Requeue: true, RequeueAfter: time.Minute}, nil
				},
			}},
		},
	})
}

func TestAdditionalReconcilesShareTheInstance(t *testing.T) {
	calls, clean := 0, 0
	cleanUp := func(*testing.T, context.Context, *cmCase) error { clean++; return nil }
	more := func(want string) cmCase {
		return cmCase{
			Name:           want,
			Resource:       settings.Object(),
			ExpectResource: settings.With(func(c *corev1.ConfigMap) { c.Data["k"] = want }).Object(),
			CleanUp:        cleanUp,
		}
	}
	first := more("1")
	first.Metadata = does(func(_ context.Context, cm *corev1.ConfigMap) error {
		calls++
		cm.Data["k"] = fmt.Sprint(calls)
		return nil
	})
	skipped := more("never")
	skipped.Skip = true
	first.AdditionalReconciles = []cmCase{more("2"), skipped, more("3")}
	runNode(t, cmTests{"first": first})
	if calls != 3 || clean != 3 {
		t.Errorf("want 3 calls and clean ups, got %d and %d", calls, clean)
	}
}

func TestGivenObjectsOfSeveralCasesStayApart(t *testing.T) {
	shared := make([]client.Object, 1, 4)
	shared[0] = pod
	tc := cmCase{
		Resource: settings.Object(), GivenObjects: shared, APIGivenObjects: shared,
		Metadata: does(func(context.Context, *corev1.ConfigMap) error { return nil }),
	}
	runNode(t, cmTests{"one": tc, "two": tc})
	if spare := shared[:2][1]; spare != nil {
		t.Errorf("the harness wrote %v into a slice of the table", spare)
	}
}

func TestAdditionalConfigsAreAsserted(t *testing.T) {
	elsewhere := func(ctx context.Context) reconcilers.Config {
		return reconcilers.RetrieveAdditionalConfigs(ctx)["elsewhere"]
	}
	runNode(t, cmTests{"met": {
		Resource: settings.Object(),
		AdditionalConfigs: map[string]rtesting.ExpectConfig{"elsewhere": {
			GivenObjects:  []client.Object{settings},
			ExpectUpdates: []client.Object{changed},
		}},
		Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
			return elsewhere(ctx).Update(ctx, changed.Object())
		}),
	}})
}

func TestDucksAndBuildersAreObjects(t *testing.T) {
	type duckCase = rtesting.SubReconcilerTestCase[*portion]
	duck := &portion{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "thing"},
		Spec:       portionSpec{Size: 1},
	}
	withSize := *duck
	withSize.Spec.Size = 2
	rtesting.SubReconcilerTests[*portion]{"duck": {
		Resource:       duck,
		ExpectResource: &withSize,
		GivenObjects:   []client.Object{builderOf{settings}},
		ExpectPatches: []rtesting.PatchRef{{
			Group: "example.com", Kind: "Thing", Namespace: "default", Name: "thing",
			PatchType: "application/merge-patch+json", Patch: []byte(`{"spec":{"size":2}}`),
		}},
		Verify: func(t *testing.T, _ reconcilers.Result, err error) {
			if err != nil {
				t.Error(err)
			}
		},
	}}.Run(t, scheme, func(*testing.T, *duckCase, reconcilers.Config) reconcilers.SubReconciler[*portion] {
		return node[*portion]{reconcile: func(ctx context.Context, resource *portion) (reconcilers.Result, error) {
			c := reconcilers.RetrieveConfigOrDie(ctx)
			if err := c.Get(ctx, request.NamespacedName, &corev1.ConfigMap{}); err != nil {
				return reconcilers.Result{}, err
			}
			patched := resource.DeepCopyObject().(*portion)
			patched.Spec.Size = 2
			if err := c.Patch(ctx, patched, client.MergeFrom(resource)); err != nil {
				return reconcilers.Result{}, err
			}
			if patched.ResourceVersion != "1000" {
				return reconcilers.Result{}, fmt.Errorf("got version %s", patched.ResourceVersion)
			}
			resource.Spec.Size = patched.Spec.Size
			return reconcilers.Result{}, nil
		}}
	})
}

// portion is a duck type.
type portion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              portionSpec `json:"spec"`
}

type portionSpec struct {
	Size int64 `json:"size"`
}

// DeepCopyObject implements runtime.Object.
func (p *portion) DeepCopyObject() runtime.Object {
	return &portion{p.TypeMeta, *p.ObjectMeta.DeepCopy(), p.Spec}
}

// builderOf is a foreign object whose copy is the real one.
type builderOf struct{ client.Object }

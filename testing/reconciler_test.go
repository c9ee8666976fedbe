package testing_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var (
	request  = reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "settings"}}
	settings = rtesting.NewFixture(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
		Data:       map[string]string{"k": "v"},
	})
)

// copier copies a ConfigMap to one called copy.
type copier struct {
	reconcilers.Config
}

func (r copier) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	source := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, source); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace, Name: "copy"}}
	err := r.Get(ctx, client.ObjectKeyFromObject(target), target)
	target.Data = source.Data
	switch {
	case apierrors.IsNotFound(err):
		err = r.Create(ctx, target)
	case err == nil:
		err = r.Update(ctx, target)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	r.Recorder.Eventf(source, corev1.EventTypeNormal, "Copied", "Copied to %q", target.Name)
	return reconcile.Result{}, nil
}

func newCopier(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
	return copier{c}
}

func TestReconcilerTests(t *testing.T) {
	copied := settings.With(func(c *corev1.ConfigMap) { c.Name = "copy" })
	event := rtesting.NewEvent(settings, clientgoscheme.Scheme, corev1.EventTypeNormal, "Copied", `Copied to %q`, "copy")
	rtesting.ReconcilerTests{
		"gone": {Request: request},
		"created": {
			Request:       request,
			GivenObjects:  []client.Object{settings},
			ExpectCreates: []client.Object{copied},
			ExpectEvents:  []rtesting.Event{event},
		},
		"updated": {
			Request: request,
			GivenObjects: []client.Object{
				settings,
				copied.With(func(c *corev1.ConfigMap) { c.Data = nil }),
			},
			ExpectUpdates: []client.Object{copied},
			ExpectEvents:  []rtesting.Event{event},
		},
		"failed": {
			Request:       request,
			GivenObjects:  []client.Object{settings},
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap")},
			ExpectCreates: []client.Object{copied},
			ShouldErr:     true,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				if err == nil || err.Error() != "inducing failure for create ConfigMap" {
					t.Errorf("unexpected error %v", err)
				}
			},
		},
		"prepared and cleaned up": {
			Prepare: func(_ *testing.T, ctx context.Context, tc *rtesting.ReconcilerTestCase) (context.Context, error) {
				tc.Metadata["prepared"] = true
				tc.Request = request
				tc.CleanUp = func(_ *testing.T, ctx context.Context, tc *rtesting.ReconcilerTestCase) error {
					if ctx.Value(preparedKey{}) == nil || tc.Metadata["prepared"] != true {
						return errors.New("not prepared")
					}
					return nil
				}
				return context.WithValue(ctx, preparedKey{}, true), nil
			},
		},
		"skipped": {Skip: true, ShouldErr: true},
	}.Run(t, clientgoscheme.Scheme, newCopier)
}

type preparedKey struct{}

func BenchmarkReconcilerTestCase(b *testing.B) {
	tc := rtesting.ReconcilerTestCase{
		Request:       request,
		GivenObjects:  []client.Object{settings},
		ExpectCreates: []client.Object{settings.With(func(c *corev1.ConfigMap) { c.Name = "copy" })},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(settings, clientgoscheme.Scheme, corev1.EventTypeNormal, "Copied", `Copied to %q`, "copy"),
		},
	}
	run := func(t *testing.T) {
		for b.Loop() {
			tc := tc
			tc.Run(t, clientgoscheme.Scheme, newCopier)
		}
	}
	all := func(string, string) (bool, error) { return true, nil }
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: run}}) {
		b.Fatal("the case failed")
	}
}

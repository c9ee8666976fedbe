package foreign_test

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestNoVersionServed: a type of which no version is served is neither a panic nor taken for unused (pitfall G-11,
// number 6).
func TestNoVersionServed(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Sickle"))
	theirs := instance(crd, plane.Namespace(t), "theirs", "")
	create(t, theirs)
	serve := func(yes bool) {
		t.Helper()
		fresh := stored(t, crd)
		fresh.Spec.Versions[0].Served = yes
		if err := live(t).Update(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
	}
	serve(false)
	g := newGuard(t, plane.Config(t))
	want := unknown("no version of Sickle is served, so that its instances cannot be listed")
	use, err := g.Check(t.Context(), keyOf(crd), true)
	assertUse(t, use, err, want)
	use, err = g.Delete(t.Context(), keyOf(crd), stored(t, crd).UID)
	assertUse(t, use, err, want)
	assertFences(t, crd, 0)
	serve(true)
	eventually(t, "the instance is not found", func(ctx context.Context) error {
		use, err := newGuard(t, plane.Config(t)).Check(ctx, keyOf(crd), true)
		if err != nil || use.State != plan.ForeignBlocking {
			return fmt.Errorf("%+v, %v", use, err)
		}
		return nil
	})
}

// A definition whose names are taken is never served. Its kind is another one's, whose instances are not meant.
func TestNamesAreTaken(t *testing.T) {
	t.Parallel()
	first := install(t, crdOf("Trowel"))
	create(t, instance(first, plane.Namespace(t), "theirs", ""))
	second := crdOf("Trowel", func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Names.Plural, crd.Spec.Names.Singular = "trowelz", "trowelz"
		crd.Name = "trowelz." + smithy
	})
	create(t, second)
	t.Cleanup(func() { uninstall(t, second) })
	eventually(t, "the names are accepted", func(context.Context) error {
		for _, c := range stored(t, second).Status.Conditions {
			if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
				return nil
			}
		}
		return fmt.Errorf("%v", stored(t, second).Status.Conditions)
	})
	g := newGuard(t, plane.Config(t))
	use, err := g.Check(t.Context(), keyOf(second), false)
	assertUse(t, use, err, none)
	use, err = g.Check(t.Context(), keyOf(second), true)
	assertUse(t, use, err, none)
	// Should its names become free, it is served with the fence.
	assertFences(t, second, 1)
	use, err = g.Delete(t.Context(), keyOf(second), stored(t, second).UID)
	assertUse(t, use, err, none)
	assertGone(t, second)
	use, err = g.Check(t.Context(), keyOf(first), false)
	if err != nil || use.State != plan.ForeignBlocking {
		t.Errorf("%+v, %v", use, err)
	}
}

// A client that takes the kind for another resource would look at the wrong instances.
func TestKindStandsForAnotherResource(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Vise"))
	g := newGuard(t, plane.Config(t))
	use, err := g.Check(t.Context(), keyOf(crd), false)
	assertUse(t, use, err, none)
	uninstall(t, crd)
	assertGone(t, crd)
	other := install(t, crdOf("Vise", func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Names.Plural = "visen"
		crd.Name = "visen." + smithy
	}))
	use, err = g.Check(t.Context(), keyOf(other), true)
	assertUse(t, use, err, unknown("instances of Vise could not be listed: visen and vises are of the same kind"))
	assertFences(t, other, 0)
}

// A fence that was left behind is taken off when the type turns out to stay.
func TestFenceThatWasLeft(t *testing.T) {
	t.Parallel()
	crd := install(t, crdOf("Wedge"))
	g := newGuard(t, plane.Config(t))
	use, err := g.Check(t.Context(), keyOf(crd), true)
	assertUse(t, use, err, none)
	use, err = g.Check(t.Context(), keyOf(crd), false)
	assertUse(t, use, err, none)
	assertFences(t, crd, 1)

	// Somebody takes the rule off, creates, and puts it on again.
	fresh := stored(t, crd)
	rules := fresh.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations
	fresh.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = nil
	if err := live(t).Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	namespace := plane.Namespace(t)
	eventuallyCreates(t, instance(crd, namespace, "theirs", ""))
	fresh.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = rules
	if err := live(t).Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	assertFences(t, crd, 1)
	use, err = g.Check(t.Context(), keyOf(crd), false)
	assertUse(t, use, err, blocking(0, "Wedge "+namespace+"/theirs"))
	assertFences(t, crd, 0)
}

// An API server takes two seconds for the creation of an instance of a new type, and judges it by the rules that were
// there when it began.
func TestCreationThatIsHeldUp(t *testing.T) {
	t.Parallel()
	crd := crdOf("Yoke")
	installNew(t, crd)
	namespace, c := plane.Namespace(t), live(t)
	// The client finds out about the type now, so that the creation is one request.
	if err := c.List(t.Context(), listOf(crd)); err != nil {
		t.Fatal(err)
	}
	established := func() time.Time {
		for _, c := range stored(t, crd).Status.Conditions {
			if c.Type == apiextensionsv1.Established {
				return c.LastTransitionTime.Time
			}
		}
		return time.Time{}
	}()
	answered := make(chan error, 1)
	started := false
	g, _ := guarded(t, interceptor.Funcs{
		Patch: func(ctx context.Context, cl client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if !started {
				started = true
				sent, once := make(chan struct{}), sync.Once{}
				go func() {
					// A request that the API server has no time for is sent again.
					wrote := func(httptrace.WroteRequestInfo) { once.Do(func() { close(sent) }) }
					trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: wrote})
					answered <- c.Create(trace, instance(crd, namespace, "theirs", ""))
				}()
				<-sent
				// A few round trips, for the API server to have begun with it.
				for range 5 {
					if err := c.List(ctx, listOf(crd)); err != nil {
						t.Error(err)
					}
				}
			}
			return cl.Patch(ctx, obj, patch, opts...)
		},
		// The creation for trial is not held up.
		Create: func(ctx context.Context, cl client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			<-time.After(time.Until(established.Add(2100 * time.Millisecond)))
			return cl.Create(ctx, obj, opts...)
		},
	})
	use, err := g.Delete(t.Context(), keyOf(crd), stored(t, crd).UID)
	if created := <-answered; created != nil {
		// This machine is too slow: the type had grown old, or was gone.
		if !apierrors.IsInvalid(created) && !apierrors.IsNotFound(created) {
			t.Fatal(created)
		}
		assertUse(t, use, err, none)
		return
	}
	assertUse(t, use, err, blocking(0, "Yoke "+namespace+"/theirs"))
	assertFences(t, crd, 0)
}

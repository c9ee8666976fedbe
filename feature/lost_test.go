package feature_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Nothing of a feature exists before its prerequisites are met: what exists says that they were, if the status is lost.
func TestLostRecord(t *testing.T) {
	web := func(context.Context, *Shop) (*appsv1.Deployment, error) {
		labels := map[string]string{"app": "web"}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		d.Spec.Replicas, d.Spec.Selector = new(int32(3)), &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
		return d, nil
	}
	unmet := spec(func(s *ShopSpec) { s.Unmet = "no electricity" })
	rollOut := func(given []client.Object, edits []edit, nested node) *rtesting.RolledOut[*Shop] {
		return rtesting.Rollout[*Shop]{
			Scheme: scheme, Resource: shop.With(edits...).Object(), GivenObjects: given, Reconciler: till(nested),
		}.Run(t)
	}
	owned := func() node { return espalier.Owns("Web", web) }
	elsewhere := func() node {
		return &reconcilers.WithConfig[*Shop]{
			Config:     func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
			Reconciler: owned(),
		}
	}
	made := rollOut(nil, nil, owned()).Objects()
	for name, test := range map[string]struct {
		exists   []client.Object
		given    []edit
		node     func() node
		passed   bool
		replicas int32
	}{
		"suspended":      {exists: made, given: given(unmet, paused), node: owned, passed: true},
		"kept":           {exists: made, given: given(unmet), node: owned, passed: true, replicas: 3},
		"nothing exists": {given: given(unmet, paused), node: owned, replicas: -1},
		"there is a record": {
			exists: made, given: given(unmet, paused, was(apis.FeatureWaiting, false)), node: owned, replicas: 3,
		},
		"children of another config do not count": {exists: made, given: given(unmet), node: elsewhere, replicas: 3},
	} {
		t.Run(name, func(t *testing.T) {
			done := rollOut(test.exists, test.given, test.node())
			record, replicas := done.Object().Status.Features[0], int32(-1)
			if live, ok := done.Find(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			}).(*appsv1.Deployment); ok {
				replicas = *live.Spec.Replicas
			}
			if record.Passed != test.passed || replicas != test.replicas {
				t.Errorf("prerequisites passed: %t, and there are %d replicas, want %t and %d (-1: no Deployment)",
					record.Passed, replicas, test.passed, test.replicas)
			}
		})
	}
}

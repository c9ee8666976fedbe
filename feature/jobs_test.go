package feature_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var load = rtesting.NewFixture(&batchv1.Job{
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "load"},
	Spec: batchv1.JobSpec{
		TTLSecondsAfterFinished: new(int32(60)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "load", Image: "load:1"}},
		}},
	},
})

func changed(r row, change func(*row)) row {
	change(&r)
	return r
}

// digestOfLoad is in records of earlier requests, and so of earlier releases.
const digestOfLoad = "444ce189b79d5908a9c92f8ff40648cf"

// A Job that its time to live has removed is run again when its manifest changes, and only then.
func TestJobsThatDeleteThemselves(t *testing.T) {
	owned := func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "test.espalier.dev/v1", Kind: "Shop", Name: "corner", UID: "corner-uid",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}}
	}
	marked := func(j *batchv1.Job) { j.Annotations = map[string]string{espalier.ManifestAnnotation: digestOfLoad} }
	ended := func(conditionType batchv1.JobConditionType) []client.Object {
		return []client.Object{load.With(owned, marked, func(j *batchv1.Job) {
			j.UID, j.Generation, j.CreationTimestamp = "load-uid", 1, metav1.NewTime(began)
			j.Status.Conditions = []batchv1.JobCondition{{Type: conditionType, Status: corev1.ConditionTrue}}
		})}
	}
	created := []rtesting.Event{
		rtesting.NewEvent(shop, scheme, corev1.EventTypeNormal, "Created", `Created Job "load"`),
	}
	knows := func(digest string, failed bool) edit {
		return func(s *Shop) {
			jobs := []apis.EndedJob{{Namespace: "default", Name: "load", Digest: digest, Failed: failed}}
			s.Status.Features[0].Conditions, s.Status.Features[0].Jobs = nil, jobs
		}
	}
	plain := func(s *Shop) { s.Status.Features[0].Conditions = nil }
	about := func(state apis.State, message string) apis.DependentStatus {
		d := bad("Job", "load", state, message)
		d.Group, d.Generation = "batch", 1
		return d
	}
	pending := about(apis.StateTaskPending, "0 of 1 completion")
	failing := func(message string) apis.DependentStatus { return about(apis.StateTaskFailing, message) }
	known := func(message string, generation int64) apis.DependentStatus {
		d := failing(message)
		d.Since, d.Generation = metav1.NewTime(began), generation
		return d
	}
	const gone = "it failed and is gone; it is run again when its manifest changes"
	tests{
		"it is run": changed(after(began, nil, ready(isFalse, apis.StateTaskPending, "Job default/load: 0 of 1 completion"),
			was(apis.FeatureProgressing, true, pending), knows(digestOfLoad, false)), func(r *row) {
			r.ExpectCreates, r.ExpectEvents = []client.Object{load.With(owned, marked)}, created
			r.ExpectedResult.RequeueAfter = grace
		}),
		"it is complete": changed(after(later, given(healthy, was(apis.FeatureHealthy, true), plain),
			was(apis.FeatureHealthy, true), knows(digestOfLoad, false)), func(r *row) {
			r.GivenObjects = ended(batchv1.JobComplete)
		}),
		"it is gone": after(later, given(healthy, was(apis.FeatureHealthy, true), knows(digestOfLoad, false))),
		"it failed": changed(after(later, given(healthy, was(apis.FeatureHealthy, true), knows(digestOfLoad, false)),
			ready(isFalse, apis.StateTaskFailing, "Job default/load: failed"),
			since(apis.FeatureProgressing, later, true, failing("failed")), knows(digestOfLoad, true)), func(r *row) {
			r.GivenObjects = ended(batchv1.JobFailed)
			r.ExpectedResult.RequeueAfter = grace
		}),
		"it failed, and is gone": changed(after(later,
			given(was(apis.FeatureProgressing, true, known("failed", 1)), knows(digestOfLoad, true)),
			ready(isFalse, apis.StateTaskFailing, "Job default/load: "+gone),
			was(apis.FeatureProgressing, true, known(gone, 0)), knows(digestOfLoad, true)), func(r *row) {
			r.ExpectedResult.RequeueAfter = grace - later.Sub(began)
		}),
		"its manifest has changed": changed(after(later,
			given(healthy, was(apis.FeatureHealthy, true), knows("another", false)),
			ready(isFalse, apis.StateTaskPending, "Job default/load: 0 of 1 completion"),
			since(apis.FeatureProgressing, later, true, pending), knows(digestOfLoad, false)), func(r *row) {
			r.ExpectCreates, r.ExpectEvents = []client.Object{load.With(owned, marked)}, created
			r.ExpectedResult.RequeueAfter = grace
		}),
		"it is suspended": after(later,
			given(paused, healthy, was(apis.FeatureHealthy, true), knows(digestOfLoad, true)),
			ready(isTrue, apis.StateSuspended, ""), since(apis.FeatureSuspended, later, true), knows(digestOfLoad, true)),
		"it is switched off": after(later, given(off, healthy, was(apis.FeatureHealthy, true), knows(digestOfLoad, false)),
			ready(isTrue, apis.StateDisabled, ""), since(apis.FeatureDisabled, later, false), plain),
	}.RunNode(t, scheme, func() node {
		job := func(context.Context, *Shop) (*batchv1.Job, error) { return load.Object(), nil }
		return till(espalier.Owns("Load", job).CreateOnly())
	})
}

// Nodes after a Job that has ended run, and those after one that failed do not.
func TestNodesAfterAJobThatIsGone(t *testing.T) {
	for failed, want := range map[bool]bool{false: true, true: false} {
		ran := false
		f := &featureOf{Name: "Till", Reconciler: espalier.Steps(
			espalier.Owns("Load", func(context.Context, *Shop) (*batchv1.Job, error) { return load.Object(), nil }).
				Reports("Loaded"),
			espalier.Runs("Open", func(context.Context, *Shop) error {
				ran = true
				return nil
			}).After("Load"),
		)}
		s := shop.With(was(apis.FeatureHealthy, true), func(s *Shop) {
			s.Status.Features[0].Jobs = []apis.EndedJob{
				{Namespace: "default", Name: "load", Digest: digestOfLoad, Failed: failed},
			}
		}).Object()
		config := (&rtesting.ExpectConfig{Scheme: scheme}).Config()
		ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(t.Context(), config), config)
		if _, err := f.Reconcile(ctx, s); err != nil {
			t.Fatal(err)
		}
		c := s.Status.GetCondition("Loaded")
		if ran != want || c == nil || (c.Status == isTrue) != want {
			t.Errorf("failed %t: the node after it ran: %t, and the condition is %v, want %t for both", failed, ran, c, want)
		}
	}
}

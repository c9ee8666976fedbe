package espalier_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podOfJob is the template of a Job.
var podOfJob = corev1.PodTemplateSpec{Spec: corev1.PodSpec{
	RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "gadget:1"}},
}}

// What the API server fills in when a Job is created stays. The next process, which does not know of the create, would
// be refused if it took that away.
func TestAJobIsCreated(t *testing.T) {
	job := rtesting.NewFixture(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "gadget", OwnerReferences: []metav1.OwnerReference{controlledByWidget},
		},
		Spec: batchv1.JobSpec{Template: podOfJob},
	})
	run(t, tests{"there is none": {
		Resource:      widget.Object(),
		ExpectCreates: []object{job},
		ExpectEvents:  event(corev1.EventTypeNormal, "Created", `Created Job "gadget"`),
		ExpectResource: widget.With(is("Done", metav1.ConditionFalse, "InProgress",
			"Job default/gadget: 0 of 1 completion")).Object(),
	}}, func() node {
		desired := func(context.Context, *resources.Widget) (*batchv1.Job, error) {
			return job.With(func(j *batchv1.Job) { j.OwnerReferences = nil }).Object(), nil
		}
		return espalier.Steps[*resources.Widget](espalier.Owns("Job", desired).Reports("Done"))
	})
}

// A Job that Kubernetes deletes when it has ended would run again. A literal leaves that to its author.
func TestAJobThatDeletesItselfIsRefused(t *testing.T) {
	short := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"},
		Spec:       batchv1.JobSpec{Template: podOfJob, TTLSecondsAfterFinished: new(int32(60))},
	}
	loose := &unstructured.Unstructured{}
	if err := scheme.Convert(short, loose, nil); err != nil {
		t.Fatal(err)
	}
	typed := func(context.Context, *resources.Widget) (*batchv1.Job, error) { return short.DeepCopy(), nil }
	untyped := func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) {
		return loose.DeepCopy(), nil
	}
	const text = `Job.batch "gadget" is invalid: spec.ttlSecondsAfterFinished: Forbidden: the Job would run again when ` +
		`it is gone: leave the field out, and the Job goes with its owner, or when its name changes`
	refused := rtesting.SubReconcilerTestCase[*resources.Widget]{
		Resource:       widget.Object(),
		ExpectResource: widget.With(is("Done", metav1.ConditionFalse, "Invalid", text)).Object(),
	}
	for what, reported := range map[string]node{
		"Owns":                espalier.Owns("Job", typed).Reports("Done"),
		"Owns CreateOnly":     espalier.Owns("Job", typed).CreateOnly().Reports("Done"),
		"Owns Unwatched":      espalier.Owns("Job", typed).Unwatched().Reports("Done"),
		"Owns unstructured":   espalier.Owns("Job", untyped).Type(loose).Reports("Done"),
		"OwnsEach":            espalier.OwnsEach("Job", each(typed)).Reports("Done"),
		"OwnsEach CreateOnly": espalier.OwnsEach("Job", each(typed)).CreateOnly().Reports("Done"),
	} {
		row := refused
		if what == "Owns Unwatched" {
			row.ExpectedResult = reconcilers.Result{RequeueAfter: time.Minute}
		}
		run(t, tests{what: row}, func() node { return reported })
	}
	run(t, tests{"nothing reports it": {
		Resource: widget.Object(), ShouldErr: true,
		Verify: func(t *testing.T, _ reconcilers.Result, err error) {
			if !apierrs.IsInvalid(err) || !strings.Contains(err.Error(), text) {
				t.Errorf("the error is %v, want an Invalid one with the text %s", err, text)
			}
		},
	}}, func() node { return espalier.Owns("Job", typed) })

	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(short, widget, scheme)}
	run(t, tests{"it is only read": {
		Resource: widget.Object(), GivenObjects: []object{short}, ExpectTracks: tracks,
		ExpectResource: widget.With(is("Done", metav1.ConditionFalse, "InProgress",
			"Job default/gadget: not completed yet")).Object(),
	}}, func() node { return espalier.Owns("Job", typed).ReadOnly().Reports("Done") })
	run(t, tests{"it is to be absent": {
		Resource: widget.Object(), ExpectTracks: tracks,
		ExpectResource: widget.With(is("Done", metav1.ConditionTrue, "NotDesired", "")).Object(),
	}}, func() node { return espalier.Owns("Job", typed).Absent().Reports("Done") })

	created := []object{short.DeepCopy()}
	created[0].SetOwnerReferences([]metav1.OwnerReference{controlledByWidget})
	accepted := tests{"it is accepted": {
		Resource: widget.Object(), ExpectCreates: created,
		ExpectEvents: event(corev1.EventTypeNormal, "Created", `Created Job "gadget"`),
	}}
	run(t, accepted, func() node {
		return &reconcilers.ChildReconciler[*resources.Widget, *batchv1.Job, *batchv1.JobList]{
			DesiredChild:               typed,
			MergeBeforeUpdate:          func(_, _ *batchv1.Job) {},
			ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *batchv1.Job, error) {},
		}
	})
	run(t, accepted, func() node {
		return &reconcilers.ChildSetReconciler[*resources.Widget, *batchv1.Job, *batchv1.JobList]{
			DesiredChildren: each(typed), MergeBeforeUpdate: func(_, _ *batchv1.Job) {},
			IdentifyChild: func(j *batchv1.Job) string { return j.Name },
			ReflectChildrenStatusOnParent: func(
				context.Context, *resources.Widget, reconcilers.ChildSetResult[*batchv1.Job],
			) {
			},
		}
	})
}

// each returns a function for a set that has one member.
func each[C client.Object](
	one func(context.Context, *resources.Widget) (C, error),
) func(context.Context, *resources.Widget) ([]C, error) {
	return func(ctx context.Context, w *resources.Widget) ([]C, error) {
		member, err := one(ctx, w)
		return []C{member}, err
	}
}

package espalier_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	rtesting "github.com/espalier-dev/espalier/testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the API server fills in when a Job is created stays. The next process, which does not know of the create, would
// be refused if it took that away.
func TestAJobIsCreated(t *testing.T) {
	job := rtesting.NewFixture(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "gadget", OwnerReferences: []metav1.OwnerReference{controlledByWidget},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "gadget:1"}},
		}}},
	})
	run(t, tests{"there is none": {
		Resource:       widget.Object(),
		ExpectCreates:  []object{job},
		ExpectEvents:   event(corev1.EventTypeNormal, "Created", `Created Job "gadget"`),
		ExpectResource: widget.With(is("Done", metav1.ConditionFalse, "InProgress", "Job default/gadget: 0 of 1 completion")).Object(),
	}}, func() node {
		desired := func(context.Context, *resources.Widget) (*batchv1.Job, error) {
			return job.With(func(j *batchv1.Job) { j.OwnerReferences = nil }).Object(), nil
		}
		return espalier.Steps[*resources.Widget](espalier.Owns("Job", desired).Reports("Done"))
	})
}

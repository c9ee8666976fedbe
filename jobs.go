package espalier

import (
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"

	batchv1 "k8s.io/api/batch/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refuseTimeToLive returns an Invalid error for the first desired Job with ttlSecondsAfterFinished. Kubernetes deletes
// such a Job when it has ended, and nothing tells a Job that has run from one that was never there.
func refuseTimeToLive[CT client.Object](desired []CT) error {
	for _, object := range desired {
		if hasTimeToLive(object) {
			return apierrs.NewInvalid(kinds.Job, object.GetName(), field.ErrorList{field.Forbidden(
				field.NewPath("spec", "ttlSecondsAfterFinished"),
				"the Job would run again when it is gone: leave the field out, and the Job goes with its owner, "+
					"or when its name changes")})
		}
	}
	return nil
}

// hasTimeToLive reports whether an object is a Job that Kubernetes deletes some time after it has ended.
func hasTimeToLive(object client.Object) bool {
	switch job := object.(type) {
	case *batchv1.Job:
		return job != nil && job.Spec.TTLSecondsAfterFinished != nil
	case *unstructured.Unstructured:
		return job != nil && job.GroupVersionKind().GroupKind() == kinds.Job &&
			content.Field(job, "spec", "ttlSecondsAfterFinished") != nil
	}
	return false
}

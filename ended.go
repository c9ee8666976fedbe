package espalier

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/endedjobs"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const messageRunFailed = "it failed and is gone; it is run again when its manifest changes"

// ManifestAnnotation is on a Job with ttlSecondsAfterFinished below a feature. Its value is a digest of the manifest
// that the Job was made of.
const ManifestAnnotation = "espalier.dev/manifest"

// runner is an object manager that does not run a Job again because its time to live has removed it. It needs a feature
// that remembers the Job, and otherwise runs it again.
//
//	the Job     the record has          what is done
//	exists      anything                it is made as desired, and recorded
//	is gone     the desired manifest    nothing: it ended, seen or not
//	is gone     anything else           it is run
type runner[CT client.Object] struct {
	reconcilers.ObjectManager[CT]
}

// Manage creates, updates and deletes, see [reconcilers.ObjectManager]. It returns no object for a Job that has ended.
func (r runner[CT]) Manage(ctx context.Context, resource client.Object, actual, desired CT) (CT, error) {
	record := endedjobs.Of(ctx)
	if record == nil || gotype.IsNil(desired) {
		return r.ObjectManager.Manage(ctx, resource, actual, desired)
	}
	digest, err := manifestOf(desired)
	switch {
	case err != nil:
		return actual, err
	case digest == "":
		return r.ObjectManager.Manage(ctx, resource, actual, desired)
	}
	exists := !gotype.IsNil(actual) && actual.GetResourceVersion() != ""
	known, recorded := record.Find(desired.GetNamespace(), desired.GetName())
	if !exists && recorded && known.Digest == digest {
		record.Keep(known)
		p := passOf[CT](ctx)
		p.ended = append(p.ended, known)
		var none CT
		return none, nil
	}
	manifest := map[string]string{ManifestAnnotation: digest}
	desired.SetAnnotations(reconcilers.MergeMaps(desired.GetAnnotations(), manifest))
	child, err := r.ObjectManager.Manage(ctx, resource, actual, desired)
	switch {
	case err == nil && !gotype.IsNil(child):
		record.Keep(apis.EndedJob{
			Namespace: child.GetNamespace(), Name: child.GetName(),
			Digest: cmp.Or(child.GetAnnotations()[ManifestAnnotation], digest),
			Failed: health.OfKind(jobKind, child).State == apis.StateTaskFailing,
		})
	case recorded:
		record.Keep(known)
	}
	return child, err
}

// Describe describes what writes the objects.
func (r runner[CT]) Describe() reconcilers.Description { return reconcilers.Describe(r.ObjectManager) }

var jobKind = kinds.Job.WithVersion("v1")

func isJob(object client.Object) bool { return content.KindOf(object).GroupKind() == kinds.Job }

// manifestOf returns the digest of a Job that deletes itself, as the author desires it, or an empty text for another.
func manifestOf(desired client.Object) (string, error) {
	job, err := content.Of(jobKind, desired)
	if err != nil {
		return "", err
	}
	if content.Field(job, "spec", "ttlSecondsAfterFinished") == nil || job.GetName() == "" {
		return "", nil
	}
	job = job.DeepCopy()
	for _, notOfTheAuthor := range [][]string{
		{"status"}, {"spec", "suspend"}, {"metadata", "ownerReferences"}, {"metadata", "labels", OwnerLabel},
		{"metadata", "annotations", SuspendedAnnotation}, {"metadata", "annotations", ManifestAnnotation},
	} {
		unstructured.RemoveNestedField(job.Object, notOfTheAuthor...)
	}
	text, err := json.Marshal(withoutEmpty(job.Object))
	if err != nil {
		return "", fmt.Errorf("unable to compare Job %s with its last run: %w", desired.GetName(), err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// withoutEmpty removes what the Go type of an object adds: a later version of the type may add more.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			member = withoutEmpty(member)
			if nested, ok := member.(map[string]any); member == nil || ok && len(nested) == 0 {
				delete(value, key)
			}
		}
	case []any:
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
	}
	return value
}

// endedState returns how ready a Job is that is gone.
func endedState(job apis.EndedJob) childState {
	state := childState{name: "Job " + client.ObjectKey{Namespace: job.Namespace, Name: job.Name}.String()}
	if state.Status = apis.ObjectCurrent; job.Failed {
		state.Status, state.Message = apis.ObjectFailed, messageRunFailed
	}
	return state
}

// endedHealth returns how an object is that has ended and is gone; nil for another object.
func (o *outcome[CT]) endedHealth(object reconcilers.ObservedObject, suspends bool) *apis.Health {
	for _, job := range o.ended {
		if object.Object != nil || job.Namespace != object.Namespace || job.Name != object.Name {
			continue
		}
		if job.Failed && !suspends {
			return &apis.Health{State: apis.StateTaskFailing, Grade: apis.StateDown, Message: messageRunFailed}
		}
		return &apis.Health{State: apis.StateCompleted}
	}
	return nil
}

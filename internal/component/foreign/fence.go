package foreign

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/write"

	"github.com/go-openapi/jsonpointer"
	"gomodules.xyz/jsonpatch/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attempts is how often a write is tried when others write at the same time.
const attempts = 5

// rule is the fence. Rules are identified by their expression, so it names the owner in a comment: it differs from
// every rule of the author, and from the fence of another owner.
func (g *Guard) rule() apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{
		Rule:            "oldSelf.hasValue() // fence of " + g.OwnerLabel + "=" + g.OwnerID,
		Message:         g.message(),
		Reason:          new(apiextensionsv1.FieldValueForbidden),
		OptionalOldSelf: new(true),
	}
}

// message is the message for a refused creation. It is what proves the fence.
func (g *Guard) message() string {
	return "the type is being removed by " + g.OwnerLabel + "=" + g.OwnerID + ", no more instances can be created"
}

// fenced reports whether every version has the rule.
func fenced(d *definition, rule apiextensionsv1.ValidationRule) bool {
	for i := range d.Spec.Versions {
		isRule := func(have apiextensionsv1.ValidationRule) bool { return reflect.DeepEqual(have, rule) }
		if !slices.ContainsFunc(rootSchema(&d.Spec.Versions[i]).XValidations, isRule) {
			return false
		}
	}
	return true
}

// ruleOperations remove the rule from every version, even if it was changed. With fence, they add it again in front, so
// that it is evaluated however expensive the other rules are.
func ruleOperations(d *definition, rule apiextensionsv1.ValidationRule, fence bool) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for i := range d.Spec.Versions {
		path := fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema/x-kubernetes-validations", i)
		have := rootSchema(&d.Spec.Versions[i]).XValidations
		left := len(have)
		// From the end, since a removal moves the rules behind it.
		for j, other := range slices.Backward(have) {
			if other.Rule == rule.Rule {
				operations = append(operations, jsonpatch.NewOperation("remove", fmt.Sprintf("%s/%d", path, j), nil))
				left--
			}
		}
		switch {
		case fence && len(have) == 0:
			operations = append(operations, jsonpatch.NewOperation("add", path, []apiextensionsv1.ValidationRule{rule}))
		case fence:
			operations = append(operations, jsonpatch.NewOperation("add", path+"/0", rule))
		case left == 0 && len(have) > 0:
			operations = append(operations, jsonpatch.NewOperation("remove", path, nil))
		}
	}
	return operations
}

// fence adds the rule and records it in the annotation. It returns the definition with both.
func (g *Guard) fence(ctx context.Context, d *definition, options ...client.PatchOption) (*definition, error) {
	for _, v := range d.Spec.Versions {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			const format = "creation of %s cannot be fenced off: version %s has no schema"
			return d, &unknownError{reason: fmt.Sprintf(format, d.kind(), v.Name), fence: true}
		}
	}
	what := fmt.Sprintf("creation of %s could not be fenced off", d.kind())
	operations := ruleOperations(d, g.rule(), true)
	recorded := append(g.recordOperations(d, d.record(stateFenced, "")), operations...)
	fresh, err := g.patch(ctx, d, recorded, options...)
	if isAnnotationRefused(err) {
		fresh, err = g.patch(ctx, d, operations, options...)
	}
	if err != nil {
		return d, explainFence(err, what)
	}
	if !fenced(fresh, g.rule()) {
		return fresh, &unknownError{reason: what + ": the API server does not keep the rule", fence: true}
	}
	return fresh, nil
}

// isAnnotationRefused reports whether there is no space for the annotation.
func isAnnotationRefused(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return strings.HasPrefix(cause.Field, "metadata.annotations")
	})
}

// recordProof records that the fence is proven for this generation of the definition, and when the margin is over. The
// API server changes the status of a definition after each change of its specification. That does not concern the
// proof.
func (g *Guard) recordProof(ctx context.Context, d *definition, marginOver time.Time) (*definition, error) {
	for try := 1; ; try++ {
		record := d.proof(marginOver)
		fresh, err := g.patch(ctx, d, g.recordOperations(d, record))
		switch {
		case err == nil:
			return fresh, nil
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
			// There is no space for the annotation, or a policy has come to refuse changes.
			g.Memory.rememberProof(d.UID, record)
			return d, nil
		case !apierrors.IsConflict(err) || try == attempts:
			return d, explainFence(err, fmt.Sprintf("the proof of the fence of %s could not be recorded", d.kind()))
		}
		now, failure := g.readDefinition(ctx, d.Name)
		if failure != nil {
			return d, failure
		}
		if now == nil || now.UID != d.UID || now.Generation != d.Generation || now.DeletionTimestamp != nil {
			return d, err
		}
		d = now
	}
}

// lift removes the fence, and records the obstacle, if there is one. Nothing is written if nothing has to change, or if
// the definition is being deleted. It returns the definition as it is then; nil if it is gone.
func (g *Guard) lift(ctx context.Context, d *definition, obstacle string) (lifted *definition, err error) {
	for range attempts {
		record := ""
		if obstacle != "" {
			record = d.record(stateUnproven, obstacle)
		}
		operations := append(ruleOperations(d, g.rule(), false), g.recordOperations(d, record)...)
		if len(operations) == 0 || d.DeletionTimestamp != nil {
			return d, nil
		}
		lifted, err = g.patch(ctx, d, operations)
		if obstacle != "" && isAnnotationRefused(err) {
			obstacle = ""
			continue
		}
		if !apierrors.IsConflict(err) {
			break
		}
		fresh, failure := g.readDefinition(ctx, d.Name)
		if failure != nil || fresh == nil || fresh.UID != d.UID {
			return nil, failure
		}
		d = fresh
	}
	if err == nil || apierrors.IsNotFound(err) {
		return lifted, nil
	}
	return nil, explainFence(err, fmt.Sprintf("the fence of %s could not be lifted", d.kind()))
}

// recordOperations make the annotation be record; they remove it if record is empty.
func (g *Guard) recordOperations(d *definition, record string) []jsonpatch.Operation {
	key := g.annotation()
	have, found := d.Annotations[key]
	path := "/metadata/annotations/" + jsonpointer.Escape(key)
	switch {
	case record == "" && found:
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", path, nil)}
	case record == have:
		return nil
	case len(d.Annotations) == 0:
		annotations := map[string]string{key: record}
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations", annotations)}
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, record)}
}

// patch changes this very state of the definition; if it has changed since, the error is a conflict.
func (g *Guard) patch(
	ctx context.Context, d *definition, operations []jsonpatch.Operation, options ...client.PatchOption,
) (*definition, error) {
	patch, err := write.JSONPatch(d.ResourceVersion, operations...)
	if err != nil {
		return nil, err
	}
	object := named(kinds.CustomResourceDefinition, d.Name)
	options = append(options, g.manager())
	if err := g.Client.Patch(ctx, object, patch, options...); err != nil {
		return nil, err
	}
	fresh, err := typed(object)
	if err == nil && len(options) == 1 {
		fresh.written = object
		g.remember(fresh)
	}
	return fresh, err
}

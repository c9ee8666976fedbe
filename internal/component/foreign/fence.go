package foreign

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attempts is how often a write is tried that others come in between of.
const attempts = 5

// maxOwner keeps the message of the rule below what the API server accepts, whatever the owner is called.
const maxOwner = 512

// rule is the fence. Rules are told apart by their expression, so this one names the owner in a comment: a rule of the author,
// or the fence of another owner, is never taken for it.
func (g *Guard) rule() apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{
		Rule:            "oldSelf.hasValue() // fence of " + oneLine(g.OwnerLabel) + "=" + oneLine(g.OwnerID),
		Message:         g.message(),
		Reason:          new(apiextensionsv1.FieldValueForbidden),
		OptionalOldSelf: new(true),
	}
}

// message is what those read who are refused, and what proves the fence.
func (g *Guard) message() string {
	owner := oneLine(g.Owner)
	if owner == "" {
		owner = oneLine(g.OwnerLabel) + "=" + oneLine(g.OwnerID)
	}
	return "the type is being removed by " + owner + ", no more instances can be created"
}

// oneLine takes out what would end a comment or is not allowed in a message.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if runes := []rune(s); len(runes) > maxOwner {
		return string(runes[:maxOwner])
	}
	return s
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func isRule(have, want apiextensionsv1.ValidationRule) bool {
	return have.Rule == want.Rule && have.Message == want.Message && have.MessageExpression == "" && have.FieldPath == "" &&
		have.Reason != nil && *have.Reason == *want.Reason && have.OptionalOldSelf != nil && *have.OptionalOldSelf == *want.OptionalOldSelf
}

// fenced tells whether every version has the rule.
func fenced(d *definition, rule apiextensionsv1.ValidationRule) bool {
	for _, v := range d.Spec.Versions {
		found := false
		for _, have := range rules(v) {
			found = found || isRule(have, rule)
		}
		if !found {
			return false
		}
	}
	return true
}

func rules(v apiextensionsv1.CustomResourceDefinitionVersion) []apiextensionsv1.ValidationRule {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema.XValidations
}

// fenceOperations put the rule into every version, in front, so that it is evaluated however expensive the others are. A rule
// of ours that somebody has changed is replaced. A version without schema cannot be fenced.
func fenceOperations(d *definition, rule apiextensionsv1.ValidationRule) (operations []operation, unfit string) {
	for i, v := range d.Spec.Versions {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			return nil, v.Name
		}
		removals, left := liftVersion(i, v, rule)
		operations = append(operations, removals...)
		if left == 0 {
			operations = append(operations, operation{"add", rulesPath(i), []apiextensionsv1.ValidationRule{rule}})
		} else {
			operations = append(operations, operation{"add", rulesPath(i) + "/0", rule})
		}
	}
	return operations, ""
}

// liftOperations take the rule out of every version.
func liftOperations(d *definition, rule apiextensionsv1.ValidationRule) []operation {
	var operations []operation
	for i, v := range d.Spec.Versions {
		removals, _ := liftVersion(i, v, rule)
		operations = append(operations, removals...)
	}
	return operations
}

func liftVersion(i int, v apiextensionsv1.CustomResourceDefinitionVersion, rule apiextensionsv1.ValidationRule) (operations []operation, left int) {
	have := rules(v)
	left = len(have)
	// From the end, since a removal moves those behind it.
	for j := len(have) - 1; j >= 0; j-- {
		if have[j].Rule == rule.Rule {
			operations = append(operations, operation{Op: "remove", Path: fmt.Sprintf("%s/%d", rulesPath(i), j)})
			left--
		}
	}
	if left == 0 && len(operations) > 0 {
		operations = []operation{{Op: "remove", Path: rulesPath(i)}}
	}
	return operations, left
}

func rulesPath(version int) string {
	return fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema/x-kubernetes-validations", version)
}

// fence puts the rule on, and a note that it is there, and returns the definition with both.
func (g *Guard) fence(ctx context.Context, d *definition) (*definition, error) {
	rule := g.rule()
	operations, unfit := fenceOperations(d, rule)
	if unfit != "" {
		return d, &unknownError{reason: fmt.Sprintf("creation of %s cannot be fenced off: version %s has no schema", d.kind(), unfit)}
	}
	what := fmt.Sprintf("creation of %s could not be fenced off", d.kind())
	fresh, err := g.patch(ctx, d, append(g.noteOperations(d, d.noteFenced()), operations...))
	if apierrors.IsInvalid(err) {
		// It may be that there is no room for a note.
		fresh, err = g.patch(ctx, d, operations)
	}
	if err != nil {
		return d, explain(err, what)
	}
	if !fenced(fresh, rule) {
		return fresh, &unknownError{reason: what + ": the API server does not keep the rule"}
	}
	return fresh, nil
}

// noteProof notes that the fence is proven for this generation of the definition.
func (g *Guard) noteProof(ctx context.Context, d *definition) (*definition, error) {
	fresh, err := g.patch(ctx, d, g.noteOperations(d, d.noteProven()))
	if apierrors.IsInvalid(err) {
		// There is no room for a note. It spares effort, no more.
		return d, nil
	}
	if err != nil {
		return d, explain(err, fmt.Sprintf("the fence of %s could not be noted", d.kind()))
	}
	return fresh, nil
}

// lift takes the fence off, and leaves a note of the obstacle, if there is one. Nothing is written if nothing has to change, or if
// the definition is being deleted.
func (g *Guard) lift(ctx context.Context, d *definition, obstacle string) error {
	uid, err := d.UID, error(nil)
	for range attempts {
		if d.terminating() {
			return nil
		}
		note := ""
		if obstacle != "" {
			note = d.noteUnproven(obstacle)
		}
		operations := append(liftOperations(d, g.rule()), g.noteOperations(d, note)...)
		if len(operations) == 0 {
			return nil
		}
		_, err = g.patch(ctx, d, operations)
		if apierrors.IsInvalid(err) && obstacle != "" {
			// There is no room for a note.
			obstacle = ""
			continue
		}
		if !apierrors.IsConflict(err) {
			break
		}
		if d, err = g.readDefinition(ctx, d.Name); err != nil || d == nil || d.UID != uid {
			return err
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("could not lift the fence of %s: %w", d.kind(), err)
	}
	return nil
}

// noteOperations make the note be what is given; none if it is empty.
func (g *Guard) noteOperations(d *definition, note string) []operation {
	key := g.annotation()
	have, found := d.Annotations[key]
	path := "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	switch {
	case note == "" && found:
		return []operation{{Op: "remove", Path: path}}
	case note == "" || note == have:
		return nil
	case len(d.Annotations) == 0:
		return []operation{{"add", "/metadata/annotations", map[string]string{key: note}}}
	}
	return []operation{{"add", path, note}}
}

// patch changes this very state of the definition; if it has changed since, the error is a conflict.
func (g *Guard) patch(ctx context.Context, d *definition, operations []operation) (*definition, error) {
	// Replaced rather than tested, another version is a conflict and not an invalid request.
	operations = append([]operation{{"replace", "/metadata/resourceVersion", d.ResourceVersion}}, operations...)
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	object := emptyDefinition(d.Name)
	if err := g.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), g.manager()); err != nil {
		return nil, err
	}
	return viewOf(object)
}

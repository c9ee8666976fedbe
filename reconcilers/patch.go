package reconcilers

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	evanphx "github.com/evanphx/json-patch/v5"
	"gomodules.xyz/jsonpatch/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchGenerationMismatch is returned by [Patch.Apply] for an object of another generation than the patch was made for.
//
//lint:ignore ST1012 the name is part of the compatible vocabulary
var PatchGenerationMismatch = errors.New("patch generation did not match target")

// Patch is the difference between two states of an object, as an RFC 6902 JSON patch. It can be applied to a third
// state that has the same generation.
type Patch struct {
	generation int64
	bytes      []byte
}

// NewPatch returns the patch that changes base into update. It is valid for the generation of base.
func NewPatch(base, update client.Object) (*Patch, error) {
	baseBytes, err := json.Marshal(base)
	if err != nil {
		return nil, fmt.Errorf("unable to marshal the base of a patch: %w", err)
	}
	updateBytes, err := json.Marshal(update)
	if err != nil {
		return nil, fmt.Errorf("unable to marshal the target of a patch: %w", err)
	}
	operations, err := jsonpatch.CreatePatch(baseBytes, updateBytes)
	if err != nil {
		return nil, fmt.Errorf("unable to compute a patch: %w", err)
	}
	bytes, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("unable to marshal a patch: %w", err)
	}
	return &Patch{generation: base.GetGeneration(), bytes: bytes}, nil
}

// Apply changes rebase by the patch. If the generation differs, or the patch cannot be applied, it returns an error and
// rebase is unchanged. If the outcome cannot be decoded, it returns an error and rebase is partly decoded.
func (p *Patch) Apply(rebase client.Object) error {
	if rebase.GetGeneration() != p.generation {
		return PatchGenerationMismatch
	}
	rebaseBytes, err := json.Marshal(rebase)
	if err != nil {
		return fmt.Errorf("unable to marshal the object to patch: %w", err)
	}
	patch, err := evanphx.DecodePatch(p.bytes)
	if err != nil {
		return fmt.Errorf("unable to decode a patch: %w", err)
	}
	patched, err := patch.Apply(rebaseBytes)
	if err != nil {
		return fmt.Errorf("unable to apply a patch: %w", err)
	}
	// Decoding does not remove anything, so rebase is emptied before.
	reflect.ValueOf(rebase).Elem().SetZero()
	return json.Unmarshal(patched, rebase)
}

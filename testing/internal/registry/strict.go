package registry

import (
	"fmt"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
)

// CheckFields implements [Strategy].
func (s goStrategy) CheckFields(content map[string]any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, s.New(), true)
}

// CheckFields implements [Strategy].
func (s definitionStrategy) CheckFields(content map[string]any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, s.New(), true)
}

// CheckFields implements [Strategy]. The fields of metadata alone are known.
func (s unstructuredStrategy) CheckFields(content map[string]any) error {
	return strictError(unknownMetadata(runtime.DeepCopyJSON(content), nil))
}

// CheckFields implements [Strategy].
func (c *customResource) CheckFields(content map[string]any) error {
	object := runtime.DeepCopyJSON(content)
	unknown := pruning.PruneWithOptions(object, c.schema.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	return strictError(append(unknown, unknownMetadata(object, c.schema.structural)...))
}

// unknownMetadata removes unknown fields from the metadata of an object, and of those embedded in it, and returns their
// paths. Malformed metadata is left to those who decode it.
func unknownMetadata(object map[string]any, structural *structuralschema.Structural) []string {
	_, unknown := objectmeta.CoerceWithOptions(nil, object, structural, true,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	return unknown
}

func strictError(unknown []string) error {
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	errs := make([]error, len(unknown))
	for i, path := range unknown {
		errs[i] = fmt.Errorf("unknown field %q", path)
	}
	return runtime.NewStrictDecodingError(errs)
}

package registry

import (
	"context"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// objectSchema is the compiled schema of one version of a definition. It never changes.
type objectSchema struct {
	structural *structuralschema.Structural
	// object and status validate what the schema says without rules. Status is nil without a schema of the status.
	object, status validation.SchemaValidator
	// rules evaluates those of the Common Expression Language. It returns nil if there are none. They are compiled by
	// the first call: most definitions of a test have no object.
	rules func() *cel.Validator
}

// newObjectSchema compiles a schema. It returns an error if the schema is not structural, which the packages below rely
// on.
func newObjectSchema(s *apiextensions.JSONSchemaProps, path *field.Path) (*objectSchema, field.ErrorList) {
	structural, err := structuralschema.NewStructural(s)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	if errs := structuralschema.ValidateStructural(path, structural); len(errs) > 0 {
		return nil, errs
	}
	compiled := &objectSchema{structural: structural}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	if compiled.object, _, err = validation.NewSchemaValidator(s); err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", "error building validator: "+err.Error())}
	}
	if status, ok := s.Properties["status"]; ok {
		if compiled.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, field.ErrorList{field.Invalid(path, "", "error building validator: "+err.Error())}
		}
	}
	compiled.rules = sync.OnceValue(func() *cel.Validator {
		return cel.NewValidator(structural, true, celconfig.PerCallLimit)
	})
	return compiled, nil
}

// complete sets defaults and removes unknown fields, in place and in the order of an API server.
func (s *objectSchema) complete(object map[string]any) {
	defaulting.Default(object, s.structural)
	pruning.Prune(object, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	// Validation finds malformed metadata of an embedded resource, too.
	_ = objectmeta.Coerce(nil, object, s.structural, false, false)
}

func (s *objectSchema) validate(object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, s.object)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, object, s.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	return append(errs, s.validateRules(errs, object, nil)...)
}

// validateUpdate accepts what was invalid before and has not changed, see "Validation ratcheting" in the documentation
// of custom resources.
func (s *objectSchema) validateUpdate(object, old map[string]any, subresource string) field.ErrorList {
	ctx := context.Background()
	both := common.NewCorrelatedObject(object, old, &model.Structural{Structural: s.structural})
	var errs field.ErrorList
	if subresource == "" {
		errs = validation.ValidateCustomResourceUpdate(
			nil, object, old, s.object, validation.WithRatcheting(both))
		errs = append(errs, objectmeta.Validate(ctx, nil, object, s.structural, false)...)
	} else if status, ok := object["status"]; ok && s.status != nil {
		errs = validation.ValidateCustomResourceUpdate(
			field.NewPath("status"), status, old["status"], s.status, validation.WithRatcheting(both.Key("status")))
	}
	if lists := listtype.ValidateListSetsAndMaps(nil, s.structural, object); len(lists) > 0 &&
		len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) == 0 {
		errs = append(errs, lists...)
	}
	return append(errs, s.validateRules(errs, object, old, cel.WithRatcheting(both))...)
}

// validateRules evaluates rules on an object that is else wrong in the ways that found says. Old is nil for a create.
func (s *objectSchema) validateRules(
	found field.ErrorList, object, old map[string]any, options ...cel.Option,
) field.ErrorList {
	rules := s.rules()
	if rules == nil {
		return nil
	}
	for _, err := range found {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the "+
				"object was invalid; correct the existing errors to complete validation")}
		}
	}
	// A nil map in an interface would count as an old object.
	var previous any
	if old != nil {
		previous = old
	}
	errs, _ := rules.Validate(
		context.Background(), nil, s.structural, object, previous, celconfig.RuntimeCELCostBudget, options...)
	return errs
}

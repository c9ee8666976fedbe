package apiresources

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/espalier-dev/espalier/testing/internal/memserver"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// noCreation is the prefix of a validation rule that refuses every creation. It is the only rule that has an effect
// here: a component adds it to a type before it deletes the type, and checks that it works.
const noCreation = "oldSelf.hasValue()"

// RefuseFenced returns a reaction that refuses to create instances of a type whose definition in the server has a
// fence.
func RefuseFenced(server *memserver.Server) clientgotesting.ReactionFunc {
	return func(action clientgotesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() != "create" || action.GetSubresource() != "" {
			return false, nil, nil
		}
		kind := schema.GroupKind{Group: action.GetResource().Group, Kind: action.GetResource().Resource}
		for _, definition := range definitions(server) {
			if definition.Spec.Group != kind.Group || definition.Spec.Names.Kind != kind.Kind {
				continue
			}
			if rule := fenceOf(definition, action.GetResource().Version); rule != nil {
				invalid := field.Forbidden(nil, rule.Message)
				return true, nil, apierrors.NewInvalid(kind, recording.NameOf(action), field.ErrorList{invalid})
			}
		}
		return false, nil, nil
	}
}

func fenceOf(definition *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.ValidationRule {
	for _, v := range definition.Spec.Versions {
		if v.Name != version || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		for i := range v.Schema.OpenAPIV3Schema.XValidations {
			rule := &v.Schema.OpenAPIV3Schema.XValidations[i]
			if strings.HasPrefix(rule.Rule, noCreation) && rule.OptionalOldSelf != nil && *rule.OptionalOldSelf {
				return rule
			}
		}
	}
	return nil
}

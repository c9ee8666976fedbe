package controller

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// isTrue reports whether a condition of the tenant is True.
func isTrue(tenant *v1alpha1.Tenant, condition string) bool {
	return apis.ConditionIsTrue(tenant.Status.GetCondition(condition))
}

// invalid says that a tenant asks for what it cannot have, where the schema cannot know. A node that returns it changes
// nothing and reports it. Without problems there is no error.
func invalid(problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return espalier.NotReady("Invalid", "%s", problems.ToAggregate())
}

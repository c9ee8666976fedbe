package registry

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateRevision requires what the Kubernetes API reference requires, ControllerRevision v1 apps: data, which never
// change.
func validateRevision(r, old *appsv1.ControllerRevision) field.ErrorList {
	at := field.NewPath("data")
	errs := notNegative(field.NewPath("revision"), &r.Revision)
	if old != nil {
		if !equality.Semantic.DeepEqual(r.Data, old.Data) {
			errs = append(errs, immutable(at, "<value omitted>"))
		}
		return errs
	}
	var content map[string]any
	if err := json.Unmarshal(r.Data.Raw, &content); err != nil || content == nil {
		errs = append(errs, field.Required(at, "data must be a valid JSON object"))
	}
	return errs
}

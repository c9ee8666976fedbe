package registry

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateEvent requires the namespace of the object that the event is about, and "default" if that has none. An event
// with eventTime, which is one of package events, says who reports what.
func validateEvent(e, _ *corev1.Event) field.ErrorList {
	about, path := e.InvolvedObject.Namespace, field.NewPath("involvedObject", "namespace")
	if e.EventTime.IsZero() {
		if about == e.Namespace || about == "" && e.Namespace == corev1.NamespaceDefault {
			return nil
		}
		return field.ErrorList{field.Invalid(path, about, "does not match event.namespace")}
	}
	var errs field.ErrorList
	if about == "" && e.Namespace != corev1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem {
		errs = append(errs, field.Invalid(path, about, "does not match event.namespace"))
	}
	errs = append(errs, invalid(field.NewPath("reportingComponent"), e.ReportingController,
		validation.IsQualifiedName(e.ReportingController))...)
	for _, text := range []struct {
		name, value string
		limit       int
	}{
		{"reportingInstance", e.ReportingInstance, 128}, {"action", e.Action, 128}, {"reason", e.Reason, 128},
		{"message", e.Message, 1024},
	} {
		if text.name != "message" {
			errs = append(errs, required(field.NewPath(text.name), text.value)...)
		}
		if len(text.value) > text.limit {
			errs = append(errs, field.TooLong(field.NewPath(text.name), "", text.limit))
		}
	}
	return errs
}

// validateNewEvent requires what the Kubernetes API reference requires, Event v1 events.k8s.io. Only the series of an
// event changes.
func validateNewEvent(e, old *eventsv1.Event) field.ErrorList {
	errs := validateEvent(&corev1.Event{
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, EventTime: e.EventTime, Action: e.Action,
		Reason: e.Reason, Message: e.Note, ReportingController: e.ReportingController,
		ReportingInstance: e.ReportingInstance,
	}, nil)
	if old == nil || !equality.Semantic.DeepEqual(e.Series, old.Series) {
		errs = append(errs, validateSeries(e.Series, field.NewPath("series"))...)
	}
	if old != nil {
		kept := e.DeepCopy()
		kept.ObjectMeta, kept.TypeMeta, kept.Series = old.ObjectMeta, old.TypeMeta, old.Series
		if !equality.Semantic.DeepEqual(kept, old) {
			errs = append(errs, field.Forbidden(nil, "only series may change"))
		}
		return errs
	}
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	errs = append(errs, supported(field.NewPath("type"), e.Type, corev1.EventTypeNormal, corev1.EventTypeWarning)...)
	for name, is := range ordered(map[string]bool{
		"deprecatedFirstTimestamp": !e.DeprecatedFirstTimestamp.IsZero(),
		"deprecatedLastTimestamp":  !e.DeprecatedLastTimestamp.IsZero(),
		"deprecatedCount":          e.DeprecatedCount != 0,
		"deprecatedSource":         e.DeprecatedSource != corev1.EventSource{},
	}) {
		if is {
			errs = append(errs, field.Invalid(field.NewPath(name), "", "needs to be unset"))
		}
	}
	return errs
}

func validateSeries(series *eventsv1.EventSeries, at *field.Path) field.ErrorList {
	if series == nil {
		return nil
	}
	var errs field.ErrorList
	if series.Count < 2 {
		errs = append(errs, field.Invalid(at.Child("count"), "", "should be at least 2"))
	}
	if series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(at.Child("lastObservedTime"), ""))
	}
	return errs
}

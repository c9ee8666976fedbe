package testing

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// Event is a recorded event. There are two recorders in a Config, and the harness records the events of both:
//
//   - Config.Recorder records events with a Message. The nodes of this toolkit use it for their own events. Expect
//     them with [Normal], [Warning] or [NewEvent].
//   - The recorder embedded in a Config records events of the API events.k8s.io, which have an Action and a Note.
//     Expect them with [NewEventf].
type Event struct {
	// Regarding, unless nil, is the object that the event is about. The harness sets TypeMeta and NamespacedName from
	// it, with the kind that the scheme of the case has for its Go type. A recorded event has none.
	Regarding client.Object
	// TypeMeta is the kind of the object that the event is about.
	metav1.TypeMeta
	// NamespacedName is the name of the object that the event is about.
	types.NamespacedName
	// Related is a second object that the event is about, nil if there is none.
	Related *corev1.ObjectReference

	// Type is Normal or Warning.
	Type string
	// Reason is a word for the reason.
	Reason string
	// Message describes an event of Config.Recorder.
	Message string
	// Action is a word for the action, in an event of the embedded recorder.
	Action string
	// Note describes an event of the embedded recorder.
	Note string
}

// Normal returns an event of the type Normal about obj, by Config.Recorder. The harness finds the kind of obj in the
// scheme of the case:
//
//	ExpectEvents: []rtesting.Event{rtesting.Normal(tenant, "Created", `Created ResourceQuota "quota"`)},
func Normal(obj client.Object, reason, message string) Event {
	return Event{Regarding: obj, Type: corev1.EventTypeNormal, Reason: reason, Message: message}
}

// Warning is [Normal] for an event of the type Warning.
func Warning(obj client.Object, reason, message string) Event {
	return Event{Regarding: obj, Type: corev1.EventTypeWarning, Reason: reason, Message: message}
}

// resolved returns the event with the kind and name of the object that it is about, in place of the object.
func (e Event) resolved(scheme *runtime.Scheme) (Event, error) {
	if gotype.IsNil(e.Regarding) {
		return e, nil
	}
	about, err := newEvent(e.Regarding, nil, scheme)
	e.Regarding, e.TypeMeta, e.NamespacedName = nil, about.TypeMeta, about.NamespacedName
	return e, err
}

// NewEvent returns an event of Config.Recorder, the one that the nodes of this toolkit use for their own events, with a
// message that is formatted. It panics if the kind of the object is not known. See [Normal] for a shorter way.
func NewEvent(
	factory client.Object, scheme *runtime.Scheme, eventtype, reason, messageFormat string, a ...interface{},
) Event {
	event, err := newEvent(factory, nil, scheme)
	if err != nil {
		panic(err)
	}
	event.Type, event.Reason, event.Message = eventtype, reason, fmt.Sprintf(messageFormat, a...)
	return event
}

// NewEventf returns an event of the recorder embedded in a Config. Related may be nil. It panics if the kind of an
// object is not known.
func NewEventf(
	regarding, related client.Object, scheme *runtime.Scheme, eventtype, reason, action, note string, a ...interface{},
) Event {
	event, err := newEvent(regarding, related, scheme)
	if err != nil {
		panic(err)
	}
	event.Type, event.Reason, event.Action, event.Note = eventtype, reason, action, fmt.Sprintf(note, a...)
	return event
}

// newEvent returns an event about an object, and about a second one unless that is nil.
func newEvent(regarding, related runtime.Object, scheme *runtime.Scheme) (Event, error) {
	event, err := recording.NewEvent(regarding, related, scheme)
	if err != nil {
		return Event{}, err
	}
	return eventOf(event), nil
}

func eventOf(e recording.Event) Event {
	return Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: e.Regarding.APIVersion, Kind: e.Regarding.Kind},
		NamespacedName: types.NamespacedName{Namespace: e.Regarding.Namespace, Name: e.Regarding.Name},
		Related:        e.Related,
		Type:           e.Type, Reason: e.Reason, Message: e.Message, Action: e.Action, Note: e.Note,
	}
}

// eventsOf returns the events that recorders recorded.
func eventsOf(recorded *recording.Events) []Event {
	var events []Event
	for _, event := range recorded.All() {
		events = append(events, eventOf(event))
	}
	return events
}

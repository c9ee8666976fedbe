package recording

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Event is what a recorder of events was called with.
type Event struct {
	Regarding, Related runtime.Object
	Type, Reason       string
	// Message is the text in the API before events.k8s.io, Action and Note are set in that of events.k8s.io.
	Message, Action, Note string
}

// OldEvents hands on events of the API before events.k8s.io. Annotations are dropped.
type OldEvents struct{ To func(Event) }

var _ record.EventRecorder = (*OldEvents)(nil)

// Event implements [record.EventRecorder].
func (r *OldEvents) Event(object runtime.Object, eventtype, reason, message string) {
	r.To(Event{Regarding: object, Type: eventtype, Reason: reason, Message: message})
}

// Eventf implements [record.EventRecorder].
func (r *OldEvents) Eventf(object runtime.Object, eventtype, reason, format string, args ...any) {
	r.Event(object, eventtype, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements [record.EventRecorder].
func (r *OldEvents) AnnotatedEventf(
	object runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any,
) {
	r.Event(object, eventtype, reason, fmt.Sprintf(format, args...))
}

// Events hands on events of the API events.k8s.io. Annotations are dropped.
type Events struct{ To func(Event) }

var _ ctrlrecorder.EventRecorder = (*Events)(nil)

// Eventf implements [events.EventRecorder].
func (r *Events) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.To(Event{
		Regarding: regarding, Related: related,
		Type: eventtype, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...),
	})
}

// AnnotatedEventf implements [events.AnnotatedEventRecorder].
func (r *Events) AnnotatedEventf(
	regarding, related runtime.Object, _ map[string]string, eventtype, reason, action, note string, args ...any,
) {
	r.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

package recording

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// Event is a recorded event. One of the API before events.k8s.io has a Message, others have an Action and a Note.
type Event struct {
	// Regarding is the object that the event is about. Related is a second one, nil if there is none.
	Regarding, Related *corev1.ObjectReference

	Type, Reason, Message, Action, Note string
}

// NewEvent returns an event about an object, and about a second one unless that is nil.
func NewEvent(regarding, related runtime.Object, scheme *runtime.Scheme) (event Event, err error) {
	if event.Regarding, err = referTo(regarding, scheme); err != nil {
		return Event{}, fmt.Errorf("cannot say which object the event is about: %w", err)
	}
	if gotype.IsNil(related) {
		return event, nil
	}
	if event.Related, err = referTo(related, scheme); err != nil {
		return Event{}, fmt.Errorf("cannot say which object the event is related to: %w", err)
	}
	return event, nil
}

// referTo refers to the object that obj stands for.
func referTo(obj runtime.Object, scheme *runtime.Scheme) (*corev1.ObjectReference, error) {
	if gotype.IsNil(obj) {
		return nil, reference.ErrNilObject
	}
	return reference.GetReference(scheme, obj.DeepCopyObject())
}

// Events has the events of both recorders of a config. It is the newer recorder itself, of the API events.k8s.io, and
// keeps no annotations.
type Events struct {
	scheme  *runtime.Scheme
	journal *Journal

	mu     sync.Mutex
	events []Event
}

var _ ctrlrecorder.EventRecorder = (*Events)(nil)

// NewEvents returns recorders that keep the order of events in the journal too.
func NewEvents(scheme *runtime.Scheme, journal *Journal) *Events {
	return &Events{scheme: scheme, journal: journal}
}

// All returns the recorded events.
func (e *Events) All() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.events)
}

// add records an event. An event about an object that cannot be referred to is recorded with the error as its message:
// it has to fail the test rather than the code under test.
func (e *Events) add(regarding, related runtime.Object, event Event) {
	about, err := NewEvent(regarding, related, e.scheme)
	if err != nil {
		about.Regarding, event.Message = &corev1.ObjectReference{}, err.Error()
	}
	event.Regarding, event.Related = about.Regarding, about.Related
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, event)
	e.journal.addEvent(event)
}

// Eventf implements [ctrlrecorder.EventRecorder].
func (e *Events) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	e.add(regarding, related, Event{Type: eventtype, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...)})
}

// AnnotatedEventf implements [ctrlrecorder.EventRecorder].
func (e *Events) AnnotatedEventf(
	regarding, related runtime.Object, _ map[string]string, eventtype, reason, action, note string, args ...any,
) {
	e.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// Old returns the recorder of the API before events.k8s.io.
func (e *Events) Old() record.EventRecorder { return oldRecorder{e} }

type oldRecorder struct{ events *Events }

// Event implements [record.EventRecorder].
func (r oldRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.events.add(object, nil, Event{Type: eventtype, Reason: reason, Message: message})
}

// Eventf implements [record.EventRecorder].
func (r oldRecorder) Eventf(object runtime.Object, eventtype, reason, format string, args ...any) {
	r.Event(object, eventtype, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements [record.EventRecorder].
func (r oldRecorder) AnnotatedEventf(
	object runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any,
) {
	r.Eventf(object, eventtype, reason, format, args...)
}

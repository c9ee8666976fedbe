package testing

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Event is a recorded event. Make one with [NewEvent] or [NewEventf].
type Event struct {
	// TypeMeta is the kind of the object that the event is about.
	metav1.TypeMeta
	// NamespacedName is the name of the object that the event is about.
	types.NamespacedName
	// Related is a second object that the event is about, nil if there is none.
	Related *corev1.ObjectReference

	// Type is Normal or Warning.
	Type string
	// Reason is a word for why.
	Reason string
	// Message is what happened, in an event of the old recorder.
	//
	// Deprecated: events of the new recorder have an Action and a Note.
	Message string
	// Action is what was done, in an event of the new recorder.
	Action string
	// Note is what happened, in an event of the new recorder.
	Note string
}

// NewEvent returns an event of the old recorder, Config.Recorder, which is the one that this toolkit's own events come
// through. It panics if the kind of the object is not known.
//
// Deprecated: use NewEventf for the events of the embedded, new recorder.
func NewEvent(factory client.Object, scheme *runtime.Scheme, eventtype, reason, messageFormat string, a ...interface{}) Event {
	event, err := about(factory, scheme)
	if err != nil {
		panic(err)
	}
	event.Type, event.Reason, event.Message = eventtype, reason, fmt.Sprintf(messageFormat, a...)
	return event
}

// NewEventf returns an event of the new recorder, the one embedded in a Config. Related may be nil. It panics if the kind
// of an object is not known.
func NewEventf(
	regarding, related client.Object, scheme *runtime.Scheme, eventtype, reason, action, note string, a ...interface{},
) Event {
	event, err := aboutBoth(regarding, related, scheme)
	if err != nil {
		panic(err)
	}
	event.Type, event.Reason, event.Action, event.Note = eventtype, reason, action, fmt.Sprintf(note, a...)
	return event
}

func about(obj runtime.Object, scheme *runtime.Scheme) (Event, error) {
	ref, err := referTo(obj, scheme)
	if err != nil {
		return Event{}, fmt.Errorf("cannot say which object the event is about: %w", err)
	}
	return Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: ref.APIVersion, Kind: ref.Kind},
		NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name},
	}, nil
}

func aboutBoth(regarding, related runtime.Object, scheme *runtime.Scheme) (Event, error) {
	event, err := about(regarding, scheme)
	if err != nil || isNil(related) {
		return event, err
	}
	if event.Related, err = referTo(related, scheme); err != nil {
		return Event{}, fmt.Errorf("cannot say which object the event is related to: %w", err)
	}
	return event, nil
}

// referTo refers to the object that obj stands for.
func referTo(obj runtime.Object, scheme *runtime.Scheme) (*corev1.ObjectReference, error) {
	if isNil(obj) {
		return nil, reference.ErrNilObject
	}
	return reference.GetReference(scheme, obj.DeepCopyObject())
}

// eventList is what both recorders of a Config append to.
type eventList struct {
	scheme  *runtime.Scheme
	journal *journal

	mu     sync.Mutex
	events []Event
}

func (l *eventList) all() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// add records an event. One about an object that cannot be referred to is recorded all the same, with the error as its
// message: a test should see it fail, and code under test must not panic.
func (l *eventList) add(event Event, err error) {
	if err != nil {
		event.Message = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
	l.journal.add(eventEntry + event.Reason + " " + event.Kind + " " + targetOf(event.Namespace, event.Name))
}

// oldRecorder records events of the API that came before events.k8s.io.
type oldRecorder struct{ *eventList }

var _ record.EventRecorder = oldRecorder{}

// Event implements [record.EventRecorder].
func (r oldRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	event, err := about(object, r.scheme)
	event.Type, event.Reason, event.Message = eventtype, reason, message
	r.add(event, err)
}

// Eventf implements [record.EventRecorder].
func (r oldRecorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...interface{}) {
	r.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// AnnotatedEventf implements [record.EventRecorder]. The annotations are dropped.
func (r oldRecorder) AnnotatedEventf(
	object runtime.Object, _ map[string]string, eventtype, reason, messageFmt string, args ...interface{},
) {
	r.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// newRecorder records events of the API events.k8s.io.
type newRecorder struct{ *eventList }

var _ ctrlrecorder.EventRecorder = newRecorder{}

// Eventf implements [events.EventRecorder].
func (r newRecorder) Eventf(
	regarding runtime.Object, related runtime.Object, eventtype, reason, action, note string, args ...interface{},
) {
	event, err := aboutBoth(regarding, related, r.scheme)
	event.Type, event.Reason, event.Action, event.Note = eventtype, reason, action, fmt.Sprintf(note, args...)
	r.add(event, err)
}

// AnnotatedEventf implements [events.AnnotatedEventRecorder]. The annotations are dropped.
func (r newRecorder) AnnotatedEventf(
	regarding runtime.Object, related runtime.Object, _ map[string]string,
	eventtype, reason, action, note string, args ...interface{},
) {
	r.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

package simulation

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/internal/jsondiff"
	"github.com/espalier-dev/espalier/testing/simulation/internal/journal"
	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// Invariant is something that holds at each moment of a simulation.
type Invariant struct {
	// Name says what holds, such as "an App has at most one Deployment".
	Name string
	// Check returns an error if something does not hold after a write that had an effect. It is called before the
	// writer has its answer and before anybody sees the write, for one write after the other. It must neither make
	// requests nor wait. The arguments are valid until it returns. A panic is a failure, too.
	//
	// The same Check serves all simulations that are run with the options, also at the same time: it has to decide by
	// its arguments alone.
	Check func(w Write, s State) error
}

// Write is a change of an object. Writes without an effect are none.
type Write struct {
	// Time is when the object was written.
	Time time.Time
	// Actor is who wrote: [Operator], another replica of it, "user", the name of another actor, "cluster" for the
	// controllers beside the API server, or "kube-apiserver" for the API server itself.
	Actor string
	// Kind, Namespace and Name are those of the object. The namespace may be empty.
	Kind            schema.GroupKind
	Namespace, Name string
	// Subresource is that of the request, such as "status", or empty.
	Subresource string

	before, after *state.Object
	operator      bool
	scheme        *runtime.Scheme
}

// Verb returns what happened to the object: "create", "update", "delete", or "mark for deletion" if it is deleted as
// soon as it has no finalizer.
func (w Write) Verb() string {
	switch {
	case w.before == nil:
		return "create"
	case w.after == nil:
		return "delete"
	case w.after.Deleted && !w.before.Deleted:
		return "mark for deletion"
	}
	return "update"
}

// String returns the write in a line, such as "update Deployment/status shop/web".
func (w Write) String() string {
	kind, name := w.Kind.Kind, w.Name
	if w.Subresource != "" {
		kind += "/" + w.Subresource
	}
	if w.Namespace != "" {
		name = w.Namespace + "/" + name
	}
	return w.Verb() + " " + kind + " " + name
}

// ByOperator reports whether a process of the operator wrote.
func (w Write) ByOperator() bool { return w.operator }

// Before sets obj to what the object was before the write. It reports whether the object is of the kind of obj and
// existed. An Unstructured without a kind is of any kind. Otherwise, the version has to be the one in which the API
// server stores the kind; Before panics if not.
func (w Write) Before(obj client.Object) bool { return decode(w.before, w.Kind, obj, w.scheme) }

// After is as Before for the object after the write.
func (w Write) After(obj client.Object) bool { return decode(w.after, w.Kind, obj, w.scheme) }

func decode(from *state.Object, kind schema.GroupKind, obj client.Object, scheme *runtime.Scheme) bool {
	if u, ok := obj.(*unstructured.Unstructured); ok && u.GetKind() == "" {
		if from != nil {
			u.Object = from.Fields()
		}
		return from != nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		panic(err)
	}
	if from == nil || gvk.GroupKind() != kind {
		return false
	}
	decodeInto(from, gvk, obj)
	return true
}

func decodeInto(from *state.Object, gvk schema.GroupVersionKind, obj runtime.Object) {
	if from.Version != gvk.GroupVersion() {
		panic(fmt.Sprintf("%s is stored as %s, not as %s", from.Key, from.Version, gvk.GroupVersion()))
	}
	if err := from.Into(obj); err != nil {
		panic(fmt.Sprintf("%s: %v", from.Key, err))
	}
}

var definitionKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// written is told of each write.
func (w *World) written(made journal.Write, now state.State) {
	obj := made.Object()
	w.kinds.Add(obj.Kind)
	write := Write{
		Time: made.At, Actor: made.Actor, Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name,
		Subresource: made.Subresource, before: made.Before, after: made.After,
		operator: w.options.isOperator(made.Actor), scheme: w.options.Scheme,
	}
	if write.Actor == "" {
		write.Actor = apiServer
	}
	w.mu.Lock()
	passing := state.Passing(obj.Kind)
	if !passing {
		w.changed = time.Now()
	}
	hot := 0
	if !passing && write.operator {
		w.writes.add(write)
		hot = w.loops.writes(write)
	}
	current := State{now, w.options, w.others}
	if !write.operator && !passing && made.Actor != cluster && made.Actor != "" {
		w.others = made.At
		w.loops.others()
	}
	w.mu.Unlock()
	if passing && write.operator && obj.Kind.Kind == "Event" {
		w.recorded(made)
	}
	if hot > 0 {
		w.abort(fmt.Sprintf("%s does not come to rest: %s was done %d times within a minute\n%s",
			made.Actor, write, hot, write.changes()))
	}
	if obj.Kind == definitionKind && made.Actor != "" && !w.options.ChangingDefinitions {
		w.abort(fmt.Sprintf(
			"%s: %s: nobody serves it: set ChangingDefinitions in the options, or list it in Definitions",
			made.Actor, write))
	}
	if w.begun.Load() != nil {
		w.check(write, current)
	}
}

// check fails the story if an invariant does not hold.
func (w *World) check(write Write, now State) {
	for _, invariant := range w.options.Always {
		if err := invariant.check(write, now); err != nil {
			w.abort(fmt.Sprintf("at %s, %s breaks %q by %s: %v\n%s",
				w.network.Clock(), write.Actor, invariant.Name, write, err, write.changes()))
			return
		}
	}
}

// check calls Check. A panic is an error.
func (i Invariant) check(w Write, s State) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	return i.Check(w, s)
}

// changes returns what a write changed in an object, in lines. Values of Secrets are left out.
func (w Write) changes() string {
	if w.before == nil || w.after == nil {
		return ""
	}
	var text strings.Builder
	for _, d := range jsondiff.Diff(w.after.Fields(), w.before.Fields()) {
		switch {
		case strings.HasPrefix(d.Path, "metadata.managedFields"), d.Path == "metadata.resourceVersion":
		case w.Kind.Kind == "Secret":
			fmt.Fprintf(&text, "  %s changed\n", d.Path)
		default:
			fmt.Fprintf(&text, "  %s: %s → %s\n", d.Path, jsondiff.Short(d.Want), jsondiff.Short(d.Got))
		}
	}
	return text.String()
}

// abort fails the story, which ends as soon as it does something with the world. Only the first call has an effect:
// what follows from a failure is not told.
func (w *World) abort(message string) {
	w.abortOnce.Do(func() {
		w.recorder.fail("", message)
		close(w.aborted)
	})
}

// goOn ends the goroutine if the story has failed and is to end.
func (w *World) goOn() {
	select {
	case <-w.aborted:
		w.FailNow()
	default:
	}
}

// sleep waits in the story.
func (w *World) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.aborted:
	}
	w.goOn()
}

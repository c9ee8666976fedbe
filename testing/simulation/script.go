package simulation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/testing/simulation/internal/generate"
)

// step is one thing that happens in a story that was drawn.
type step struct {
	// verb is one of those below.
	verb string
	// obj is the resource after a create or a replace, and the name of it at a delete.
	obj *unstructured.Unstructured
	// pause is how long a pass is.
	pause time.Duration
	// object is which one is deleted of those that the operator has created, see [World.Disturb].
	object int
	// deleted is what that was when the story was told, or empty.
	deleted string
}

// The verbs of a step.
const (
	doCreate  = "Create"
	doReplace = "Replace"
	doDelete  = "Delete"
	doPass    = "Pass"
	doRest    = "Rest"
	doKill    = "Kill"
	doDisturb = "Disturb"
)

// script is a story that was drawn.
type script []step

// drawScript draws a story with a number of steps.
func drawScript(r *rand.Rand, g *generate.Generator, e Exploration) (script, error) {
	var s script
	// live are the resources as they are after the steps so far.
	var live []*unstructured.Unstructured
	for n := range 1 + r.IntN(e.Steps) {
		switch verb := drawVerb(r, e, len(live)); verb {
		case doCreate:
			obj, err := g.Resource(r, e.Namespace, fmt.Sprintf("resource-%d", n+1))
			if err != nil {
				return nil, err
			}
			live = append(live, obj)
			s = append(s, step{verb: doCreate, obj: obj})
		case doReplace:
			i := r.IntN(len(live))
			live[i] = g.Edit(r, live[i])
			s = append(s, step{verb: doReplace, obj: live[i]})
		case doDelete:
			i := r.IntN(len(live))
			s = append(s, step{verb: doDelete, obj: nameOf(live[i])})
			live = slices.Delete(live, i, i+1)
		case doPass:
			s = append(s, step{verb: doPass, pause: drawPause(r)})
		default:
			s = append(s, step{verb: verb, object: r.IntN(1000)})
		}
	}
	return s, nil
}

// drawVerb draws what happens when there are a number of resources.
func drawVerb(r *rand.Rand, e Exploration, live int) string {
	verbs := []string{doPass, doRest}
	switch {
	case live == 0:
		return doCreate
	case live < e.Resources:
		verbs = append(verbs, doCreate, doCreate)
	}
	verbs = append(verbs, doReplace, doReplace, doReplace, doDelete)
	if e.Disturb {
		verbs = append(verbs, doDisturb, doDisturb)
	}
	if r.IntN(20) == 0 {
		return doKill
	}
	return verbs[r.IntN(len(verbs))]
}

// drawPause draws a time from a millisecond to an hour, short ones as often as long ones.
func drawPause(r *rand.Rand) time.Duration {
	longest := time.Hour >> r.IntN(22)
	return (longest/2 + time.Duration(r.Int64N(int64(longest/2)))).Round(time.Millisecond) + time.Millisecond
}

// nameOf returns an object with the kind and the name of another one.
func nameOf(obj *unstructured.Unstructured) *unstructured.Unstructured {
	name := &unstructured.Unstructured{}
	name.SetGroupVersionKind(obj.GroupVersionKind())
	name.SetNamespace(obj.GetNamespace())
	name.SetName(obj.GetName())
	return name
}

// tell tells the story. It appends the steps to told, without those that the API server refused, or that found no
// resource. The last one is there also if the story fails in it.
func (s script) tell(w *World, told *script) {
	for _, step := range s {
		if step.verb == doDisturb {
			step.deleted = w.disturbedBy(step.object)
		}
		*told = append(*told, step)
		if err := step.take(w); err != nil {
			w.network.Note(fmt.Sprintf("refused: %v", err))
			*told = (*told)[:len(*told)-1]
		}
	}
}

// take does what the step says. It returns the error of an API server that refuses it.
func (s step) take(w *World) error {
	switch s.verb {
	case doPass:
		w.Pass(s.pause)
	case doRest:
		w.Rest()
	case doKill:
		w.Kill()
	case doDisturb:
		w.Disturb(s.object)
	default:
		var refusal error
		request := s.request(w)
		err := w.Actor.attempt(func(ctx context.Context) error {
			refusal = nil
			err := request(ctx)
			if refuses(err) {
				refusal, err = err, nil
			}
			return err
		})
		if err != nil {
			w.Fatalf("%s %s: %v", strings.ToLower(s.verb), w.describe(s.obj), err)
		}
		return refusal
	}
	return nil
}

// request returns an attempt at what a user does.
func (s step) request(w *World) func(ctx context.Context) error {
	obj := s.obj.DeepCopy()
	switch s.verb {
	case doCreate:
		return w.create(obj)
	case doReplace:
		return func(ctx context.Context) error { return w.replace(ctx, obj) }
	}
	return w.delete(obj)
}

// refuses reports whether an error is the answer of an API server that does not accept a request.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// end returns the resources that are there after the script, if all steps are accepted.
func (s script) end() []*unstructured.Unstructured {
	var live []*unstructured.Unstructured
	for _, step := range s {
		same := func(o *unstructured.Unstructured) bool { return o.GetName() == step.obj.GetName() }
		switch step.verb {
		case doCreate:
			live = append(live, step.obj)
		case doReplace:
			if i := slices.IndexFunc(live, same); i >= 0 {
				live[i] = step.obj
			}
		case doDelete:
			live = slices.DeleteFunc(live, same)
		}
	}
	return live
}

// code returns the script as Go source: the body of a story.
func (s script) code() string {
	var code strings.Builder
	for _, step := range s {
		switch step.verb {
		case doCreate, doReplace, doDelete:
			text, err := yaml.Marshal(step.obj.Object)
			if err != nil {
				text = []byte(err.Error())
			}
			fmt.Fprintf(&code, "w.%s(w.Object(%s))\n", step.verb, quoted(string(text)))
		case doPass:
			fmt.Fprintf(&code, "w.Pass(%d * time.Millisecond) // %v\n", step.pause/time.Millisecond, step.pause)
		case doDisturb:
			fmt.Fprintf(&code, "w.Disturb(%d) // deletes %s\n", step.object, cmp.Or(step.deleted, "nothing"))
		default:
			fmt.Fprintf(&code, "w.%s()\n", step.verb)
		}
	}
	return code.String()
}

// quoted returns a text as a Go literal in lines of its own.
func quoted(text string) string {
	if strings.Contains(text, "`") {
		return fmt.Sprintf("%q", text)
	}
	return "`\n" + text + "`"
}

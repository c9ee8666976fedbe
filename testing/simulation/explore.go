package simulation

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/simulation/internal/generate"
	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// Exploration says which stories [Explore] tells, and what has to hold in them.
type Exploration struct {
	// Resource is an object of the kind whose resources are drawn, such as &v1.Shop{}. The definition of the kind has
	// to be among the definitions of the options. Required.
	Resource client.Object
	// Namespace is that of the resources. Empty is "default". It does not count for resources of the whole cluster.
	Namespace string
	// Hints are what fields may be for which the schema says too little, such as names of other objects.
	Hints Hints
	// Resources is how many there are at a time, at most. 0 is 3.
	Resources int
	// Steps is how many steps a story has, at most. 0 is 12.
	Steps int
	// Disturb has somebody delete objects that the operator has created, which has to create them again.
	Disturb bool
	// Polls says that the operator makes requests also if nothing happens.
	Polls bool
	// Remembers says that how a story ends may depend on how it went: the same resources, created at once, need not
	// lead to the same objects.
	Remembers bool
	// Edit changes an object before it is compared, such as one with a random password. Nil changes nothing.
	Edit func(obj *unstructured.Unstructured)
	// Check is called when a story has come to rest. Nil checks nothing more.
	Check func(w *World)
}

// Hints are values of fields, by their paths from the root of a resource: ".spec.class" is a field, and
// ".spec.ports[*].name" is one of each item of a list, ".spec.sizes[*]" each value of a map. A field with one value
// always has it, and one with an empty list is never set.
type Hints map[string][]any

// Explore looks for a story with which an operator goes wrong. For each seed, in a subtest, it draws resources from
// the schema of a definition, what a user does with them, and a plan of faults. Every fourth story has no faults. In
// each story
//
//   - the invariants of Options.Always hold at each write, and nothing panics,
//   - the cluster comes to rest, and at rest the operator makes no request (but see Exploration.Polls), other than to
//     try again what the API server refuses, at most once a minute,
//   - Exploration.Check holds,
//   - the resources, and all that the operator has created, end as in a cluster in which the same resources are created
//     at once and nothing goes wrong (but see Exploration.Remembers). What a status calls generation is left out.
//
// A failing story is made smaller, for half a minute or as long as -simulation.shrinking says: fewer faults, fewer
// steps, simpler resources. The smallest one is printed as Go source. In the end the test says what the stories have
// exercised. It fails if the API server has refused all resources, or the operator has asked for no write and made no
// call outside of the cluster: nothing is shown then.
//
// There are 20 seeds, or as many as the flag -simulation.seeds says, from the one that -simulation.seed says. Three
// failing seeds are reported; after that, no more are tried.
func Explore(t *testing.T, options Options, e Exploration) {
	t.Helper()
	x, err := newExplorer(options, e)
	if err != nil {
		t.Fatal(err)
	}
	x.pulse = newPulse(t)
	t.Cleanup(func() { x.exercised.report(t, x.kind.Kind) })
	eachSeed(t, x.pulse, func(t *testing.T, n uint64) bool {
		return x.explore(t, rand.New(rand.NewPCG(n, 0)), x.plan(n))
	})
}

// plan returns the plan of a seed: every fourth has no faults.
func (x *explorer) plan(n uint64) Plan {
	if n%4 == 0 {
		return Plan{}
	}
	return plan.FromSeed(n, plan.Options{Actors: x.options.actors()})
}

// Fuzz is [Explore] for native fuzzing: what is drawn is decided by the bytes that the fuzzer makes.
func Fuzz(f *testing.F, options Options, e Exploration) {
	f.Helper()
	x, err := newExplorer(options, e)
	if err != nil {
		f.Fatal(err)
	}
	for n := range uint64(4) {
		f.Add(binary.LittleEndian.AppendUint64(nil, n))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := rand.New(&source{left: bytes.Clone(data)})
		x.explore(t, r, x.plan(r.Uint64()))
	})
}

// source is a source of randomness that is in bytes first. After them, it is drawn from a fixed seed.
type source struct {
	left  []byte
	after *rand.PCG
}

// Uint64 implements [rand.Source].
func (s *source) Uint64() uint64 {
	if len(s.left) > 0 {
		var word [8]byte
		s.left = s.left[copy(word[:], s.left):]
		return binary.LittleEndian.Uint64(word[:])
	}
	if s.after == nil {
		s.after = rand.NewPCG(1, 2)
	}
	return s.after.Uint64()
}

// explorer tells drawn stories.
type explorer struct {
	Exploration
	options   Options
	kind      schema.GroupKind
	generator *generate.Generator
	// pulse says how far the exploration is; nil says nothing.
	pulse *pulse
	// exercised is what the stories have exercised.
	exercised exercised
}

func newExplorer(options Options, e Exploration) (*explorer, error) {
	if e.Resource == nil {
		return nil, errors.New("exploration: there is no Resource")
	}
	if e.Resources < 0 || e.Steps < 0 {
		return nil, fmt.Errorf("exploration: Resources is %d, Steps is %d", e.Resources, e.Steps)
	}
	if e.Namespace == "" {
		e.Namespace = "default"
	}
	if e.Resources == 0 {
		e.Resources = 3
	}
	if e.Steps == 0 {
		e.Steps = 12
	}
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	gvk, err := apiutil.GVKForObject(e.Resource, options.Scheme)
	if err != nil {
		return nil, fmt.Errorf("exploration: Resource: %w", err)
	}
	x := &explorer{Exploration: e, options: options, kind: gvk.GroupKind()}
	at := slices.IndexFunc(options.Definitions, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == gvk.Group && d.Spec.Names.Kind == gvk.Kind
	})
	if at < 0 {
		return nil, fmt.Errorf("exploration: Resource: options.Definitions has no definition of %s", gvk.GroupKind())
	}
	x.generator, err = generate.New(options.Definitions[at], gvk.Version, generate.Hints(e.Hints))
	return x, err
}

// explore tells a drawn story. It reports whether the story failed.
func (x *explorer) explore(t *testing.T, r *rand.Rand, plan Plan) bool {
	t.Helper()
	s, err := drawScript(r, x.generator, x.Exploration)
	if err != nil {
		t.Error(err)
		return true
	}
	found := x.tell(t, s, plan)
	x.exercised.add(s, found, x.options)
	if found.failed {
		found = x.smallest(t, found)
		t.Error(found.describe())
	}
	return found.failed
}

// told is what came of a drawn story.
type told struct {
	outcome
	// until says whether there was no time to make the story smaller.
	until string
	// script has the steps that the API server accepted, up to the one that failed.
	script script
}

// tell tells a story under a plan.
func (x *explorer) tell(t *testing.T, s script, plan Plan) told {
	t.Helper()
	var accepted script
	got, o := x.play(t, plan, func(w *World) { s.tell(w, &accepted) })
	if o.failed || x.Remembers {
		return told{outcome: o, script: accepted}
	}
	want, reference := x.play(t, Plan{}, func(w *World) {
		for _, obj := range accepted.end() {
			w.Create(obj.DeepCopy())
		}
	})
	if reference.failed {
		o.failed = true
		o.said = "the resources that are left at the end, created at once in another cluster:\n" + reference.said
		return told{outcome: o, script: accepted}
	}
	if lines := state.Compare(got, want, x.edit); len(lines) > 0 {
		o.failed = true
		o.said = "the end is not as in another cluster, in which the resources that are left are created at once. " +
			"(What \"is\" is here, what it is \"not\" is there.)\n\t" + strings.Join(lines, "\n\t")
	}
	return told{outcome: o, script: accepted}
}

// edit changes the fields of an object before it is compared.
func (x *explorer) edit(fields map[string]any) {
	obj := &unstructured.Unstructured{Object: fields}
	// It is how often a pod template has changed.
	annotations := obj.GetAnnotations()
	if _, ok := annotations[revision]; ok {
		delete(annotations, revision)
		obj.SetAnnotations(annotations)
	}
	removeGenerations(fields["status"])
	if x.Edit != nil {
		x.Edit(obj)
	}
}

// removeGenerations removes the generations that a status has recorded, in place: they say how often a resource or its
// objects have changed. A generation that is observed stays: in the end it is the current one.
func removeGenerations(status any) {
	switch value := status.(type) {
	case map[string]any:
		delete(value, "generation")
		for _, field := range value {
			removeGenerations(field)
		}
	case []any:
		for _, item := range value {
			removeGenerations(item)
		}
	}
}

// revision is the annotation of a Deployment by its controller.
const revision = "deployment.kubernetes.io/revision"

// play tells a story and has it come to rest. It returns the resources and what the operator created.
func (x *explorer) play(t *testing.T, plan Plan, story func(w *World)) (state.State, outcome) {
	t.Helper()
	options := x.options
	options.Plan = plan
	var end state.State
	o := attempt(t, options, func(w *World) {
		story(w)
		w.Rest()
		if x.Check != nil {
			x.Check(w)
		}
		if !x.Polls {
			x.idles(w)
		}
		end = w.journal.State().Where(func(obj *state.Object, c state.Creation) bool {
			return obj.Kind == x.kind || options.isOperator(c.Actor)
		})
	})
	return end, o
}

// fewest is how long there is at least between two attempts at what the API server refuses, on average.
const fewest = time.Minute

// idles fails a story in which the operator makes requests at rest. To try again what the API server refuses, such as
// an invalid object, is none of them: something may have changed that nobody told.
func (x *explorer) idles(w *World) {
	const long = time.Hour
	begin := w.network.Now()
	busy := w.idle(long)
	refused := 0
	for _, e := range w.network.Log().Entries {
		if e.At >= begin && w.options.isOperator(e.Call.Actor) && e.Status >= 400 && e.Status < 500 &&
			fault.Writes(e.Call.Verb) {
			refused++
		}
	}
	if refused > 0 && refused <= int(long/fewest) {
		return
	}
	for _, made := range busy {
		w.Errorf("%s", made)
	}
}

// describe says which story fails, and what happens in it.
func (f told) describe() string {
	return fmt.Sprintf("%s\nThe smallest story found%s:\n\nfunc(w *simulation.World) {\n%s\tw.Rest()\n}\n",
		f.report(), f.until, indented(f.script.code()))
}

func indented(code string) string {
	var text strings.Builder
	literal := false
	for line := range strings.Lines(code) {
		if !literal {
			text.WriteString("\t")
		}
		text.WriteString(line)
		if strings.Count(line, "`")%2 == 1 {
			literal = !literal
		}
	}
	return text.String()
}

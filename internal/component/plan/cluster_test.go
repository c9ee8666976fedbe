package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/types"
)

var (
	errInvalid = errors.New("the object is invalid")
	start      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// cluster simulates the parts of a cluster that plans are about.
type cluster struct {
	t       testing.TB
	objects map[plan.Key]*object
	// finalized keys stay, once deleted, until released.
	finalized map[plan.Key]bool
	// slow kinds become ready only once observed.
	slow map[string]bool
	// broken keys cannot be written.
	broken map[plan.Key]bool
	// foreign instances keep types from being deleted.
	foreign map[plan.Key][]string
	pattern map[int][]string
	now     time.Time

	uids int
	// created, deleted and written count operations per object, checks those that found something out.
	created, deleted, written map[plan.Key]int
	checks                    int
	trace                     []string
}

type object struct {
	uid         types.UID
	generation  int64
	ownership   plan.Ownership
	digest      string
	fields      string
	status      apis.ObjectStatus
	volatile    bool
	terminating bool
	managed     []apis.ManagedType
}

func newCluster(t testing.TB) *cluster {
	return &cluster{t: t, objects: map[plan.Key]*object{}, finalized: map[plan.Key]bool{}, slow: map[string]bool{},
		broken:  map[plan.Key]bool{},
		foreign: map[plan.Key][]string{}, pattern: map[int][]string{}, now: start,
		created: map[plan.Key]int{}, deleted: map[plan.Key]int{}, written: map[plan.Key]int{}}
}

func (c *cluster) uid() types.UID {
	c.uids++
	return types.UID(fmt.Sprintf("uid-%d", c.uids))
}

// put creates an object that another client made.
func (c *cluster) put(key plan.Key, ownership plan.Ownership) *object {
	o := &object{uid: c.uid(), generation: 1, ownership: ownership, status: apis.ObjectCurrent}
	c.objects[key] = o
	return o
}

// makeReady makes objects ready, as their controllers would.
func (c *cluster) makeReady(keys ...plan.Key) {
	for _, key := range keys {
		c.objects[key].status = apis.ObjectCurrent
	}
}

// finalize removes the finalizers of objects.
func (c *cluster) finalize(keys ...plan.Key) {
	for _, key := range keys {
		delete(c.finalized, key)
		if o := c.objects[key]; o != nil && o.terminating {
			delete(c.objects, key)
		}
	}
}

func (c *cluster) observed(key plan.Key) plan.Observed {
	o := c.objects[key]
	if o == nil {
		return plan.Observed{Presence: plan.Absent}
	}
	s := plan.Observed{Presence: plan.Present, UID: o.uid, Generation: o.generation, Ownership: o.ownership,
		ResourceVersion: "version of " + string(o.uid),
		Digest:          o.digest, Fields: o.fields,
		Status: o.status, Terminating: o.terminating, Volatile: o.volatile}
	if o.ownership == plan.Foreign {
		s.Claim = "belongs to Other space/them"
	}
	return s
}

func (c *cluster) delete(o plan.Operation) error {
	live := c.objects[o.Key]
	if live == nil {
		return nil
	}
	if o.UID == "" || live.uid != o.UID {
		return errors.New("the UID is another")
	}
	for key, other := range c.objects {
		if other.ownership == plan.Ours && (o.Key.Kind == "Namespace" && key.Namespace == o.Key.Name ||
			typesOf[key.Kind] == o.Key) {
			c.t.Errorf("%s is deleted and %s, which is ours, with it, want it left", o.Key, key)
		}
	}
	c.deleted[o.Key]++
	live.terminating = true
	if !c.finalized[o.Key] {
		delete(c.objects, o.Key)
	}
	return nil
}

// carryOut does one operation, as an executor would.
func (c *cluster) carryOut(o plan.Operation, desired map[plan.Key]plan.Desired) plan.Outcome {
	outcome := plan.Outcome{Operation: o}
	c.trace = append(c.trace, string(o.Action)+" "+o.Key.Name)
	live, d := c.objects[o.Key], desired[o.Key]
	switch o.Action {
	case plan.ActionCreate:
		switch {
		case c.broken[o.Key]:
			outcome.Err = errInvalid
			return outcome
		case live != nil:
			outcome.Err = errors.New("it exists already")
			return outcome
		}
		c.created[o.Key]++
		status := apis.ObjectCurrent
		if c.slow[o.Key.Kind] {
			status = apis.ObjectInProgress
		}
		c.objects[o.Key] = &object{uid: c.uid(), generation: 1, digest: d.Digest, fields: "ours", status: status,
			ownership: plan.Ours, managed: d.ManagedTypes}
	case plan.ActionAdopt, plan.ActionRelabel, plan.ActionApply, plan.ActionReplace:
		if c.broken[o.Key] {
			outcome.Err = errInvalid
			return outcome
		}
		if live == nil || live.uid != o.UID {
			outcome.Err = errors.New("the UID is another")
			return outcome
		}
		c.written[o.Key]++
		if live.digest != d.Digest {
			live.generation++
			if c.slow[o.Key.Kind] {
				live.status = apis.ObjectInProgress
			}
		}
		live.digest, live.fields, live.ownership, live.managed = d.Digest, "ours", plan.Ours, d.ManagedTypes
	case plan.ActionOrphan:
		live.ownership = plan.Unowned
	case plan.ActionRecreate, plan.ActionDelete, plan.ActionPurge:
		outcome.Err = c.delete(o)
	case plan.ActionCheck:
		c.checks++
		users := c.foreign[o.Key]
		if o.Pattern >= 0 {
			users = c.pattern[o.Pattern]
		}
		outcome.Use = use(users)
	case plan.ActionDeleteType, plan.ActionDeleteNamespace:
		outcome.Use = use(c.foreign[o.Key])
		if outcome.Use.State == plan.ForeignNone {
			outcome.Err = c.delete(o)
		}
	default:
		c.t.Errorf("the action is %q, want a known one", o.Action)
	}
	if c.objects[o.Key] != nil {
		outcome.Observed = c.observed(o.Key)
	}
	return outcome
}

func use(users []string) plan.Use {
	if len(users) == 0 {
		return plan.Use{State: plan.ForeignNone}
	}
	return plan.Use{State: plan.ForeignBlocking, Instances: users}
}

// component is a component to plan for.
type component struct {
	cluster  *cluster
	desired  []plan.Desired
	stored   []apis.InventoryRecord
	patterns []plan.Pattern
	deleting bool
	// allowEmpty lets all objects go if none is desired.
	allowEmpty bool
	// unobserved are keys that are not observed.
	unobserved map[plan.Key]bool
	// steps is how many stages the passes took.
	steps int
}

func (c *component) input() plan.Input {
	in := plan.Input{Deleting: c.deleting, AllowEmpty: c.allowEmpty, Desired: c.desired, Inventory: c.stored,
		Observed: map[plan.Key]plan.Observed{}, Failed: map[plan.Key]string{},
		Uses: map[plan.Key]plan.Use{}, Patterns: c.patterns, PatternUses: map[int]plan.Use{}, Now: c.cluster.now}
	return c.observe(in)
}

// observe observes all objects of the input.
func (c *component) observe(in plan.Input) plan.Input {
	in.Observed = map[plan.Key]plan.Observed{}
	served := func(key plan.Key) bool {
		kind, known := typesOf[key.Kind]
		if !known {
			return true
		}
		definer := c.cluster.objects[kind]
		return definer != nil && !definer.terminating && definer.status == apis.ObjectCurrent
	}
	add := func(key plan.Key) {
		if c.unobserved[key] {
			return
		}
		s := c.cluster.observed(key)
		s.TypeMissing = s.Presence == plan.Absent && !served(key)
		in.Observed[key] = s
	}
	for _, r := range in.Inventory {
		add(plan.KeyOf(r))
	}
	for _, d := range in.Desired {
		add(d.Key)
	}
	return in
}

// pass does what one request does: it plans, stores, executes and folds until nothing can be done now.
func (c *component) pass() plan.Plan {
	c.cluster.t.Helper()
	in := c.input()
	desired := map[plan.Key]plan.Desired{}
	for _, d := range c.desired {
		desired[d.Key] = d
	}
	for range 1000 {
		p := plan.Make(in)
		if violation := violationOf(in, p); violation != "" {
			c.cluster.t.Fatalf("the plan breaks an invariant, want none broken: %s\n%s", violation, p)
		}
		c.stored = p.Inventory
		if len(p.Next.Operations) == 0 {
			return p
		}
		c.steps++
		var outcomes []plan.Outcome
		for _, o := range p.Next.Operations {
			outcome := c.cluster.carryOut(o, desired)
			outcomes = append(outcomes, outcome)
			switch {
			case outcome.Err != nil:
				in.Failed[o.Key] = outcome.Err.Error()
			case o.Pattern >= 0:
				in.PatternUses[o.Pattern] = outcome.Use
			case outcome.Use.State != plan.ForeignUnchecked:
				in.Uses[o.Key] = outcome.Use
			}
		}
		c.stored = plan.Fold(p.Inventory, outcomes, c.cluster.now)
		in.Inventory = c.stored
		in = c.observe(in)
	}
	c.cluster.t.Fatalf("the pass does not end, want a plan that is done or waits:\n%s", plan.Make(in))
	return plan.Plan{}
}

// typesOf says, by kind, which object defines it.
var typesOf = map[string]plan.Key{"Baz": crd("baz").Key}

// phases returns the records' phases by name.
func (c *component) phases() map[string]string {
	phases := map[string]string{}
	for _, r := range c.stored {
		status := r.Status
		if status == "" && r.Phase == apis.PhaseReady {
			status = apis.ObjectCurrent
		}
		phases[r.Name] = string(r.Phase) + "/" + string(status)
	}
	return phases
}

func (c *component) expect(p plan.Plan, done bool, want map[string]string) {
	c.cluster.t.Helper()
	if got := c.phases(); !maps.Equal(got, want) {
		c.cluster.t.Errorf("records are %v, want %v", got, want)
	}
	if p.Done != done {
		c.cluster.t.Errorf("done is %v, want %v:\n%s", p.Done, done, p)
	}
}

func object1(group, kind, name string) plan.Desired {
	return plan.Desired{Key: plan.Key{Group: group, Kind: kind, Namespace: "app", Name: name}, Version: "v1",
		Digest:         "1",
		AdoptionPolicy: apis.AdoptIfUnowned, ReconcilePolicy: apis.ReconcileOnObjectChange, UpdatePolicy: apis.UpdateApply,
		DeletePolicy: apis.DeleteDelete, PrunePolicy: apis.PruneWith}
}

func configMap(name string) plan.Desired { return object1("", "ConfigMap", name) }
func secret(name string) plan.Desired    { return object1("", "Secret", name) }
func foo(name string) plan.Desired       { return object1("test.local", "Foo", name) }
func bar(name string) plan.Desired       { return object1("test.local", "Bar", name) }
func baz(name string) plan.Desired       { return object1("test.local", "Baz", name) }

func crd(kind string) plan.Desired {
	d := object1("apiextensions.k8s.io", "CustomResourceDefinition", kind+".test.local")
	d.Namespace = ""
	d.ManagedTypes = []apis.ManagedType{{Group: "test.local", Version: "*",
		Kind: map[string]string{"baz": "Baz"}[kind]}}
	return d
}

func namespace(name string) plan.Desired {
	d := object1("", "Namespace", name)
	d.Namespace = ""
	return d
}

func with(d plan.Desired, changes ...func(*plan.Desired)) plan.Desired {
	for _, change := range changes {
		change(&d)
	}
	return d
}

func order(apply, del int16) func(*plan.Desired) {
	return func(d *plan.Desired) { d.ApplyOrder, d.DeleteOrder = apply, del }
}

func purged(after int16) func(*plan.Desired) {
	return func(d *plan.Desired) { d.PurgeOrder = &after }
}

func digest(digest string) func(*plan.Desired) {
	return func(d *plan.Desired) { d.Digest = digest }
}

func policy(p any) func(*plan.Desired) {
	return func(d *plan.Desired) {
		switch p := p.(type) {
		case apis.AdoptionPolicy:
			d.AdoptionPolicy = p
		case apis.UpdatePolicy:
			d.UpdatePolicy = p
		case apis.DeletePolicy:
			d.DeletePolicy = p
		case apis.PrunePolicy:
			d.PrunePolicy = p
		}
	}
}

func actions(p plan.Plan) []string {
	var list []string
	for _, o := range p.Next.Operations {
		list = append(list, string(o.Action)+" "+o.Key.Name)
	}
	return list
}

func obstacles(p plan.Plan) []string {
	var list []string
	for _, o := range p.Obstacles {
		list = append(list, string(o.Kind)+" "+o.Key.Name+": "+o.Message)
	}
	return list
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n%q, want\n%q", what, got, want)
	}
}

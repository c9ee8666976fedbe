package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// drifted is the input for an object that was changed, with so many corrections, the last one some time ago.
func drifted(count int, ago time.Duration) plan.Input {
	d := configMap("a")
	s := live(d)
	s.Fields = "fewer"
	in := single(d, new(asIs(d)), s)
	in.Corrections = map[plan.Key]plan.Corrections{d.Key: {
		Repetition: plan.Repetition{Count: count, Persistent: count >= 3, Delayed: max(count-3, 0), Last: start.Add(-ago)},
		Digest:     d.Digest, Reason: "it was changed in the cluster",
		Writers: plan.Writers{Managers: []string{"injector"}, Fields: []string{".data.b"}, Pointers: []string{"/data/b"}},
	}}
	return in
}

// asDesired changes the input: the object is as desired.
func asDesired(in plan.Input) plan.Input {
	key := in.Desired[0].Key
	s := in.Observed[key]
	s.Fields = "ours"
	in.Observed[key] = s
	return in
}

func TestContest(t *testing.T) {
	const contested = `contested: ConfigMap app/a: the field manager "injector" keeps changing .data.b ` +
		`(ignore-fields: /data/b, or reconcile-policy: once would allow that)`
	missing := func(in plan.Input) plan.Input {
		in.Observed[in.Desired[0].Key] = plan.Observed{Presence: plan.Absent}
		return in
	}
	for name, test := range map[string]struct {
		in      plan.Input
		acts    bool
		message string
		recheck time.Duration
	}{
		"the first correction":               {in: drifted(0, 0), acts: true},
		"the third correction":               {in: drifted(2, 0), acts: true},
		"the fourth waits":                   {in: drifted(3, 0), message: contested, recheck: 20 * time.Second},
		"the fourth waits for its time":      {in: drifted(3, 19*time.Second), message: contested, recheck: time.Second},
		"the fourth is due":                  {in: drifted(3, 20*time.Second), acts: true},
		"the fifth waits twice as long":      {in: drifted(4, 20*time.Second), message: contested, recheck: 20 * time.Second},
		"a late one does not wait longer":    {in: drifted(1000, 0), message: contested, recheck: 160 * time.Second},
		"it is as desired, but was not":      {in: asDesired(drifted(3, 59*time.Second)), message: contested, recheck: time.Second},
		"it is left alone":                   {in: asDesired(drifted(3, time.Minute))},
		"it is left alone, after a long one": {in: asDesired(drifted(7, 159*time.Second)), message: contested, recheck: time.Second},
		"it is as desired, as before":        {in: asDesired(drifted(2, 0))},
		"it is not known":                    {in: func() plan.Input { in := drifted(3, 0); in.Observed = nil; return in }(), message: "it is not known yet whether it exists"},
		"it is missing":                      {in: missing(drifted(3, 0)), message: contested, recheck: 20 * time.Second},
		"it is missing, and due":             {in: missing(drifted(3, 20*time.Second)), acts: true},
		"it is not ready": {in: func() plan.Input {
			in := asDesired(drifted(3, 0))
			s := in.Observed[in.Desired[0].Key]
			s.Status = ""
			in.Observed[in.Desired[0].Key] = s
			return in
		}(), message: contested, recheck: time.Minute},
		"something else is desired": {in: func() plan.Input {
			in := drifted(3, 0)
			in.Desired[0].Digest = "other"
			return in
		}(), acts: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.Make(test.in)
			if acts := len(p.Next.Operations) > 0; acts != test.acts {
				t.Errorf("the operations are %v, want some: %t", p.Next.Operations, test.acts)
			}
			if test.acts {
				return
			}
			if p.Done != (test.message == "") || !strings.Contains(plan.Message(p, 1024), test.message) {
				t.Errorf("done is %v and the message %s, want it to contain %q, and done if that is empty", p.Done,
					plan.Message(p, 1024), test.message)
			}
			want := time.Time{}
			if test.recheck > 0 {
				want = start.Add(test.recheck)
			}
			if !p.Recheck.Equal(want) {
				t.Errorf("to be rechecked at %s, not %s", p.Recheck, want)
			}
		})
	}
}

// A correction is an operation that is not due to what is desired.
func TestWhatIsACorrection(t *testing.T) {
	d := configMap("a")
	for name, test := range map[string]struct {
		change func(in *plan.Input)
		want   bool
	}{
		"drift": {func(*plan.Input) {}, true},
		"gone":  {func(in *plan.Input) { in.Observed[d.Key] = plan.Observed{Presence: plan.Absent} }, true},
		"new": {func(in *plan.Input) {
			in.Inventory, in.Observed[d.Key] = nil, plan.Observed{Presence: plan.Absent}
		}, false},
		"without the digest": {func(in *plan.Input) { s := live(d); s.Digest = ""; in.Observed[d.Key] = s }, true},
		"without the label":  {func(in *plan.Input) { s := live(d); s.Ownership = plan.Unlabelled; in.Observed[d.Key] = s }, true},
		"another one, to be adopted": {func(in *plan.Input) {
			in.Desired[0].AdoptionPolicy = apis.AdoptIfUnowned
			in.Inventory[0] = asIs(in.Desired[0])
			in.Observed[d.Key] = plan.Observed{Presence: plan.Present, UID: "u2"}
		}, true},
		"changed": {func(in *plan.Input) { in.Desired[0].Digest = "other" }, false},
		"not known to be complete": {func(in *plan.Input) {
			in.Inventory[0].Fields = ""
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := drifted(0, 0)
			test.change(&in)
			p := plan.Make(in)
			if len(p.Next.Operations) != 1 || p.Next.Operations[0].Undoes != "" != test.want {
				t.Errorf("the operations are %+v, want one that is a correction: %t", p.Next.Operations, test.want)
			}
		})
	}
}

// A fight in the first wave does not keep the second one from being written: it might never end.
func TestNoWaveWaitsForAContestedObject(t *testing.T) {
	in := drifted(3, 0)
	in.Desired = append(in.Desired, with(configMap("b"), order(1, 0)))
	in.Observed[in.Desired[1].Key] = plan.Observed{Presence: plan.Absent}
	p := plan.Make(in)
	if !slices.Equal(actions(p), []string{"create b"}) {
		t.Errorf("the next operations are %v, want [create b]", actions(p))
	}
}

// The record of a contested object does not change with each correction, which would write the inventory.
func TestRecordOfAContestedObject(t *testing.T) {
	before := plan.Make(drifted(3, 0)).Inventory[0]
	in := asDesired(drifted(4, 0))
	in.Inventory[0].Generation, in.Inventory[0].Phase = 4, apis.PhaseUpdating
	after := plan.Make(in).Inventory[0]
	if before.Phase != after.Phase || before.Message != after.Message || before.Generation != after.Generation || before.Status != after.Status {
		t.Errorf("the record was %+v\nand is %+v, want the same phase, message, generation and status", before, after)
	}
}

func TestCorrectionsAfter(t *testing.T) {
	o := plan.Operation{Reason: "it is gone"}
	c := plan.Corrections{}.After(o, "d", start).After(o, "d", start.Add(time.Second))
	third := c.After(o, "d", start.Add(time.Minute))
	if c.Count != 2 || c.Persistent || !third.Persistent {
		t.Errorf("the corrections are %+v, then %+v, want 2 that are not persistent, then persistent ones", c, third)
	}
	if c := c.After(o, "d", start.Add(61*time.Second)); c.Count != 1 {
		t.Errorf("the corrections are %+v, want 1, for what is long ago does not count", c)
	}
	if c := c.After(o, "other", start); c.Count != 1 || c.Digest != "other" {
		t.Errorf("the corrections are %+v, want 1 for other, for those of another desired object do not count", c)
	}
	other := plan.Operation{Undoes: "another one"}
	mixed := c.After(other, "d", start).After(o, "d", start).After(other, "d", start)
	if mixed.Persistent || !mixed.After(o, "d", start).Persistent {
		t.Errorf("the corrections of a mixture are %+v, want them persistent after one more and not before", mixed)
	}
	// The first delay is the same whenever they become persistent.
	sixth := mixed.After(o, "d", start)
	if due := sixth.Due(); due != start.Add(20*time.Second) {
		t.Errorf("the next one is due at %s, want 20 seconds after the first that is persistent", due)
	}
	if c := c.Futile(); !c.Persistent {
		t.Errorf("the corrections are %+v after a write in vain, want persistent ones", c)
	}
}

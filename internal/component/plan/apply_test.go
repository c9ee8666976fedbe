package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asIs is the record of an object that is as desired, and live is what is observed of the object.
func asIs(d plan.Desired) apis.InventoryRecord {
	return apis.InventoryRecord{Group: d.Group, Version: d.Version, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name,
		UID: "u1", Digest: d.Digest, AdoptionPolicy: d.AdoptionPolicy,
		Fields: "ours", Generation: 3, Phase: apis.PhaseReady, ManagedTypes: d.ManagedTypes}
}

func live(d plan.Desired) plan.Observed {
	return plan.Observed{Presence: plan.Present, UID: "u1", Generation: 3, Ownership: plan.Ours, Digest: d.Digest,
		Fields: "ours", Status: apis.ObjectCurrent}
}

// single is the input for one object.
func single(d plan.Desired, r *apis.InventoryRecord, s plan.Observed) plan.Input {
	in := plan.Input{Desired: []plan.Desired{d}, Observed: map[plan.Key]plan.Observed{d.Key: s}, Now: start}
	if r != nil {
		in.Inventory = []apis.InventoryRecord{*r}
	}
	return in
}

// TestOneObject shows what is done about one object, by its record and its observation.
func TestOneObject(t *testing.T) {
	hour := metav1.NewTime(start.Add(-time.Hour))
	lately := metav1.NewTime(start.Add(-time.Hour + time.Second))
	type change struct {
		desired  func(*plan.Desired)
		record   func(*apis.InventoryRecord)
		observed func(*plan.Observed)
	}
	desired := func(changes ...func(*plan.Desired)) func(*plan.Desired) {
		return func(d *plan.Desired) {
			for _, c := range changes {
				c(d)
			}
		}
	}
	reapply := func(d *plan.Desired) { d.ReapplyInterval = time.Hour }
	ownedBy := func(o plan.Ownership) func(*plan.Observed) {
		claim := ""
		if o == plan.Foreign {
			claim = "belongs to Shop north/corner"
		}
		return func(s *plan.Observed) { s.Ownership, s.Claim, s.Digest, s.Fields = o, claim, "", "" }
	}
	fresh := func(r *apis.InventoryRecord) {
		r.UID, r.Fields, r.Phase, r.Generation = "", "", apis.PhaseScheduledForApplication, 0
	}
	phase := func(p apis.InventoryPhase) func(*apis.InventoryRecord) {
		return func(r *apis.InventoryRecord) { r.Phase = p }
	}
	absent := func(s *plan.Observed) { *s = plan.Observed{Presence: plan.Absent} }
	for name, test := range map[string]struct {
		change
		want     string
		obstacle string
		phase    apis.InventoryPhase
	}{
		"as it should be":      {},
		"gone":                 {change{observed: absent}, "create c: it is gone", "", apis.PhaseReady},
		"not seen yet":         {change{observed: func(s *plan.Observed) { *s = plan.Observed{} }}, "", "waiting c: it is not known yet whether it exists", apis.PhaseReady},
		"seen without UID":     {change{observed: func(s *plan.Observed) { s.UID = "" }}, "", "waiting c: it is not known yet whether it exists", apis.PhaseReady},
		"being deleted":        {change{observed: func(s *plan.Observed) { s.Terminating = true }}, "", "waiting c: it is being deleted", apis.PhaseReady},
		"type not served":      {change{observed: func(s *plan.Observed) { absent(s); s.TypeMissing = true }}, "", "failed c: the cluster does not serve its type", apis.PhaseReady},
		"not ready":            {change{observed: func(s *plan.Observed) { s.Status, s.Message = apis.ObjectInProgress, "1 of 3" }}, "", "waiting c: 1 of 3", apis.PhaseReady},
		"never ready":          {change{observed: func(s *plan.Observed) { s.Status, s.Message = apis.ObjectFailed, "quota" }}, "", "failed c: quota", apis.PhaseReady},
		"not evaluated":        {change{observed: func(s *plan.Observed) { s.Status = "" }}, "", "waiting c: it is not known yet whether it is ready", apis.PhaseReady},
		"old generation":       {change{observed: func(s *plan.Observed) { s.Generation = 2 }}, "", "waiting c: its last change is not observed yet", apis.PhaseReady},
		"volatile":             {change{observed: func(s *plan.Observed) { s.Status, s.Volatile = apis.ObjectInProgress, true }}, "", "waiting c: it is not ready", apis.PhaseReady},
		"changed by another":   {change{observed: func(s *plan.Observed) { s.Fields = "fewer" }}, "apply c: it was changed in the cluster", "", apis.PhaseReady},
		"fields never known":   {change{record: func(r *apis.InventoryRecord) { r.Fields = "" }}, "apply c: it is not known whether the last write was complete", "", apis.PhaseReady},
		"no fields kept":       {change{record: func(r *apis.InventoryRecord) { r.Fields = plan.FieldsNone }, observed: func(s *plan.Observed) { s.Fields = "" }}, "", "", apis.PhaseReady},
		"fields kept since":    {change{record: func(r *apis.InventoryRecord) { r.Fields = plan.FieldsNone }}, "apply c: it was changed in the cluster", "", apis.PhaseReady},
		"other content":        {change{observed: func(s *plan.Observed) { s.Content = plan.ContentDifferent }}, "apply c: its content differs", "", apis.PhaseReady},
		"same content":         {change{observed: func(s *plan.Observed) { s.Content = plan.ContentSame }}, "", "", apis.PhaseReady},
		"digest taken off":     {change{observed: func(s *plan.Observed) { s.Digest = "" }}, "apply c: it is not known what was written last", "", apis.PhaseReady},
		"digest changed":       {change{desired: policy(apis.UpdateRecreate), observed: func(s *plan.Observed) { s.Digest = "9" }}, "apply c: it was changed in the cluster", "", apis.PhaseReady},
		"another desired":      {change{desired: digest("2"), observed: func(s *plan.Observed) { s.Digest = "1" }}, "apply c: its desired state changed", "", apis.PhaseScheduledForApplication},
		"another, by update":   {change{desired: desired(digest("2"), policy(apis.UpdateReplace)), observed: func(s *plan.Observed) { s.Digest = "1" }}, "replace c: its desired state changed", "", apis.PhaseScheduledForApplication},
		"another, anew":        {change{desired: desired(digest("2"), policy(apis.UpdateRecreate)), observed: func(s *plan.Observed) { s.Digest = "1" }}, "recreate c: its desired state changed", "", apis.PhaseScheduledForApplication},
		"another, unknown":     {change{desired: desired(digest("2"), policy(apis.UpdateRecreate)), observed: func(s *plan.Observed) { s.Digest = "" }}, "apply c: it is not known what was written last", "", apis.PhaseScheduledForApplication},
		"drift, anew":          {change{desired: policy(apis.UpdateRecreate), observed: func(s *plan.Observed) { s.Fields = "fewer" }}, "apply c: it was changed in the cluster", "", apis.PhaseReady},
		"crash, anew":          {change{desired: policy(apis.UpdateRecreate), record: fresh}, "apply c: it is not known whether the last write was complete", "", apis.PhaseScheduledForApplication},
		"from once, anew":      {change{desired: desired(digest("2"), policy(apis.UpdateRecreate)), observed: func(s *plan.Observed) { s.Digest = plan.DigestOnce }}, "recreate c: its desired state changed", "", apis.PhaseScheduledForApplication},
		"to once, anew":        {change{desired: desired(digest(plan.DigestOnce), policy(apis.UpdateRecreate)), observed: func(s *plan.Observed) { s.Digest = "1" }}, "apply c: its desired state changed", "", apis.PhaseScheduledForApplication},
		"once, and drifted":    {change{desired: digest(plan.DigestOnce), observed: func(s *plan.Observed) { s.Digest, s.Fields = plan.DigestOnce, "fewer" }}, "", "", apis.PhaseReady},
		"once, and gone":       {change{desired: digest(plan.DigestOnce), record: func(r *apis.InventoryRecord) { r.Digest = plan.DigestOnce }, observed: absent}, "", "", apis.PhaseCompleted},
		"once, never there":    {change{desired: digest(plan.DigestOnce), record: func(r *apis.InventoryRecord) { fresh(r); r.Digest = plan.DigestOnce }, observed: absent}, "create c: it does not exist", "", apis.PhaseScheduledForApplication},
		"once, and completed":  {change{desired: digest(plan.DigestOnce), record: func(r *apis.InventoryRecord) { r.Digest, r.Phase = plan.DigestOnce, apis.PhaseCompleted }, observed: absent}, "", "", apis.PhaseCompleted},
		"no longer once":       {change{record: func(r *apis.InventoryRecord) { r.Digest, r.Phase, r.UID = plan.DigestOnce, apis.PhaseCompleted, "" }, observed: absent}, "create c: it does not exist", "", apis.PhaseScheduledForApplication},
		"once, reapplied":      {change{desired: desired(digest(plan.DigestOnce), reapply), observed: func(s *plan.Observed) { s.Digest = plan.DigestOnce }}, "", "", apis.PhaseReady},
		"reapply due":          {change{desired: reapply, record: func(r *apis.InventoryRecord) { r.LastAppliedAt = &hour }}, "apply c: it is to be rewritten periodically", "", apis.PhaseReady},
		"reapply due, anew":    {change{desired: desired(reapply, policy(apis.UpdateRecreate)), record: func(r *apis.InventoryRecord) { r.LastAppliedAt = &hour }}, "apply c: it is to be rewritten periodically", "", apis.PhaseReady},
		"reapply due, update":  {change{desired: desired(reapply, policy(apis.UpdateReplace)), record: func(r *apis.InventoryRecord) { r.LastAppliedAt = &hour }}, "replace c: it is to be rewritten periodically", "", apis.PhaseReady},
		"reapply not due":      {change{desired: reapply, record: func(r *apis.InventoryRecord) { r.LastAppliedAt = &lately }}, "", "", apis.PhaseReady},
		"reapply, never noted": {change{desired: reapply}, "apply c: it is to be rewritten periodically", "", apis.PhaseReady},

		"new, unowned":             {change{record: fresh, observed: ownedBy(plan.Unowned)}, "adopt c: it exists", "", apis.PhaseScheduledForApplication},
		"new, predecessor's":       {change{record: fresh, observed: ownedBy(plan.Predecessor)}, "adopt c: it exists", "", apis.PhaseScheduledForApplication},
		"new, foreign":             {change{record: fresh, observed: ownedBy(plan.Foreign)}, "", "not ours c: it belongs to Shop north/corner; adoption-policy: always adopts it", apis.PhaseScheduledForApplication},
		"new, foreign, always":     {change{desired: policy(apis.AdoptAlways), record: fresh, observed: ownedBy(plan.Foreign)}, "adopt c: it exists and belongs to Shop north/corner", "", apis.PhaseScheduledForApplication},
		"new, unowned, never":      {change{desired: policy(apis.AdoptNever), record: fresh, observed: ownedBy(plan.Unowned)}, "", "not ours c: it exists already; adoption-policy: if-unowned adopts it", apis.PhaseScheduledForApplication},
		"new, unowned, default":    {change{desired: policy(apis.AdoptionPolicy("")), record: fresh, observed: ownedBy(plan.Unowned)}, "", "not ours c: it exists already; adoption-policy: if-unowned adopts it", apis.PhaseScheduledForApplication},
		"new, predecessor, never":  {change{desired: policy(apis.AdoptNever), record: fresh, observed: ownedBy(plan.Predecessor)}, "", "not ours c: it exists already; adoption-policy: if-unowned adopts it", apis.PhaseScheduledForApplication},
		"new, written, never":      {change{desired: policy(apis.AdoptNever), record: fresh, observed: func(s *plan.Observed) { ownedBy(plan.Unowned)(s); s.Claim = "was written by kubectl" }}, "", "not ours c: it exists already and was written by kubectl; adoption-policy: if-unowned adopts it", apis.PhaseScheduledForApplication},
		"new, foreign, never":      {change{desired: policy(apis.AdoptNever), record: fresh, observed: ownedBy(plan.Foreign)}, "", "not ours c: it belongs to Shop north/corner; adoption-policy: always adopts it", apis.PhaseScheduledForApplication},
		"new, unowned, anew":       {change{desired: policy(apis.UpdateRecreate), record: fresh, observed: ownedBy(plan.Unowned)}, "adopt c: it exists", "", apis.PhaseScheduledForApplication},
		"predecessor's, anew":      {change{desired: policy(apis.UpdateRecreate), record: fresh, observed: func(s *plan.Observed) { ownedBy(plan.Predecessor)(s); s.Digest = "9" }}, "recreate c: it exists", "", apis.PhaseScheduledForApplication},
		"foreign, always, anew":    {change{desired: desired(policy(apis.UpdateRecreate), policy(apis.AdoptAlways)), record: fresh, observed: func(s *plan.Observed) { ownedBy(plan.Foreign)(s); s.Digest = "9" }}, "recreate c: it exists and belongs to Shop north/corner", "", apis.PhaseScheduledForApplication},
		"taken over":               {change{observed: ownedBy(plan.Foreign)}, "", "not ours c: it was ours, and now belongs to Shop north/corner", apis.PhaseReady},
		"taken over, always":       {change{desired: policy(apis.AdoptAlways), observed: ownedBy(plan.Foreign)}, "", "not ours c: it was ours, and now belongs to Shop north/corner", apis.PhaseReady},
		"label gone":               {change{observed: ownedBy(plan.Unlabelled)}, "relabel c: its owner label was removed", "", apis.PhaseReady},
		"label gone, never":        {change{desired: policy(apis.AdoptNever), observed: ownedBy(plan.Unlabelled)}, "relabel c: its owner label was removed", "", apis.PhaseReady},
		"record alone, never":      {change{desired: policy(apis.AdoptNever), observed: ownedBy(plan.Unowned)}, "", "not ours c: it exists already; adoption-policy: if-unowned adopts it", apis.PhaseReady},
		"record alone":             {change{observed: ownedBy(plan.Unowned)}, "adopt c: it exists", "", apis.PhaseReady},
		"label gone, anew":         {change{desired: desired(policy(apis.AdoptNever), policy(apis.UpdateRecreate), digest("2")), observed: func(s *plan.Observed) { s.Ownership, s.Digest = plan.Unlabelled, "1" }}, "recreate c: its owner label was removed", "", apis.PhaseScheduledForApplication},
		"replaced by hand, never":  {change{desired: policy(apis.AdoptNever), observed: func(s *plan.Observed) { ownedBy(plan.Unowned)(s); s.UID = "u2" }}, "", "not ours c: it exists already; adoption-policy: if-unowned adopts it", apis.PhaseReady},
		"replaced by hand":         {change{observed: func(s *plan.Observed) { ownedBy(plan.Unowned)(s); s.UID = "u2" }}, "adopt c: it exists", "", apis.PhaseReady},
		"another UID":              {change{observed: func(s *plan.Observed) { s.UID, s.Generation, s.Fields = "u2", 1, "copied" }}, "apply c: it was changed in the cluster", "", apis.PhaseReady},
		"another UID, as desired":  {change{observed: func(s *plan.Observed) { s.UID, s.Generation = "u2", 1 }}, "", "", apis.PhaseReady},
		"created, answer lost":     {change{record: fresh}, "apply c: it is not known whether the last write was complete", "", apis.PhaseScheduledForApplication},
		"recreated, not gone":      {change{desired: policy(apis.UpdateRecreate), record: phase(apis.PhaseRecreating), observed: func(s *plan.Observed) { s.Terminating = true }}, "", "waiting c: it is being deleted", apis.PhaseRecreating},
		"recreated, gone":          {change{desired: policy(apis.UpdateRecreate), record: phase(apis.PhaseRecreating), observed: absent}, "create c: it does not exist", "", apis.PhaseRecreating},
		"recreated, still there":   {change{desired: policy(apis.UpdateRecreate), record: phase(apis.PhaseRecreating), observed: func(s *plan.Observed) { s.Digest = "0" }}, "recreate c: its desired state changed", "", apis.PhaseRecreating},
		"desired again":            {change{record: func(r *apis.InventoryRecord) { r.Digest, r.Phase = "", apis.PhaseDeleting }, observed: func(s *plan.Observed) { s.Terminating = true }}, "", "waiting c: it is being deleted", apis.PhaseScheduledForApplication},
		"desired again, untouched": {change{record: func(r *apis.InventoryRecord) { r.Digest, r.Phase = "", apis.PhaseScheduledForDeletion }}, "", "", apis.PhaseReady},
		"deletion called off":      {change{record: phase(apis.PhaseDeleting), observed: absent}, "create c: it does not exist", "", apis.PhaseScheduledForApplication},
	} {
		t.Run(name, func(t *testing.T) {
			d := configMap("c")
			if test.change.desired != nil {
				test.change.desired(&d)
			}
			r, s := asIs(configMap("c")), live(d)
			if test.change.record != nil {
				test.change.record(&r)
			}
			if test.observed != nil {
				test.observed(&s)
			}
			p := plan.Make(single(d, &r, s))
			got := ""
			if len(p.Next.Operations) > 0 {
				o := p.Next.Operations[0]
				got = string(o.Action) + " " + o.Key.Name + ": " + o.Reason
				if o.Stamp != (d.ReapplyInterval > 0 && o.Action != plan.ActionRecreate) {
					t.Errorf("the stamp is %v, want %v", o.Stamp, !o.Stamp)
				}
			}
			if got != test.want {
				t.Errorf("it plans to %q, want %q", got, test.want)
			}
			shown := obstacles(p)
			if test.obstacle == "" && len(shown) > 0 ||
				test.obstacle != "" && !slices.Equal(shown, []string{test.obstacle}) {
				t.Errorf("obstacles are %q, want %q", shown, test.obstacle)
			}
			if p.Done != (test.want == "" && test.obstacle == "") {
				t.Errorf("done is %v, want %v", p.Done, !p.Done)
			}
			want := test.phase
			if want == "" {
				want = apis.PhaseReady
			}
			if phase := p.Inventory[0].Phase; phase != want {
				t.Errorf("the phase is %s, want %s", phase, want)
			}
		})
	}
}

// Types and namespaces are never recreated: that would delete their contents.
func TestContainersAreNotRecreated(t *testing.T) {
	for _, d := range []plan.Desired{crd("baz"), namespace("app")} {
		r, s := asIs(d), live(d)
		d.Digest, d.UpdatePolicy = "2", apis.UpdateRecreate
		same(t, "operations", actions(plan.Make(single(d, &r, s))), []string{"apply " + d.Name})
	}
}

func TestReapplyTime(t *testing.T) {
	in := plan.Input{Observed: map[plan.Key]plan.Observed{}, Now: start}
	for i, ago := range []time.Duration{20, 30, 10} {
		d := configMap(string(rune('a' + i)))
		d.ReapplyInterval = time.Hour
		r := asIs(d)
		at := metav1.NewTime(start.Add(-ago * time.Minute))
		r.LastAppliedAt = &at
		in.Desired, in.Inventory = append(in.Desired, d), append(in.Inventory, r)
		in.Observed[d.Key] = live(d)
	}
	if p := plan.Make(in); !p.Done || !p.Reapply.Equal(start.Add(30*time.Minute)) {
		t.Errorf("done is %v and the next apply is at %s, want true and %s", p.Done, p.Reapply,
			start.Add(30*time.Minute))
	}
	in.Desired[1].ReapplyInterval = 0
	p := plan.Make(in)
	if !p.Reapply.Equal(start.Add(40 * time.Minute)) {
		t.Errorf("the next apply is at %s, want %s", p.Reapply, start.Add(40*time.Minute))
	}
	for _, r := range p.Inventory {
		if (r.LastAppliedAt == nil) != (r.Name == "b") {
			t.Errorf("%s was last applied at %v, want a time for b alone", r.Name, r.LastAppliedAt)
		}
	}
}

// If an object cannot be written, the others of its wave are written. Later waves wait.
func TestFailureDoesNotStopNeighbours(t *testing.T) {
	c := newComponent(t, configMap("a"), configMap("b"), with(configMap("later"), order(1, 0)))
	c.cluster.broken[configMap("a").Key] = true
	p := c.pass()
	same(t, "operations", c.cluster.trace, []string{"create a", "create b"})
	same(t, "obstacles", obstacles(p), []string{"failed a: the object is invalid"})
	if got := plan.Message(p, 200); got != "wave 1 of 2: 1 of 2 ready, failed: ConfigMap app/a: the object is invalid" {
		t.Error(got)
	}
	delete(c.cluster.broken, configMap("a").Key)
	c.expect(c.pass(), true, map[string]string{"a": ready, "b": ready, "later": ready})
}

// Drift of a later wave is corrected although an earlier wave is not ready.
func TestEarlyWaveDoesNotBlockRepair(t *testing.T) {
	c := newComponent(t, foo("early"), with(configMap("late"), order(1, 0)), with(configMap("gone"), order(1, 0)),
		with(configMap("changed"), order(1, 0)))
	c.pass()
	c.cluster.makeReady(foo("early").Key)
	c.pass()
	c.cluster.objects[foo("early").Key].status = apis.ObjectInProgress
	c.cluster.objects[configMap("late").Key].fields = "fewer"
	delete(c.cluster.objects, configMap("gone").Key)
	c.desired[3].Digest = "2"
	c.cluster.trace = nil
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply late", "create gone"})
	c.cluster.makeReady(foo("early").Key)
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply late", "create gone", "apply changed"})
}

// No wave waits for a claim that is bound when its consumer exists.
func TestNoWaveWaitsForVolatile(t *testing.T) {
	claim := object1("", "PersistentVolumeClaim", "data")
	c := newComponent(t, claim, foo("foo"), with(configMap("later"), order(1, 0)))
	c.patterns = []plan.Pattern{{Group: "test.local", Kind: "Foo"}}
	c.cluster.slow["PersistentVolumeClaim"], c.cluster.slow["Foo"] = true, false
	c.pass()
	c.cluster.objects[claim.Key].volatile = true
	p := c.pass()
	same(t, "operations", c.cluster.trace, []string{"create data", "create foo", "create later"})
	same(t, "obstacles", obstacles(p), []string{"waiting data: it is not ready"})
	if p.Done {
		t.Error("the plan is done while a volume is not bound, want that it is not")
	}
	if p.Progress.Wave != 0 {
		t.Errorf("wave %d is under way, want none", p.Progress.Wave)
	}
}

func TestStages(t *testing.T) {
	service := object1("apiregistration.k8s.io", "APIService", "v1.served.local")
	service.Namespace, service.ManagedTypes = "", []apis.ManagedType{{Group: "served.local", Version: "v1", Kind: "*"}}
	served := object1("served.local", "Thing", "served")
	c := newComponent(t, served, service, foo("backend"))
	c.cluster.slow["APIService"] = true
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"create backend"})
	c.cluster.makeReady(foo("backend").Key)
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"create backend", "create v1.served.local"})
	c.cluster.makeReady(service.Key)
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace, []string{"create backend", "create v1.served.local", "create served"})
	// A backend that is not ready any more is sticky: it holds back later waves, not the instances.
	c.cluster.objects[foo("backend").Key].status = apis.ObjectInProgress
	c.desired = append(c.desired, object1("served.local", "Thing", "another"), with(configMap("later"), order(1, 0)))
	c.pass()
	same(t, "operations", c.cluster.trace[3:], []string{"create another"})
}

// An APIService that does not answer holds back the instances of its own type, and later waves, but no other instances.
func TestNoAnswerOfTheServer(t *testing.T) {
	service := object1("apiregistration.k8s.io", "APIService", "v1.served.local")
	service.Namespace, service.ManagedTypes = "", []apis.ManagedType{{Group: "served.local", Version: "v1", Kind: "*"}}
	served := object1("served.local", "Thing", "served")
	c := newComponent(t, served, service, crd("baz"), baz("instance"), with(configMap("later"), order(1, 0)))
	c.cluster.slow["APIService"], c.cluster.slow["Baz"] = true, false
	p := c.pass()
	want := []string{"create baz.test.local", "create v1.served.local", "create instance"}
	same(t, "operations", c.cluster.trace, want)
	same(t, "obstacles", obstacles(p), []string{"waiting v1.served.local: it is not ready"})
	if p.Done || p.Progress.Wave != 1 || p.Progress.Ready != 2 || p.Progress.Total != 4 {
		t.Errorf("done is %v and the progress %+v, want false, wave 1 and 2 of 4 ready", p.Done, p.Progress)
	}
	same(t, "operations later", actions(c.pass()), nil)
	c.cluster.makeReady(service.Key)
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace, append(want, "create served", "create later"))
}

// Webhooks come after what their server needs, without waiting for it, and before instances. They go first, and what
// may serve them waits until they are gone.
func TestWebhooks(t *testing.T) {
	webhook := object1("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "webhook")
	webhook.Namespace = ""
	first := with(object1("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "first"), order(-1, 0))
	first.Namespace = ""
	c := newComponent(t, webhook, first, configMap("config"), foo("server"), crd("baz"), baz("instance"))
	c.cluster.slow["Foo"], c.cluster.slow["Baz"] = true, false
	c.pass()
	want := []string{"create first", "create baz.test.local", "create config", "create server", "create webhook"}
	same(t, "operations", c.cluster.trace, want)
	c.cluster.makeReady(foo("server").Key)
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace, append(want, "create instance"))

	c.desired, c.cluster.trace = []plan.Desired{crd("baz"), configMap("config")}, nil
	c.cluster.finalized[webhook.Key] = true
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete webhook", "delete first", "delete instance"})
	c.cluster.finalize(webhook.Key)
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace[3:], []string{"delete server"})
}

func TestNamespaceOfTheComponent(t *testing.T) {
	t.Run("goes first", func(t *testing.T) {
		c := newComponent(t, configMap("c"), namespace("app"))
		c.pass()
		same(t, "operations", c.cluster.trace, []string{"create app", "create c"})
	})
	t.Run("cannot be created", func(t *testing.T) {
		c := newComponent(t, configMap("c"), namespace("app"))
		c.cluster.broken[namespace("app").Key] = true
		same(t, "obstacles", obstacles(c.pass()), []string{"failed app: the object is invalid"})
		same(t, "operations", c.cluster.trace, []string{"create app"})
	})
	t.Run("is being deleted", func(t *testing.T) {
		c := newComponent(t, namespace("app"), configMap("c"))
		c.pass()
		c.cluster.objects[namespace("app").Key].terminating = true
		delete(c.cluster.objects, configMap("c").Key)
		same(t, "obstacles", obstacles(c.pass()), []string{"waiting app: it is being deleted",
			"waiting c: its namespace is being deleted"})
	})
}

func TestMissingTypeOfOurs(t *testing.T) {
	c := newComponent(t, crd("baz"), baz("baz"))
	c.pass()
	c.cluster.objects[crd("baz").Key].status = apis.ObjectInProgress
	delete(c.cluster.objects, baz("baz").Key)
	same(t, "obstacles", obstacles(c.pass()), []string{"waiting baz.test.local: it is not ready",
		"waiting baz: its type is not served yet"})
}

// A missing type is no failure while the wave is closed: an earlier wave may define the type.
func TestMissingTypeOfALaterWave(t *testing.T) {
	c := newComponent(t, foo("operator"), with(baz("baz"), order(1, 0)))
	p := c.pass()
	same(t, "obstacles", obstacles(p), []string{"waiting operator: it is not ready"})
	c.expect(p, false, map[string]string{"operator": creating, "baz": scheduled})
	c.cluster.makeReady(foo("operator").Key)
	same(t, "obstacles", obstacles(c.pass()), []string{"failed baz: the cluster does not serve its type"})
	c.cluster.put(crd("baz").Key, plan.Foreign)
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"create operator", "create baz"})
}

// later is a component of two waves. The first wave is not ready. The second wave has an object, and drops another
// one before it is written.
func later(t *testing.T) (c *component, d *plan.Desired) {
	c = newComponent(t, foo("early"), with(foo("late"), order(1, 0)),
		with(foo("old"), order(1, 0), policy(apis.PruneBefore)))
	c.rollOutAll(t)
	c.cluster.objects[foo("early").Key].status = apis.ObjectInProgress
	c.desired, c.cluster.trace = c.desired[:2], nil
	return c, &c.desired[1]
}

// Pruning before a wave waits only if the wave has something to write.
func TestWhatHoldsPruningBeforeAWave(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(c *component, d *plan.Desired, o *object)
		want    []string
	}{
		"nothing":  {func(*component, *plan.Desired, *object) {}, []string{"delete old"}},
		"a change": {func(_ *component, d *plan.Desired, _ *object) { d.Digest = "2" }, nil},
		"a change of an object that is being deleted": {func(_ *component, d *plan.Desired, o *object) {
			d.Digest, o.terminating = "2", true
		}, nil},
		"a change that is taken back, of an object that is not ready": {func(c *component, _ *plan.Desired, o *object) {
			o.status = apis.ObjectInProgress
			for i := range c.stored {
				if c.stored[i].Name == "late" {
					c.stored[i].Phase = apis.PhaseScheduledForApplication
				}
			}
		}, []string{"delete old"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, d := later(t)
			test.happens(c, d, c.cluster.objects[d.Key])
			c.pass()
			same(t, "operations", c.cluster.trace, test.want)
		})
	}
}

// A failed object stays an obstacle if its wave is closed again.
func TestFailureInAWaveThatIsClosedSince(t *testing.T) {
	early, late := foo("early"), with(configMap("late"), order(1, 0))
	r, s := asIs(early), live(early)
	s.Status = apis.ObjectInProgress
	in := single(early, &r, s)
	in.Desired = append(in.Desired, late)
	in.Observed[late.Key] = plan.Observed{Presence: plan.Absent}
	in.Failed = map[plan.Key]string{late.Key: "quota"}
	same(t, "obstacles", obstacles(plan.Make(in)), []string{"waiting early: it is not ready", "failed late: quota"})
}

// If an object has to wait now, it does not matter that an operation failed before.
func TestFailureOfAnObjectThatIsBeingDeleted(t *testing.T) {
	d := configMap("c")
	r, s := asIs(d), live(d)
	s.Terminating = true
	in := single(d, &r, s)
	in.Failed = map[plan.Key]string{d.Key: "quota"}
	same(t, "obstacles", obstacles(plan.Make(in)), []string{"waiting c: it is being deleted"})
}

// Drift is corrected stage by stage.
func TestRepairGoesByStages(t *testing.T) {
	c := newComponent(t, baz("baz"), crd("baz"))
	c.rollOutAll(t)
	for _, o := range c.cluster.objects {
		o.fields = "fewer"
	}
	c.cluster.trace = nil
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply baz.test.local", "apply baz"})
}

// A namespace never counts as an instance of a managed type: it and its contents would wait for each other.
func TestNamespaceOfAManagedType(t *testing.T) {
	c := newComponent(t, namespace("app"), foo("foo"))
	c.patterns = []plan.Pattern{{Group: "", Kind: "*"}}
	c.rollOutAll(t)
	same(t, "operations", c.cluster.trace, []string{"create app", "create foo"})
}

func TestWhatAnOperationAsksFor(t *testing.T) {
	absent := plan.Observed{Presence: plan.Absent}
	d := with(configMap("c"), policy(apis.UpdateApplyOverride), func(d *plan.Desired) { d.ReapplyInterval = time.Hour })
	if o := plan.Make(single(d, nil, absent)).Next.Operations[0]; o.Override || !o.Stamp {
		t.Errorf("the operation is %+v, want a stamp and no override", o)
	}
	d.Digest = plan.DigestOnce
	if o := plan.Make(single(d, nil, absent)).Next.Operations[0]; o.Override || o.Stamp {
		t.Errorf("the operation is %+v, want neither a stamp nor an override", o)
	}
	// What is written once is not due again, even if it was written periodically before.
	r := asIs(d)
	r.LastAppliedAt = &metav1.Time{Time: start}
	if p := plan.Make(single(d, &r, live(d))); !p.Done || !p.Reapply.IsZero() || p.Inventory[0].LastAppliedAt != nil {
		t.Errorf("the next apply is at %s and the record %+v, want no next apply and no time of the last", p.Reapply,
			p.Inventory[0])
	}
}

// A record of an object that cannot exist is dropped, and nothing is recorded or written of a desired one.
func TestObjectOfAnotherScope(t *testing.T) {
	for name, inventory := range map[string][]apis.InventoryRecord{
		"recorded": {asIs(configMap("c"))}, "new": nil, "completed": {{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: "c", Phase: apis.PhaseCompleted}},
	} {
		d := configMap("c")
		in := single(d, nil, plan.Observed{Presence: plan.Absent, Misplaced: true})
		in.Inventory = inventory
		p := plan.Make(in)
		want := []string{"waiting c: its type is served with another scope"}
		if shown := obstacles(p); !slices.Equal(shown, want) || len(p.Inventory) > 0 || len(p.Next.Operations) > 0 {
			t.Errorf("%s: the obstacles are %q, want %q, no record and no operation, as not in\n%s", name, shown, want, p)
		}
		in.Deleting = true
		if p := plan.Make(in); !p.Done || len(p.Inventory) > 0 {
			t.Errorf("%s: the deletion is done: %t, with %d records, want it done without any", name, p.Done, len(p.Inventory))
		}
	}
}

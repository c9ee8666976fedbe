package feature_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	isTrue    = metav1.ConditionTrue
	isFalse   = metav1.ConditionFalse
	isUnknown = metav1.ConditionUnknown
)

// after returns a row: a shop as it is, and how its features leave it. An expected entry of a record that the shop as it
// is does not have is one of now.
func after(now time.Time, given []edit, expected ...edit) row {
	before := shop.With(given...).Object()
	return row{
		Now:            now,
		Resource:       before,
		ExpectResource: shop.With(append(append(given, expected...), begunAfter(before, now))...).Object(),
	}
}

// begunAfter gives each entry without a time the time now, unless the shop before has an entry that says the same.
func begunAfter(before *Shop, now time.Time) edit {
	return func(s *Shop) {
		for i := range s.Status.Features {
			dependents := slices.Clone(s.Status.Features[i].Dependents)
			for j, d := range dependents {
				if d.Since.IsZero() && !slices.ContainsFunc(before.Status.Features, func(r apis.FeatureStatus) bool {
					return r.Name == s.Status.Features[i].Name && slices.ContainsFunc(r.Dependents, isLike(d))
				}) {
					dependents[j].Since = metav1.NewTime(now)
				}
			}
			s.Status.Features[i].Dependents = dependents
		}
	}
}

func isLike(d apis.DependentStatus) func(apis.DependentStatus) bool {
	return func(o apis.DependentStatus) bool {
		return o.Kind == d.Kind && o.Name == d.Name && o.State == d.State && o.Reason == d.Reason
	}
}

// back says that the request comes back.
func (r withRow) back(after time.Duration) row {
	r.ExpectedResult = reconcilers.Result{RequeueAfter: after}
	return row(r)
}

// fails says that the request fails.
func (r withRow) fails(text string) row {
	r.ShouldErr = true
	r.Verify = func(t *testing.T, _ reconcilers.Result, err error) {
		t.Helper()
		if err == nil || err.Error() != text {
			t.Errorf("the error is %v, expected %s", err, text)
		}
	}
	return row(r)
}

type withRow row

func given(edits ...edit) []edit { return edits }

var (
	healthy = is("TillReady", isTrue, apis.StateHealthy, "")
	off     = spec(func(s *ShopSpec) { s.Off = true })
	paused  = spec(func(s *ShopSpec) { s.Suspended = true })
)

func ready(status metav1.ConditionStatus, reason apis.State, message string) edit {
	return is("TillReady", status, reason, message)
}

func TestFeatureWhileMaintained(t *testing.T) {
	creating := bad("Deployment", "web", apis.StateCreating, "does not exist yet")
	failing := bad("Deployment", "web", apis.StateFailing, "0 of 3 ready")
	run(t, tests{
		"a feature without objects is healthy": after(began, nil, healthy, was(apis.FeatureHealthy, true)),
		"healthy objects of all sorts": after(began,
			given(reports("Deployment web Healthy", "Service web Operational", "Job load Completed")),
			healthy, was(apis.FeatureHealthy, true)),
		"an object is absent": withRow(after(began, given(reports("Deployment web absent")),
			ready(isFalse, apis.StateCreating, "Deployment default/web: does not exist yet"),
			was(apis.FeatureProgressing, true, creating))).back(grace),
		"it becomes healthy": after(later,
			given(reports("Deployment web Healthy"), was(apis.FeatureProgressing, true, creating)),
			healthy, since(apis.FeatureHealthy, later, true)),
		"it is not healthy any more": withRow(after(later,
			given(reports("Deployment web Failing Down 0 of 3 ready"), healthy, was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateFailing, "Deployment default/web: 0 of 3 ready"),
			since(apis.FeatureProgressing, later, true, failing))).back(grace),
		"a failure in a first rollout is shown at once": withRow(after(later,
			given(reports("Deployment web Failing Down 0 of 3 ready"), was(apis.FeatureProgressing, true, creating),
				ready(isFalse, apis.StateCreating, "Deployment default/web: does not exist yet")),
			ready(isFalse, apis.StateFailing, "Deployment default/web: 0 of 3 ready"),
			was(apis.FeatureProgressing, true, failing))).back(grace - time.Minute),
		"the grace period ends": after(expired,
			given(reports("Deployment web Failing Down 0 of 3 ready"), was(apis.FeatureProgressing, true, failing)),
			ready(isFalse, apis.StateDown, "not healthy after 10m0s: Deployment default/web: 0 of 3 ready")),
		"and the feature works in part": after(expired,
			given(reports("Deployment web Failing Degraded 0 of 3 ready"), was(apis.FeatureProgressing, true, failing)),
			ready(isFalse, apis.StateDegraded, "not healthy after 10m0s: Deployment default/web: 0 of 3 ready")),
		"a job that runs is not down": after(expired,
			given(reports("Job load TaskRunning - still loading", "Deployment web Blocked"),
				was(apis.FeatureProgressing, true)),
			ready(isFalse, apis.StateTaskRunning, "Job default/load: still loading"),
			was(apis.FeatureProgressing, true, bad("Job", "load", apis.StateTaskRunning, "still loading"),
				bad("Deployment", "web", apis.StateBlocked, ""))),
		"an object whose name is not known is called by its node": withRow(after(began,
			given(reports("Deployment - Blocked - no password")),
			ready(isFalse, apis.StateBlocked, `Deployment "Scripted": no password`),
			was(apis.FeatureProgressing, true, apis.DependentStatus{
				Kind: "Deployment", Name: `"Scripted"`, State: apis.StateBlocked, Message: "no password",
			}))).back(grace),
		"a blocked object beside healthy ones is a degradation": after(expired,
			given(reports("Deployment api Healthy", "Deployment web Blocked - no password"),
				was(apis.FeatureProgressing, true)),
			ready(isFalse, apis.StateDegraded, "not healthy after 10m0s: Deployment default/web: no password"),
			was(apis.FeatureProgressing, true, bad("Deployment", "web", apis.StateBlocked, "no password"))),
		"nothing but blocked objects is down": after(expired,
			given(reports("Deployment web Blocked - no password"), was(apis.FeatureProgressing, true)),
			ready(isFalse, apis.StateDown, "not healthy after 10m0s: Deployment default/web: no password"),
			was(apis.FeatureProgressing, true, bad("Deployment", "web", apis.StateBlocked, "no password"))),
		"the worst of many is named, with three culprits": withRow(after(began,
			given(reports("Deployment e Failing", "Deployment d Failing", "Deployment c Failing",
				"Deployment b Failing",
				"Deployment a Failing", "Deployment f Updating")),
			ready(isFalse, apis.StateFailing,
				"Deployment default/a; Deployment default/b; Deployment default/c; and 2 more"),
			was(apis.FeatureProgressing, true, bad("Deployment", "a", apis.StateFailing, ""),
				bad("Deployment", "b", apis.StateFailing, ""), bad("Deployment", "c", apis.StateFailing, ""),
				bad("Deployment", "d", apis.StateFailing, ""), bad("Deployment", "e", apis.StateFailing, ""),
				bad("Deployment", "f", apis.StateUpdating, "")))).back(grace),
		"a state that is not known": withRow(after(began, given(reports("Deployment web Rolling")),
			ready(isUnknown, apis.StateUnknown, `Deployment default/web: the state "Rolling" is not known`),
			was(apis.FeatureProgressing, true,
				bad("Deployment", "web", apis.StateUnknown, `the state "Rolling" is not known`)))).back(grace),
		"an auxiliary object does no harm": after(began,
			given(reports("Deployment web Healthy", "auxiliary Job report error no quota")),
			healthy, was(apis.FeatureHealthy, true, func() apis.DependentStatus {
				d := bad("Job", "report", apis.StateError, "no quota")
				d.Auxiliary = true
				return d
			}())),
		"the health of an object is not looked at": after(began, given(reports("unchecked Deployment web Failing")),
			healthy, was(apis.FeatureHealthy, true, bad("Deployment", "web", apis.StateFailing, ""))),
	})
}

func TestFeatureAndErrors(t *testing.T) {
	quota := bad("Deployment", "web", apis.StateError, "no quota")
	run(t, tests{
		"a reported error names the object": after(later,
			given(reports("Deployment web error no quota"), healthy, was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateError, "Deployment default/web: no quota"),
			since(apis.FeatureProgressing, later, true, quota)),
		"an error counts without a health": after(later,
			given(reports("unchecked Deployment web error no quota"), healthy, was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateError, "Deployment default/web: no quota"),
			since(apis.FeatureProgressing, later, true, quota)),
		"a reported error that is returned, too": withRow(after(later,
			given(reports("Deployment web error no quota"), returns("boom"), was(apis.FeatureProgressing, true)),
			ready(isFalse, apis.StateError, "Deployment default/web: no quota"),
			was(apis.FeatureProgressing, true, quota))).fails("boom"),
		"an error of no object": withRow(after(later, given(returns("boom"), was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateError, "boom"), since(apis.FeatureProgressing, later, true))).fails("boom"),
		"a durable error": withRow(after(later, given(returns("durable"), was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateError, "boom"),
			since(apis.FeatureProgressing, later, true))).fails(errors.Join(errBoom, reconcilers.ErrDurable).Error()),
		"a conflict is no state": withRow(after(later,
			given(returns("conflict"), healthy, was(apis.FeatureHealthy, true),
				reports("Deployment web Failing")))).fails(`Operation cannot be fulfilled on configmaps "x": boom`),
		"a conflict beside an error of an auxiliary": withRow(after(later,
			given(returns("conflict"), healthy, was(apis.FeatureHealthy, true),
				reports("auxiliary Deployment web error no quota")))).
			fails(`Operation cannot be fulfilled on configmaps "x": boom`),
		"a conflict beside an error": withRow(after(later,
			given(returns("conflict"), healthy, was(apis.FeatureHealthy, true),
				reports("Deployment web error no quota")),
			ready(isFalse, apis.StateError, "Deployment default/web: no quota"),
			since(apis.FeatureProgressing, later, true, quota))).
			fails(`Operation cannot be fulfilled on configmaps "x": boom`),
		"a quiet error is no state": withRow(after(later, given(returns("quiet"), healthy,
			was(apis.FeatureHealthy, true)))).fails(reconcilers.ErrQuiet.Error() + ": not now"),
		"a halt leaves reports out": withRow(after(later,
			given(returns("halt"), reports("Deployment web Healthy"), healthy, was(apis.FeatureHealthy, true)),
			ready(isUnknown, apis.StateUnknown, "a node halted, so not all objects are known"),
			since(apis.FeatureProgressing, later, true))).fails(reconcilers.ErrHaltSubReconcilers.Error()),
		"what is known in spite of a halt": withRow(after(later,
			given(returns("halt"), reports("Deployment web Failing"), healthy, was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateFailing, "Deployment default/web"),
			since(apis.FeatureProgressing, later, true, bad("Deployment", "web", apis.StateFailing, "")))).
			fails(reconcilers.ErrHaltSubReconcilers.Error()),
		"a terminating resource": after(later, given(terminating, reports("Deployment web Failing"),
			healthy, was(apis.FeatureHealthy, true))),
	})
}

func TestFeatureGates(t *testing.T) {
	const latest = `version "latest" is invalid: invalid semantic version`
	gateError := func(text string) edit { return spec(func(s *ShopSpec) { s.GateError = text }) }
	run(t, tests{
		"the gate cannot be evaluated": withRow(after(later,
			given(gateError("no version"), healthy,
				was(apis.FeatureHealthy, true, bad("Job", "x", apis.StateTaskFailing, ""))),
			ready(isFalse, apis.StateFeatureGateError, "no version"))).fails("no version"),
		"only another spec mends the gate": withRow(after(later,
			given(gateError("version latest"), healthy, was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateFeatureGateError, latest))).
			fails(errors.Join(errors.New(latest), reconcilers.ErrDurable).Error()),
		"a new feature": withRow(after(began, given(gateError("no version")),
			ready(isFalse, apis.StateFeatureGateError, "no version"),
			was(apis.FeatureWaiting, false))).fails("no version"),
		"the gate is switched off": after(later,
			given(off, reports("Deployment web Healthy", "auxiliary Job report error no right"), healthy,
				was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateDisabling, "not gone yet: Job default/report: no right; Deployment default/web"),
			since(apis.FeatureDisabled, later, false, func() apis.DependentStatus {
				d := bad("Job", "report", apis.StateError, "no right")
				d.Auxiliary = true
				return d
			}(), bad("Deployment", "web", apis.StateDisabling, ""))),
		"all is gone, and so are conditions of nodes": after(later,
			given(off, reports("Deployment web absent"), is("CashReady", isTrue, "Ready", ""),
				was(apis.FeatureDisabled, false)),
			func(s *Shop) { s.Status.Conditions = nil }, ready(isTrue, apis.StateDisabled, "")),
		"a disabled gate beats suspension and prerequisites": after(began,
			given(off, paused, spec(func(s *ShopSpec) { s.Unmet = "no electricity" })),
			ready(isTrue, apis.StateDisabled, ""), was(apis.FeatureDisabled, false)),
		"an object cannot be deleted": after(later,
			given(off, reports("Deployment web error no right"), healthy, was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateError, "Deployment default/web: no right"),
			since(apis.FeatureDisabled, later, false, bad("Deployment", "web", apis.StateError, "no right"))),
		"a node halts before others delete": withRow(after(later,
			given(off, returns("halt"), healthy, was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateDisabling, "a node halted, so not all objects are known"),
			since(apis.FeatureDisabled, later, false))).fails(reconcilers.ErrHaltSubReconcilers.Error()),
		"the gate is switched on again, and prerequisites are asked": after(later,
			given(spec(func(s *ShopSpec) { s.Unmet = "no electricity" }), was(apis.FeatureDisabled, false)),
			ready(isFalse, apis.StatePrerequisiteNotMet, "no electricity"), since(apis.FeatureWaiting, later, false)),
		"and what is left of it is named": after(later,
			given(spec(func(s *ShopSpec) { s.Unmet = "no electricity" }), reports("Deployment web Healthy"),
				was(apis.FeatureDisabled, false)),
			ready(isFalse, apis.StateDisabling, "not gone yet: Deployment default/web"),
			was(apis.FeatureDisabled, false, entry(later, "Deployment", "web", apis.StateDisabling, ""))),
		"and so it is if one returns an error": withRow(after(later,
			given(spec(func(s *ShopSpec) { s.UnmetError = "short circuit" }), reports("Deployment web Healthy"),
				was(apis.FeatureDisabled, false)),
			ready(isFalse, apis.StateDisabling, "not gone yet: Deployment default/web"),
			was(apis.FeatureDisabled, false, entry(later, "Deployment", "web", apis.StateDisabling, "")))).
			fails("short circuit"),
		"and nothing is left": withRow(after(later,
			given(spec(func(s *ShopSpec) { s.UnmetError = "short circuit" }), was(apis.FeatureDisabled, false)),
			ready(isFalse, apis.StatePrerequisiteNotMet, "short circuit"), since(apis.FeatureWaiting, later, false))).
			fails("short circuit"),
		"it is rolled out again while something is left": withRow(after(later,
			given(reports("Deployment web Creating Down"), was(apis.FeatureDisabled, false)),
			ready(isFalse, apis.StateCreating, "Deployment default/web"), since(apis.FeatureProgressing, later, true,
				bad("Deployment", "web", apis.StateCreating, "")))).back(grace),
	})
}

// A feature of which it is not known whether it is suspended is left as it is, like one whose gate is not known.
func TestFeatureThatMayBeSuspended(t *testing.T) {
	unknown := spec(func(s *ShopSpec) { s.SuspendedError = "no calendar" })
	unmet := spec(func(s *ShopSpec) { s.Unmet = "no electricity" })
	run(t, tests{
		"it is not known": withRow(after(later,
			given(unknown, reports("Deployment web Failing"), healthy, was(apis.FeatureHealthy, true)),
			ready(isFalse, apis.StateFeatureGateError, "no calendar"))).fails("no calendar"),
		"of a feature that is suspended": withRow(after(later,
			given(unknown, ready(isTrue, apis.StateSuspended, ""), was(apis.FeatureSuspended, true)),
			ready(isFalse, apis.StateFeatureGateError, "no calendar"))).fails("no calendar"),
		"of a feature that is off": after(began, given(unknown, off),
			ready(isTrue, apis.StateDisabled, ""), was(apis.FeatureDisabled, false)),
		"of a feature that waits": after(began, given(unknown, unmet),
			ready(isFalse, apis.StatePrerequisiteNotMet, "no electricity"), was(apis.FeatureWaiting, false)),
	})
	s := shop.With(unknown).Object()
	outer := till(&featureOf{Name: "Drawer", Reconciler: scripted{}, Suspended: till(nil).Suspended})
	outer.Suspended = func(context.Context, *Shop) (bool, error) { return true, nil }
	if _, err := outer.Reconcile(rtime.StashNow(t.Context(), began), s); err != nil {
		t.Errorf("the error is %v, want that what is suspended around a feature suspends it without asking", err)
	}
}

func TestFeaturePrerequisites(t *testing.T) {
	unmet := spec(func(s *ShopSpec) { s.Unmet = "no electricity" })
	unmetError := spec(func(s *ShopSpec) { s.UnmetError = "short circuit" })
	run(t, tests{
		"one is not met": after(began,
			given(unmet, reports("Deployment web Failing"), is("CashReady", isUnknown, "Initializing", "")),
			func(s *Shop) { s.Status.Conditions = nil },
			ready(isFalse, apis.StatePrerequisiteNotMet, "no electricity"), was(apis.FeatureWaiting, false)),
		"one returns an error": withRow(after(began, given(unmetError),
			ready(isFalse, apis.StatePrerequisiteNotMet, "short circuit"), was(apis.FeatureWaiting, false))).
			fails("short circuit"),
		"suspension does not matter while one is not met": after(began, given(unmet, paused),
			ready(isFalse, apis.StatePrerequisiteNotMet, "no electricity"), was(apis.FeatureWaiting, false)),
		"once passed, they are not asked": after(later, given(unmet, unmetError, was(apis.FeatureWaiting, true)),
			healthy, since(apis.FeatureHealthy, later, true)),
		"an error does not pass them": after(later,
			given(unmet, ready(isFalse, apis.StateError, "boom"), was(apis.FeatureDisabled, false)),
			ready(isFalse, apis.StatePrerequisiteNotMet, "no electricity"), since(apis.FeatureWaiting, later, false)),
		"waiting uses up no grace": withRow(after(began.Add(24*time.Hour),
			given(reports("Deployment web Creating Down"), was(apis.FeatureWaiting, false),
				ready(isFalse, apis.StatePrerequisiteNotMet, "no electricity")),
			ready(isFalse, apis.StateCreating, "Deployment default/web"),
			since(apis.FeatureProgressing, began.Add(24*time.Hour), true,
				bad("Deployment", "web", apis.StateCreating, "")))).back(grace),
	})
}

func TestFeatureSuspension(t *testing.T) {
	row := func(reports edit, expected ...edit) row {
		return after(later, given(paused, reports, healthy, was(apis.FeatureHealthy, true)), expected...)
	}
	run(t, tests{
		"an object was not told yet": row(reports("Deployment web PendingSuspension", "Deployment api Suspending"),
			ready(isFalse, apis.StatePendingSuspension, "Deployment default/web"),
			since(apis.FeatureSuspended, later, true, bad("Deployment", "web", apis.StatePendingSuspension, ""),
				bad("Deployment", "api", apis.StateSuspending, ""))),
		"an object still runs": row(reports("Deployment web Suspending - 1 pod", "Deployment api Suspended"),
			ready(isFalse, apis.StateSuspending, "Deployment default/web: 1 pod"),
			since(apis.FeatureSuspended, later, true, bad("Deployment", "web", apis.StateSuspending, "1 pod"))),
		"a component is not done": row(reports("Component web Updating"),
			ready(isFalse, apis.StateSuspending, "Component default/web"),
			since(apis.FeatureSuspended, later, true, bad("Component", "web", apis.StateSuspending, ""))),
		"nothing runs": row(reports("Deployment web Suspended", "DaemonSet agent absent", "Service web Healthy"),
			ready(isTrue, apis.StateSuspended, ""), since(apis.FeatureSuspended, later, true)),
		"an auxiliary object still runs": row(reports("auxiliary Deployment web Suspending"),
			ready(isTrue, apis.StateSuspended, ""),
			since(apis.FeatureSuspended, later, true, func() apis.DependentStatus {
				d := bad("Deployment", "web", apis.StateSuspending, "")
				d.Auxiliary = true
				return d
			}())),
		"errors count": row(reports("Deployment web error no right"),
			ready(isFalse, apis.StateError, "Deployment default/web: no right"),
			since(apis.FeatureSuspended, later, true, bad("Deployment", "web", apis.StateError, "no right"))),
		"resumed": withRow(after(later.Add(time.Hour),
			given(reports("Deployment web Scaling"), was(apis.FeatureSuspended, true)),
			ready(isFalse, apis.StateScaling, "Deployment default/web"),
			since(apis.FeatureProgressing, later.Add(time.Hour), true,
				bad("Deployment", "web", apis.StateScaling, "")))).
			back(grace),
	})
}

// The nested node sees what it has to do, and runs only if it has something to do.
func TestFeatureSupervises(t *testing.T) {
	for name, tc := range map[string]struct {
		given edit
		want  []reconcilers.Supervision
	}{
		"maintained":    {reports(), []reconcilers.Supervision{reconcilers.Maintain}},
		"suspended":     {paused, []reconcilers.Supervision{reconcilers.Suspend}},
		"withdrawn":     {off, []reconcilers.Supervision{reconcilers.Withdraw}},
		"terminating":   {func(s *Shop) { off(s); terminating(s) }, []reconcilers.Supervision{reconcilers.Maintain}},
		"gate error":    {spec(func(s *ShopSpec) { s.GateError = "boom" }), nil},
		"not known":     {spec(func(s *ShopSpec) { s.SuspendedError = "boom" }), nil},
		"not met":       {spec(func(s *ShopSpec) { s.Unmet = "boom" }), nil},
		"unmet by fail": {spec(func(s *ShopSpec) { s.UnmetError = "boom" }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []reconcilers.Supervision
			_, _ = till(scripted{&calls}).Reconcile(t.Context(), shop.With(tc.given).Object())
			if len(calls) != len(tc.want) || len(calls) == 1 && calls[0] != tc.want[0] {
				t.Errorf("got %q, expected %q", calls, tc.want)
			}
		})
	}
}

// A feature of real objects converges from each fault.
func TestFeatureOfObjects(t *testing.T) {
	stock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stock"}}
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(stock, shop, scheme)}
	rows := tests{
		"rolled out": func() row {
			r := after(began, nil, healthy, was(apis.FeatureHealthy, true))
			r.ExpectCreates = []client.Object{stock}
			return r
		}(),
		"idle": func() row {
			r := after(later, given(healthy, was(apis.FeatureHealthy, true)))
			r.GivenObjects = []client.Object{stock}
			return r
		}(),
		"switched off": func() row {
			r := after(later, given(off, healthy, was(apis.FeatureHealthy, true)),
				ready(isTrue, apis.StateDisabled, ""), since(apis.FeatureDisabled, later, false))
			r.GivenObjects = []client.Object{stock}
			r.ExpectDeletes = []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "default", Name: "stock"}}
			r.Until = rtesting.Rest()
			return r
		}(),
		"the record is lost": func() row {
			r := after(began, nil, healthy, was(apis.FeatureHealthy, true))
			r.GivenObjects = []client.Object{stock}
			return r
		}(),
		"the record is lost, and a prerequisite is not met any more": func() row {
			r := after(began, given(spec(func(s *ShopSpec) { s.Unmet = "no electricity" })),
				ready(isFalse, apis.StatePrerequisiteNotMet, "no electricity"), was(apis.FeatureWaiting, false))
			r.GivenObjects = []client.Object{stock}
			return r
		}(),
	}
	for name, r := range rows {
		if r.Resource.Spec.Unmet == "" {
			r.ExpectTracks = tracks
			if r.Until == rtesting.Rest() {
				r.ExpectTracks = append(slices.Clone(tracks), tracks[0], tracks[0])
			}
		}
		rows[name] = r
	}
	rows.RunNode(t, scheme, func() node { return till(stockroom{}) })
}

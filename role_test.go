package espalier_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// supervised runs a node below a supervisor that suspends or withdraws the objects of a widget that asks for it. What
// the supervisor is told becomes a field of the status.
type supervised struct{ node }

func (n supervised) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	s := &supervisor{}
	switch {
	case asks(w, "withdraw"):
		s.says = reconcilers.Withdraw
	case asks(w, "suspend"):
		s.says = reconcilers.Suspend
	}
	result, err := n.node.Reconcile(reconcilers.WithSupervisor(ctx, s), w)
	delete(w.Status.Fields, "observed")
	if len(s.observed) > 0 {
		w.Status.AddField("observed", strings.Join(s.observed, "\n"))
	}
	return result, err
}

type supervisor struct {
	health.Suspensions
	says     reconcilers.Supervision
	observed []string
}

func (s *supervisor) Supervision() reconcilers.Supervision { return s.says }

func (s *supervisor) SuspensionOf(live client.Object) apis.Health { return s.Of(live) }

func (s *supervisor) Observe(object reconcilers.ObservedObject) {
	line := fmt.Sprintf("%s: %s %q", object.Node, object.Kind.Kind, object.Name)
	for _, fact := range []struct {
		holds bool
		text  string
	}{
		{object.Object == nil, "absent"},
		{object.Object != nil && object.Object.GetDeletionTimestamp() != nil, "terminating"},
		{object.Auxiliary, "auxiliary"},
		{object.Unchecked, "unchecked"},
		{object.Err != nil, fmt.Sprint(object.Err)},
		{object.Health != nil, textOf(object.Health)},
	} {
		if fact.holds {
			line += ", " + fact.text
		}
	}
	s.observed = append(s.observed, line)
}

func textOf(health *apis.Health) string {
	if health == nil {
		return ""
	}
	text := strings.TrimSpace(string(health.State) + " " + health.Reason)
	return strings.TrimSuffix(text+": "+health.Message, ": ")
}

func observed(lines ...string) func(*resources.Widget) {
	return func(w *resources.Widget) { w.Status.AddField("observed", strings.Join(lines, "\n")) }
}

const (
	soon        = 10 * time.Second
	failsCreate = "inducing failure for create "
)

func creationFailed(kind, name string) []rtesting.Event {
	return event(corev1.EventTypeWarning, "CreationFailed",
		fmt.Sprintf("Failed to create %s %q: %s%s", kind, name, failsCreate, kind))
}

func TestOwnsRoles(t *testing.T) {
	fails := []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap")}
	owns := func() *espalier.Child[*resources.Widget, *corev1.ConfigMap] {
		return espalier.Owns("ConfigMap", desiredConfigMap)
	}
	const child = `ConfigMap: ConfigMap "gadget"`
	const failure = ", " + failsCreate + "ConfigMap"
	given := []object{configMap.With(exists)}
	withdrawn := widget.With(with("withdraw"))

	for name, test := range map[string]struct {
		node     func() node
		facts    string
		isolates bool
	}{
		"required":  {func() node { return owns() }, "", false},
		"unchecked": {func() node { return owns().Unchecked() }, ", unchecked", false},
		"auxiliary": {func() node { return owns().Auxiliary() }, ", auxiliary", true},
		"both":      {func() node { return owns().Unchecked().Auxiliary() }, ", auxiliary, unchecked", true},
	} {
		t.Run(name, func(t *testing.T) {
			delay := reconcilers.Result{}
			if test.isolates {
				delay.RequeueAfter = soon
			}
			run(t, tests{
				"in sync": {
					Resource: widget.Object(), GivenObjects: given,
					ExpectResource: widget.With(observed(child + test.facts)).Object(),
				},
				"it cannot be created": {
					Resource: widget.Object(), WithReactors: fails,
					ExpectCreates: []object{configMap}, ExpectEvents: creationFailed("ConfigMap", "gadget"),
					ExpectResource: widget.With(observed(child + ", absent" + test.facts + failure)).Object(),
					ExpectedResult: delay, ShouldErr: !test.isolates,
				},
				"the function fails": {
					Resource: widget.With(with("error")).Object(),
					ExpectResource: widget.With(with("error"),
						observed(`ConfigMap: ConfigMap "", absent`+test.facts+", boom")).Object(),
					ExpectedResult: delay, ShouldErr: !test.isolates,
				},
				"not ready": {
					Resource: widget.With(with("not ready")).Object(),
					ExpectResource: widget.With(with("not ready"), observed(
						`ConfigMap: ConfigMap "", absent`+test.facts+", Blocked NoColor: there is no color in stock")).Object(),
					ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
				},
				"not ready, and it exists": {
					Resource: widget.With(with("not ready")).Object(), GivenObjects: given,
					ExpectResource: widget.With(with("not ready"), observed(
						child+test.facts+", Blocked NoColor: there is no color in stock")).Object(),
					ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
				},
				"withdrawn": {
					Resource: withdrawn.Object(), GivenObjects: given,
					ExpectDeletes: deletes, ExpectEvents: deleted,
					ExpectResource: withdrawn.With(observed(child + ", terminating" + test.facts)).Object(),
				},
				// What is left must not be forgotten.
				"withdrawn, and cannot be deleted": {
					Resource: withdrawn.Object(), GivenObjects: given,
					WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("delete", "ConfigMap")},
					ExpectDeletes: deletes,
					ExpectEvents: event(corev1.EventTypeWarning, "DeleteFailed",
						`Failed to delete ConfigMap "gadget": inducing failure for delete ConfigMap`),
					ExpectResource: withdrawn.With(
						observed(child + test.facts + ", inducing failure for delete ConfigMap")).Object(),
					ShouldErr: true,
				},
			}, func() node { return supervised{test.node()} })
		})
	}
}

// The nodes after an auxiliary child run, also without a feature.
func TestOwnsAuxiliaryIsolatesErrors(t *testing.T) {
	fails := []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap")}
	done := is("Done", metav1.ConditionTrue, "Succeeded", "")
	run(t, tests{
		"it cannot be created": {
			Resource: widget.Object(), WithReactors: fails,
			ExpectCreates: []object{configMap}, ExpectEvents: creationFailed("ConfigMap", "gadget"),
			ExpectResource: widget.With(done).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: soon},
		},
		"terminating, and cannot be deleted": {
			Resource: terminating.Object(), GivenObjects: []object{configMap.With(exists)},
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("delete", "ConfigMap")},
			ExpectDeletes: deletes,
			ExpectEvents: event(corev1.EventTypeWarning, "DeleteFailed",
				`Failed to delete ConfigMap "gadget": inducing failure for delete ConfigMap`),
			ShouldErr: true,
		},
	}, func() node {
		return reconcilers.Sequence[*resources.Widget]{
			espalier.Owns("ConfigMap", desiredConfigMap).Auxiliary(),
			espalier.Runs("After", func(context.Context, *resources.Widget) error { return nil }).Reports("Done"),
		}
	})
	durable := fmt.Errorf("never: %w", reconcilers.ErrDurable)
	run(t, tests{"an error that no retry mends": {Resource: widget.Object()}}, func() node {
		return espalier.Owns("ConfigMap", func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
			return nil, durable
		}).Auxiliary()
	})
}

func TestOwnsEachRoles(t *testing.T) {
	fails := []rtesting.ReactionFunc{rtesting.InduceFailure("create", "Deployment")}
	each := func() *espalier.Children[*resources.Widget, *appsv1.Deployment] {
		return espalier.OwnsEach("Parts", desiredParts)
	}
	one, two := `Parts/one: Deployment "one"`, `Parts/two: Deployment "two"`
	const old = `Parts/old: Deployment "old"`
	run(t, tests{
		"in sync": {
			Resource: widget.Object(), GivenObjects: []object{readyPart("one"), readyPart("two")},
			ExpectResource: widget.With(observed(one+", auxiliary", two+", auxiliary")).Object(),
		},
		"one cannot be created": {
			Resource: widget.Object(), WithReactors: fails, GivenObjects: []object{readyPart("one")},
			ExpectCreates: []object{part("two")}, ExpectEvents: creationFailed("Deployment", "two"),
			ExpectResource: widget.With(observed(one+", auxiliary",
				two+", absent, auxiliary, "+failsCreate+"Deployment")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: soon},
		},
	}, func() node { return supervised{each().Auxiliary()} })
	run(t, tests{
		"in sync": {
			Resource: widget.Object(), GivenObjects: []object{readyPart("one"), readyPart("two")},
			ExpectResource: widget.With(observed(one+", unchecked", two+", unchecked")).Object(),
		},
		"not ready": {
			Resource: widget.With(with("not ready")).Object(), GivenObjects: []object{readyPart("old")},
			ExpectResource: widget.With(with("not ready"),
				observed(old+", unchecked, Blocked NoColor: there is no color in stock")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
	}, func() node { return supervised{each().Unchecked()} })
}

func TestWithdraw(t *testing.T) {
	const finalizer = "test.espalier.dev/registry"
	withdrawn := widget.With(with("withdraw"))
	runsDown, finalized := 0, 0
	verify := func(want int) rtesting.VerifyFunc {
		return func(t *testing.T, _ reconcilers.Result, _ error) {
			if runsDown != 0 || finalized != want {
				t.Errorf("called %d times and finalized %d times, expected %d", runsDown, finalized, want)
			}
		}
	}
	cleared := rtesting.PatchRef{
		Group: "test.espalier.dev", Kind: "Widget", Namespace: "default", Name: "gadget",
		PatchType: "application/merge-patch+json", Patch: []byte(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`),
	}
	run(t, tests{
		"what has a finalizer is cleaned up": {
			Resource:       withdrawn.With(func(w *resources.Widget) { w.Finalizers = []string{finalizer} }).Object(),
			ExpectResource: withdrawn.With(func(w *resources.Widget) { w.ResourceVersion = "1000" }).Object(),
			ExpectPatches:  []rtesting.PatchRef{cleared},
			ExpectEvents:   event(corev1.EventTypeNormal, "FinalizerPatched", `Patched finalizer "`+finalizer+`"`),
			Verify:         verify(1),
		},
		"what was never made is not": {Resource: withdrawn.Object(), Verify: verify(0)},
	}, func() node {
		runsDown, finalized = 0, 0
		return supervised{espalier.Runs("Registration", runs(&runsDown)).Reports("Registered").
			Finalizes(finalizer, runs(&finalized))}
	})
	run(t, tests{"without a finalizer": {Resource: withdrawn.Object(), Verify: verify(0)}}, func() node {
		runsDown, finalized = 0, 0
		return supervised{espalier.Runs("Registration", runs(&runsDown)).Reports("Registered").Every(time.Minute)}
	})

	// A reference to what is gone must not keep the child.
	missing := espalier.Reads("Settings", stash.New[*corev1.ConfigMap]("test.espalier.dev/settings"), settingsKey)
	never := func(context.Context, *resources.Widget) bool { return false }
	for name, branch := range map[string]*espalier.Branch[*resources.Widget]{
		"When":     espalier.When("Branch", never, missing, espalier.Owns("ConfigMap", desiredConfigMap)),
		"WhenTrue": espalier.WhenTrue("Branch", missing, espalier.Owns("ConfigMap", desiredConfigMap)),
	} {
		run(t, tests{"the child goes, below " + name: {
			Resource: withdrawn.Object(), GivenObjects: []object{configMap.With(exists)},
			ExpectDeletes: deletes, ExpectEvents: deleted,
			ExpectResource: withdrawn.With(observed(
				`Branch/1/ConfigMap: ConfigMap "gadget", terminating`)).Object(),
		}}, func() node { return supervised{branch} })
	}
}

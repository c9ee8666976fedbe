package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	rtime "github.com/espalier-dev/espalier/time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var plane controlplanetest.Shared

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

const prefix = "platform.example.com"

var (
	errDown   = errors.New("the connection is lost")
	errPolicy = errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too old")
)

// counting notes what is asked of a guard.
type counting struct {
	execute.Guard
	lifts int
}

func (g *counting) Lift(ctx context.Context, key plan.Key) error {
	g.lifts++
	return g.Guard.Lift(ctx, key)
}

// rig is a component that brings one type.
type rig struct {
	*testing.T
	client.WithWatch
	crd    *apiextensionsv1.CustomResourceDefinition
	policy manifest.Options
	status apis.ComponentStatus
	owner  observe.Component
	// down: the process ends at the creation for trial, or at the DELETE.
	down string
	// refuse: admission refuses to write the definition; closing: it begins to when an instance is tried.
	refuse, closing bool
	// margin is that of fences, and proofs is what the guards remember of theirs.
	margin time.Duration
	proofs foreign.Memory
	// beforeDelete is that of the task.
	beforeDelete func(context.Context) error
	// memory is kept from run to run if it is set.
	memory *engine.Memory
	// now is the time of a run; the clock of the machine if it is zero.
	now time.Time
	// writes and lifts are those of the last run.
	writes, lifts int
}

func newRig(t *testing.T, kind string, policy manifest.Options) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, policy: policy}
	r.policy.Prefix = prefix
	r.policy.Namespaced = func(schema.GroupVersionKind) (bool, bool, error) { return false, true, nil }
	r.WithWatch = interceptor.NewClient(c, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			r.writes++
			if r.down == "delete" {
				return errDown
			}
			return c.Delete(ctx, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if r.down == "create" {
				return errDown
			}
			r.refuse = r.refuse || r.closing
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			r.writes++
			if r.refuse {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, o.GetName(), errPolicy)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	text := engine.OwnerText(schema.GroupKind{Group: prefix, Kind: "Platform"}, types.NamespacedName{Name: kind}, "", "uid")
	r.owner = observe.Component{Watcher: types.NamespacedName{Name: kind}, UID: "uid", OwnerID: engine.OwnerID(text), Owner: text}
	plural := strings.ToLower(kind) + "s"
	r.crd = &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".engine.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "engine.example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
	r.crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), r.crd.DeepCopy()); client.IgnoreNotFound(err) != nil {
			t.Errorf("the clean-up ends with %v, want the definition deleted", err)
		}
	})
	return r
}

// run makes one run of a new process, which knows nothing but the status.
func (r *rig) run(deleting bool, objects ...client.Object) (*engine.Report, error) {
	r.Helper()
	r.writes, r.lifts = 0, 0
	now := r.now
	if now.IsZero() {
		now = time.Now()
	}
	r.owner.Now = now
	memory := r.memory
	if memory == nil {
		memory = &engine.Memory{}
	}
	desired, err := manifest.Prepare(objects, r.policy, nil)
	if err != nil {
		r.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(plane.Config(r.T))
	if err != nil {
		r.Fatal(err)
	}
	guard := &counting{Guard: &foreign.Guard{
		Client: r.WithWatch, Discovery: d, OwnerLabel: prefix + "/owner-id", OwnerID: r.owner.OwnerID, FieldManager: prefix, ProofTimeout: time.Minute,
		Margin: r.margin, Memory: &r.proofs,
	}}
	machine := &engine.Engine{
		Client: r.WithWatch, Observer: observe.NewDirect(r.WithWatch, prefix, prefix, readiness.Of), Store: inventory.NewStatus(&r.status),
		Guard: guard, Memory: memory, Component: r.owner, FieldManager: prefix,
		Mark: execute.Mark{Prefix: prefix, ID: r.owner.OwnerID, Owner: r.owner.Owner},
	}
	report, err := machine.Run(rtime.StashNow(r.Context(), now), engine.Task{
		Deleting: deleting, AllowEmpty: true, Objects: desired, Now: now, BeforeDelete: r.beforeDelete,
	})
	r.lifts = guard.lifts
	return report, err
}

// converge runs until there is nothing left to do.
func (r *rig) converge(deleting bool, objects ...client.Object) {
	r.Helper()
	controlplanetest.Eventually(r, "there is something left to do", func(context.Context) error {
		report, err := r.run(deleting, objects...)
		if err == nil && (!report.Plan.Done || report.Recorded > 0) {
			err = fmt.Errorf("%+v", report.Plan.Obstacles)
		}
		if again := report.Plan.Recheck; !r.now.IsZero() && !again.IsZero() {
			r.now = again
		}
		return err
	})
}

func (r *rig) live() *apiextensionsv1.CustomResourceDefinition {
	r.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.Get(r.Context(), client.ObjectKeyFromObject(r.crd), crd); err != nil {
		r.Fatal(err)
	}
	return crd
}

// create tries whether an instance can be created.
func (r *rig) create() error { return r.Create(r.Context(), r.theirs(), client.DryRunAll) }

// theirs is an instance of others.
func (r *rig) theirs() *unstructured.Unstructured {
	instance := &unstructured.Unstructured{}
	instance.SetAPIVersion(r.crd.Spec.Group + "/v1")
	instance.SetKind(r.crd.Spec.Names.Kind)
	instance.SetName("theirs")
	return instance
}

// leaveFence begins a removal of the type and ends the process before the proof of the fence, or before the DELETE.
func (r *rig) leaveFence(before string) {
	r.Helper()
	r.down = before
	controlplanetest.Eventually(r, "no removal is begun", func(context.Context) error {
		if _, err := r.run(false); !errors.Is(err, errDown) {
			return fmt.Errorf("the removal did not come to the deletion: %v", err)
		}
		return nil
	})
	r.down = ""
	controlplanetest.Eventually(r, "there is no fence", func(context.Context) error {
		if err := r.create(); err == nil || !strings.Contains(err.Error(), "the type is being removed") {
			return fmt.Errorf("an instance can be created: %v", err)
		}
		return nil
	})
	if !foreign.Fenced(r.live(), prefix+"/"+foreign.AnnotationFence) {
		r.Fatalf("the annotations are %v, want the fence noted", r.live().Annotations)
	}
}

// assertOpen fails unless instances can be created, and nothing is left of a fence.
func (r *rig) assertOpen() {
	r.Helper()
	crd := r.live()
	if rules := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations; len(rules) > 0 || crd.DeletionTimestamp != nil {
		r.Fatalf("the rules are %v and the definition is deleted at %v, want neither", rules, crd.DeletionTimestamp)
	}
	if note := crd.Annotations[prefix+"/fence"]; note != "" {
		r.Errorf("the note of the fence is %s, want none", note)
	}
	controlplanetest.Eventually(r, "no instance can be created", func(context.Context) error { return r.create() })
}

// A removal that was broken off has left a fence, and then the type is desired again.
func TestFenceOfATypeThatStays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		policy apis.ReconcilePolicy
		before string
	}{
		{apis.ReconcileOnObjectChange, "delete"},
		{apis.ReconcileOnce, "delete"},
		{apis.ReconcileOnce, "create"},
	}
	for i, test := range tests {
		t.Run(string(test.policy)+" "+test.before, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, fmt.Sprintf("Stay%d", i), manifest.Options{ReconcilePolicy: test.policy})
			r.converge(false, r.crd)
			r.leaveFence(test.before)

			report, err := r.run(false, r.crd)
			if err != nil || r.lifts != 1 {
				t.Fatalf("the fence was lifted %d times, want 1: %v, %+v", r.lifts, err, report.Plan.Obstacles)
			}
			r.assertOpen()
			r.converge(false, r.crd)
			version := r.live().ResourceVersion
			if _, err := r.run(false, r.crd); err != nil || r.writes != 0 || r.lifts != 0 {
				t.Errorf("there are %d writes and %d lifts, want none: %v", r.writes, r.lifts, err)
			}
			if r.live().ResourceVersion != version {
				t.Errorf("the resource version is %s, want %s: the definition was written for nothing",
					r.live().ResourceVersion, version)
			}
		})
	}
}

// Such a fence is taken off as well when the component goes and leaves the type behind.
func TestFenceOfATypeThatIsLeftBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Left", manifest.Options{DeletePolicy: apis.DeleteOrphanOnDelete})
	r.converge(false, r.crd)
	r.leaveFence("delete")
	r.converge(true)
	r.assertOpen()
	if owner := r.live().Labels[prefix+"/owner-id"]; owner != "" {
		t.Errorf("the owner is %s, want none", owner)
	}
}

// A fence that is refused is tried again after one, two, four, eight, ten and ten minutes, each time with one dry run.
// Nothing is written meanwhile. Once it is not refused any more, the type goes.
func TestFenceThatIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Rest", manifest.Options{})
	r.converge(false, r.crd)
	r.refuse, r.memory, r.now = true, &engine.Memory{}, time.Now()
	const words = "creation of Rest could not be fenced off: refused by the ValidatingAdmissionPolicy 'p': too old"
	for i, minutes := range []time.Duration{1, 2, 4, 8, 10, 10} {
		report, err := r.run(true)
		if err != nil || len(report.Plan.Obstacles) != 1 || !strings.HasSuffix(report.Plan.Obstacles[0].Message, words) {
			t.Fatalf("try %d: the error is %v and the obstacles are %+v, want none and one that ends with %q", i, err,
				report.Plan.Obstacles, words)
		}
		if r.writes != 1 {
			t.Errorf("try %d: there are %d writes, want 1", i, r.writes)
		}
		if delay := report.RetryAt.Sub(r.now); delay != minutes*time.Minute {
			t.Errorf("try %d: the next one is after %v, want %d minutes", i, delay, minutes)
		}
		r.now = report.RetryAt.Add(-time.Nanosecond)
		again, err := r.run(true)
		if err != nil || r.writes != 0 || !again.RetryAt.Equal(report.RetryAt) ||
			!strings.HasSuffix(again.Plan.Obstacles[0].Message, words) {
			t.Errorf("after try %d there are %d writes, the error %v and the obstacles %+v, want none, none and as before",
				i, r.writes, err, again.Plan.Obstacles)
		}
		r.now = report.RetryAt
	}
	r.assertOpen()
	r.refuse = false
	r.converge(true)
}

// The definition is changed by somebody: the fence is tried at once. A new process does not know the refusal.
func TestRefusalDoesNotOutliveTheDefinition(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Edit", manifest.Options{})
	r.converge(false, r.crd)
	r.refuse, r.memory = true, &engine.Memory{}
	if _, err := r.run(true); err != nil || r.writes != 1 {
		t.Fatalf("there are %d writes, want 1: %v", r.writes, err)
	}
	if _, err := r.run(true); err != nil || r.writes != 0 {
		t.Errorf("there are %d writes, want none: %v", r.writes, err)
	}
	live := r.live()
	live.Spec.Names.ShortNames = []string{"ed"}
	if err := r.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run(true); err != nil || r.writes != 1 {
		t.Errorf("after the change there are %d writes, want 1: %v", r.writes, err)
	}
	r.memory = nil
	if _, err := r.run(true); err != nil || r.writes != 1 {
		t.Errorf("in a new process there are %d writes, want 1: %v", r.writes, err)
	}
	r.refuse = false
	r.converge(true)
}

package component_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// supervised is a node whose component has a supervisor. Deployments are suspended without replicas, and Services are deleted.
type supervised struct {
	assemblyNode
	mode     reconcilers.Supervision
	mu       sync.Mutex
	observed []string
}

var _ reconcilers.Supervisor = (*supervised)(nil)

func (s *supervised) Reconcile(ctx context.Context, a *resources.Assembly) (reconcilers.Result, error) {
	s.observed = nil
	return s.assemblyNode.Reconcile(reconcilers.WithSupervisor(ctx, s), a)
}

func (s *supervised) Supervision() reconcilers.Supervision { return s.mode }

func (s *supervised) Suspend(desired client.Object) (bool, error) {
	if desired.GetObjectKind().GroupVersionKind().Kind == "Service" {
		return true, nil
	}
	if desired.GetObjectKind().GroupVersionKind().Kind != "Deployment" {
		return false, nil
	}
	return false, unstructured.SetNestedField(desired.(*unstructured.Unstructured).Object, int64(0), "spec", "replicas")
}

func (s *supervised) SuspensionOf(live client.Object) apis.Health {
	left, _, _ := unstructured.NestedInt64(live.(*unstructured.Unstructured).Object, "status", "replicas")
	if left > 0 {
		return apis.Health{State: apis.StateSuspending, Message: fmt.Sprintf("%d replicas left", left)}
	}
	return apis.Health{State: apis.StateSuspended}
}

func (s *supervised) Observe(o reconcilers.ObservedObject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("%s %s %s", o.Kind.Kind, o.Name, o.Health.State)
	if o.Health.Message != "" {
		text += ": " + o.Health.Message
	}
	if o.Err != nil {
		text += " (" + o.Err.Error() + ")"
	}
	if o.Auxiliary {
		text += " auxiliary"
	}
	if o.Unchecked {
		text += " unchecked"
	}
	if o.Node == "" {
		text += " at no node"
	}
	s.observed = append(s.observed, text)
}

func (s *supervised) saw(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.observed, want) {
		t.Errorf("observed\n%q, want\n%q", s.observed, want)
	}
}

// newSupervised is like newOperated.
func newSupervised(t *testing.T, house *resources.Assembly, node assemblyNode) (*operated, *supervised) {
	t.Helper()
	o := newOperated(t, node, house, nil)
	s := &supervised{assemblyNode: node}
	o.root.Reconciler = s
	return o, s
}

// idles fails if requests make requests of the API server but to read the resource, or change it.
func (o *operated) idles(t *testing.T) {
	t.Helper()
	before := o.house(t).ResourceVersion
	for range 3 {
		_, err := o.reconcile(t, time.Minute)
		if err != nil || len(o.writes) > 0 || o.house(t).ResourceVersion != before {
			t.Errorf("an idle request has the writes %v and the error %v, want neither", o.writes, err)
		}
	}
}

func (o *operated) reasonIs(t *testing.T, status metav1.ConditionStatus, reason string) {
	t.Helper()
	c := meta.FindStatusCondition(o.house(t).Status.Conditions, "Ready")
	if c == nil || c.Status != status || c.Reason != reason {
		t.Errorf("the condition is %+v, want %s", c, reason)
	}
}

func (o *operated) exists(t *testing.T, object client.Object, want bool) {
	t.Helper()
	err := o.client.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	if want && err != nil || !want && !apierrs.IsNotFound(err) {
		t.Errorf("the read of %s ends with %v, want it there: %t", object.GetName(), err, want)
	}
}

// TestWithdraw: a component is withdrawn like a deleted one, and rolled out anew afterwards.
func TestWithdraw(t *testing.T) {
	house, walls, roof := newHouse()
	roof.Annotations[generator.SharedPrefix+"/"+generator.AnnotationDeleteOrder] = "1"
	kept := partOf("default", "kept", "0")
	kept.Annotations[generator.SharedPrefix+"/"+generator.AnnotationDeletePolicy] = "orphan"
	house.SetObjects(walls, roof, kept)
	node := assembling()
	var calls []string
	hook := func(name string) []generator.Hook[*resources.Assembly] {
		return []generator.Hook[*resources.Assembly]{func(context.Context, client.Client, *resources.Assembly) error {
			calls = append(calls, name)
			return nil
		}}
	}
	node.Hooks.PreDelete, node.Hooks.PostDelete = hook("before"), hook("after")
	o, s := newSupervised(t, house, node)

	s.mode = reconcilers.Withdraw
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionUnknown, component.ReasonDisabled)
	if len(o.house(t).Finalizers) > 0 {
		t.Errorf("what was never rolled out has the finalizers %v, want none", o.house(t).Finalizers)
	}
	s.saw(t)
	o.idles(t)

	for round := range 2 {
		s.mode = reconcilers.Maintain
		o.untilIdle(t)
		o.reasonIs(t, metav1.ConditionTrue, "Ready")
		s.saw(t, "Assembly house Healthy")
		o.idles(t)
		s.saw(t, "Assembly house Healthy")
		if revision := o.house(t).Status.Revision; revision != int64(round+1) {
			t.Errorf("the revision is %d, want %d", revision, round+1)
		}
		if round == 1 {
			break
		}
		hold := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "walls"}}
		o.change(t, hold, func() { hold.Finalizers = []string{"example.com/hold"} })
		s.mode = reconcilers.Withdraw
		o.untilIdle(t)
		o.reasonIs(t, metav1.ConditionUnknown, component.ReasonDeletionProcessing)
		s.saw(t, "ConfigMap walls Updating: it is being deleted, and waits for the finalizer example.com/hold", "ConfigMap roof Updating")
		o.change(t, hold, func() { hold.Finalizers = nil })
		o.untilIdle(t)
		o.reasonIs(t, metav1.ConditionUnknown, component.ReasonDisabled)
		s.saw(t)
		o.idles(t)
		after := o.house(t)
		if len(after.Status.Inventory) > 0 || after.Status.State != apis.ComponentPending || after.Status.ProcessingDigest != "" || len(after.Finalizers) > 0 {
			t.Errorf("the status is %+v, want it pending, with neither records nor a digest nor finalizers",
				after.Status)
		}
		if !slices.Equal(calls, []string{"before", "after"}) {
			t.Errorf("the hooks called are %v, want [before after]", calls)
		}
		o.exists(t, walls, false)
		o.exists(t, roof, false)
		o.exists(t, kept, true)
		if err := o.client.Delete(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
	}
}

func deployment(name, order string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{
			generator.SharedPrefix + "/" + generator.AnnotationApplyOrder: order,
		}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			},
		},
	}
}

func (o *operated) replicas(t *testing.T, name string) int32 {
	t.Helper()
	d := &appsv1.Deployment{}
	o.get(t, name, d)
	return *d.Spec.Replicas
}

// runs gives a Deployment the status of one that has so many replicas.
func (o *operated) runs(t *testing.T, name string, replicas int32) {
	t.Helper()
	d := &appsv1.Deployment{}
	o.get(t, name, d)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	if err := o.client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// TestSuspend: objects are suspended, whatever their policies and waves, and are as before afterwards.
func TestSuspend(t *testing.T) {
	stuck, once, scaled := deployment("stuck", "0", 1), deployment("once", "0", 2), deployment("scaled", "0", 3)
	later := deployment("later", "1", 4)
	once.Annotations[generator.SharedPrefix+"/"+generator.AnnotationReconcilePolicy] = "once"
	scaled.Annotations[generator.SharedPrefix+"/"+generator.AnnotationIgnoreFields] = "/spec/replicas"
	gone := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gone", Annotations: map[string]string{
			generator.SharedPrefix + "/" + generator.AnnotationDeletePolicy: "orphan",
		}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	config := partOf("default", "config", "0")
	house := resources.NewAssembly("default", "house", stuck, once, scaled, gone, config, later)
	house.UID = "house-uid"
	house.Spec.Timeout = &metav1.Duration{Duration: time.Minute}
	o, s := newSupervised(t, house, assembling())
	o.untilIdle(t)
	for _, d := range []*appsv1.Deployment{stuck, once, scaled} {
		o.runs(t, d.Name, *d.Spec.Replicas)
	}
	o.untilIdle(t)
	o.runs(t, "later", 4)
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionTrue, "Ready")
	autoscaled := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "scaled"}}
	o.change(t, autoscaled, func() { autoscaled.Spec.Replicas = new(int32(7)) })
	o.untilIdle(t)
	if n := o.replicas(t, "scaled"); n != 7 {
		t.Errorf("the autoscaled one has %d replicas, want 7", n)
	}

	s.mode = reconcilers.Suspend
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionUnknown, component.ReasonSuspending)
	for _, name := range []string{"stuck", "once", "scaled", "later"} {
		if n := o.replicas(t, name); n != 0 {
			t.Errorf("%s has %d replicas, want none", name, n)
		}
	}
	o.exists(t, gone, false)
	if !slices.Contains(s.observed, "Deployment stuck Suspending: 1 replicas left") || !slices.Contains(s.observed, "ConfigMap config Suspended") {
		t.Errorf("the observed objects are %q, want stuck suspending with 1 replica left, and config suspended",
			s.observed)
	}
	if _, err := o.reconcile(t, time.Hour); err != nil {
		t.Errorf("it timed out: %v", err)
	}
	for _, name := range []string{"stuck", "once", "scaled", "later"} {
		o.runs(t, name, 0)
	}
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionUnknown, component.ReasonSuspended)
	s.saw(t, "Assembly house Suspended")
	o.idles(t)
	s.saw(t, "Assembly house Suspended")

	s.mode = reconcilers.Maintain
	o.untilIdle(t)
	for _, d := range []*appsv1.Deployment{stuck, once, scaled} {
		if n := o.replicas(t, d.Name); n != *d.Spec.Replicas && d != scaled {
			t.Errorf("%s has %d replicas, want %d", d.Name, n, *d.Spec.Replicas)
		}
	}
	if n := o.replicas(t, "later"); n != 0 {
		t.Errorf("the later wave has %d replicas before the first is ready, want none", n)
	}
	o.exists(t, gone, true)
	for _, d := range []*appsv1.Deployment{stuck, once, scaled} {
		o.runs(t, d.Name, o.replicas(t, d.Name))
	}
	o.untilIdle(t)
	o.runs(t, "later", 4)
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionTrue, "Ready")
	o.change(t, autoscaled, func() { autoscaled.Spec.Replicas = new(int32(5)) })
	o.untilIdle(t)
	if n := o.replicas(t, "scaled"); n != 5 {
		t.Errorf("the autoscaled one has %d replicas after it was resumed, want 5", n)
	}
	o.runs(t, "scaled", 5)
	o.untilIdle(t)
	o.idles(t)
}

// TestSuspendHangingRelease: what waits for an earlier wave is suspended at once.
func TestSuspendHangingRelease(t *testing.T) {
	first, second := deployment("first", "0", 1), deployment("second", "1", 1)
	house := resources.NewAssembly("default", "house", first, second)
	house.UID = "house-uid"
	o, s := newSupervised(t, house, assembling())
	o.untilIdle(t)
	o.runs(t, "first", 1)
	o.untilIdle(t)
	// The next release hangs.
	o.change(t, house, func() {
		first.Labels = map[string]string{"release": "2"}
		house.SetObjects(first, second)
	})
	o.runs(t, "first", 0)
	o.untilIdle(t)
	o.reasonIs(t, metav1.ConditionUnknown, "Processing")
	o.runs(t, "first", 1)
	s.mode = reconcilers.Suspend
	o.untilIdle(t)
	for _, name := range []string{"first", "second"} {
		if n := o.replicas(t, name); n != 0 {
			t.Errorf("%s has %d replicas, want none", name, n)
		}
	}
}

// TestReports: what fails is named, with its error.
func TestReports(t *testing.T) {
	house, _, _ := newHouse()
	node := assembling()
	broken := errors.New("no such chart")
	o, s := newSupervised(t, house, node)
	o.untilIdle(t)
	node.Generator = generator.GeneratorFunc(func(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
		return nil, broken
	})
	if _, err := o.reconcile(t, time.Minute); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if len(s.observed) != 1 || !strings.Contains(s.observed[0], "Assembly house Unknown (unable to generate the objects: no such chart)") {
		t.Errorf("the observed objects are %q, want the resource alone, unknown, because there is no such chart",
			s.observed)
	}
}

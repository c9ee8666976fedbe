package testing_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// unready are objects that are not ready as they are created, by kstatus or by the rules of components.
var unready = map[string]string{
	"Deployment":              `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3}}`,
	"Deployment of a default": `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}}`,
	"Deployment in progress": `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 1,
		replicas: 1, conditions: [{type: Available, status: "False"}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}}`,
	"Deployment without replicas": `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 0}}`,
	"ReplicaSet":                  `{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 3}}`,
	"StatefulSet":                 `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3}}`,
	"StatefulSet with a partition": `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate,
		rollingUpdate: {partition: 1}}}}`,
	"DaemonSet":                  `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}}`,
	"Job":                        `{apiVersion: batch/v1, kind: Job, spec: {completions: 2, parallelism: 2}}`,
	"Pod":                        `{apiVersion: v1, kind: Pod, status: {phase: Pending}}`,
	"PersistentVolumeClaim":      `{apiVersion: v1, kind: PersistentVolumeClaim}`,
	"Service":                    `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
	"CustomResourceDefinition":   `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}`,
	"APIService":                 `{apiVersion: apiregistration.k8s.io/v1, kind: APIService}`,
	"instance that is behind":    `{apiVersion: example.com/v1, kind: Gadget, metadata: {generation: 2}, status: {observedGeneration: 1}}`,
	"instance that is not ready": `{apiVersion: example.com/v1, kind: Gadget, status: {conditions: [{type: Ready, status: "False", reason: No}]}}`,
	"instance at work":           `{apiVersion: example.com/v1, kind: Gadget, status: {conditions: [{type: Reconciling, status: "True"}]}}`,
	"instance that is stalled":   `{apiVersion: example.com/v1, kind: Gadget, status: {conditions: [{type: Stalled, status: "True"}]}}`,
}

func TestMakeReady(t *testing.T) {
	for name, manifest := range unready {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
				t.Fatal(err)
			}
			if result := health.ReadinessOf(obj); result.Status == apis.ObjectCurrent {
				t.Fatal("it is ready before")
			}
			rtesting.MakeReady(obj)
			if result := health.ReadinessOf(obj); result.Status != apis.ObjectCurrent {
				t.Errorf("it is %s: %s: %v", result.Status, result.Message, obj.Object)
			}
			if result, err := status.Compute(obj); err != nil || result.Status != status.CurrentStatus {
				t.Errorf("kstatus says %v, %v", result, err)
			}
			before := obj.DeepCopy()
			rtesting.MakeReady(obj)
			if !equalJSON(before, obj) {
				t.Errorf("made ready again, it changed from %v to %v", before.Object, obj.Object)
			}
		})
	}
}

func equalJSON(a, b *unstructured.Unstructured) bool {
	x, _ := a.MarshalJSON()
	y, _ := b.MarshalJSON()
	return string(x) == string(y)
}

// assemblyOfAll are objects of kinds that a component waits for.
func assemblyOfAll() *resources.Assembly {
	web := deploymentOf("web")
	web.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	db := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"},
		Spec:       appsv1.StatefulSetSpec{Selector: web.Spec.Selector, Template: web.Spec.Template},
	}
	entry := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "entry"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	return houseOf(web, db, entry)
}

func TestRolloutsBecomeReady(t *testing.T) {
	house := rtesting.Rollout[*resources.Assembly]{
		Scheme: widgets, Resource: assemblyOfAll(), Reconciler: houseNode(), Complete: rtesting.MakeReady,
	}.Run(t)
	if state := house.Object().Status.State; state != apis.ComponentReady {
		t.Errorf("the state is %s: %v", state, house.Object().Status.Conditions)
	}
	web := house.Find(deploymentOf("web")).(*appsv1.Deployment)
	if web.Status.ReadyReplicas != 2 {
		t.Errorf("the Deployment has the status %v", web.Status)
	}
}

// failure returns the text with which a roll-out fails.
func failure(rollout rtesting.Rollout[*resources.Assembly]) (text string) {
	defer func() {
		if err, ok := recover().(error); ok {
			text = err.Error()
		}
	}()
	rollout.Run(nil)
	return ""
}

func TestRolloutsSayWhatTheyWaitFor(t *testing.T) {
	waiting := rtesting.Rollout[*resources.Assembly]{Scheme: widgets, Resource: assemblyOfAll(), Reconciler: houseNode()}
	for _, want := range []string{
		"waits for what does not happen in a test: set Complete to rtesting.MakeReady",
		"for a state in between, set Requests\n  condition Ready is ", "Deployment default/web",
	} {
		if got := failure(waiting); !strings.Contains(got, want) {
			t.Errorf("failed with %q, want %q", got, want)
		}
	}
	waiting.Requests = 5
	if got := failure(waiting); got != "" {
		t.Errorf("failed with %q after the requests that it was to make", got)
	}
	endless := waiting
	endless.Requests = 0
	endless.Reconciler = &reconcilers.SyncReconciler[*resources.Assembly]{Sync: func(ctx context.Context, _ *resources.Assembly) error {
		return reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "more-"}})
	}}
	if got, want := failure(endless), "after 100 requests; the last one wrote: create ConfigMap default/more-*"; !strings.Contains(got, want) {
		t.Errorf("failed with %q, want %q", got, want)
	}
}

// What Complete does counts as far as it is stored, in any Go types.
func TestCompletionsAreComparedAsStored(t *testing.T) {
	calls := 0
	rollout := rtesting.Rollout[*resources.Assembly]{
		Scheme: widgets, Resource: assemblyOfAll(), Reconciler: houseNode(),
		Complete: func(obj *unstructured.Unstructured) {
			calls++
			rtesting.MakeReady(obj)
			if state, ok := obj.Object["status"].(map[string]any); ok && obj.GetKind() == "Deployment" {
				state["readyReplicas"], state["unknown"], state["conditions"] = 2, "x", []map[string]any{
					{"type": "Available", "status": "True", "lastTransitionTime": "2000-01-01T00:00:00+00:00"},
					{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
				}
			}
		},
	}
	if got := failure(rollout); got != "" || calls > 100 {
		t.Errorf("after %d calls of Complete, failed with %q", calls, got)
	}
	rollout.Complete = func(obj *unstructured.Unstructured) {
		if obj.GetKind() == "Deployment" {
			_ = unstructured.SetNestedField(obj.Object, 1, "status", "replicas")
		}
	}
	if got, want := failure(rollout), "unable to complete Deployment default/web, the function panicked: cannot deep copy int\n"; !strings.Contains(got, want) || !strings.Contains(got, "make_ready_test.go") {
		t.Errorf("failed with %q, want %q", got, want)
	}
	rollout.Complete = func(obj *unstructured.Unstructured) { obj.Object["status"] = func() {} }
	if got, want := failure(rollout), "what Complete made of Namespace /default is no JSON"; !strings.Contains(got, want) {
		t.Errorf("failed with %q, want %q", got, want)
	}
}

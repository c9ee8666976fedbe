package health_test

import (
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestSuspend(t *testing.T) {
	for _, tc := range []struct {
		kind, spec, want string
		remove           bool
	}{
		{"apps/v1 Deployment", "{replicas: 3, minReadySeconds: 5}", "{replicas: 0, minReadySeconds: 5}", false},
		{"apps/v1 Deployment", "{minReadySeconds: 5}", "{replicas: 0, minReadySeconds: 5}", false},
		{"apps/v1 StatefulSet", "{serviceName: web}", "{replicas: 0, serviceName: web}", false},
		{"apps/v1 ReplicaSet", "{replicas: 2}", "{replicas: 0}", false},
		{"batch/v1 Job", "{completions: 3}", "{completions: 3, suspend: true}", false},
		{"batch/v1 CronJob", "{suspend: false}", "{suspend: true}", false},
		{"apps/v1 DaemonSet", "{minReadySeconds: 5}", "{minReadySeconds: 5}", true},
		{"v1 Pod", "{nodeName: x}", "{nodeName: x}", true},
		{"autoscaling/v2 HorizontalPodAutoscaler", "{maxReplicas: 3}", "{maxReplicas: 3}", true},
		{"autoscaling/v1 HorizontalPodAutoscaler", "{maxReplicas: 3}", "{maxReplicas: 3}", true},
		{"v1 PersistentVolumeClaim", "{volumeName: x}", "{volumeName: x}", false},
		{"v1 Service", "{type: LoadBalancer}", "{type: LoadBalancer}", false},
		{"example.com/v1 Deployment", "{replicas: 3}", "{replicas: 3}", false},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			object, want := withSpec(t, tc.kind, tc.spec), withSpec(t, tc.kind, tc.want)
			typed, wantTyped := typedOf(t, object), typedOf(t, want)
			if remove, err := (health.Suspensions)(nil).Suspend(object); err != nil || remove != tc.remove {
				t.Errorf("that Suspend removes is %v and the error %v, want %v and none", remove, err, tc.remove)
			}
			if diff := cmp.Diff(want, object); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			if typed == nil {
				return
			}
			if remove, err := (health.Suspensions{}).Suspend(typed); err != nil || remove != tc.remove {
				t.Errorf("that Suspend of the typed object removes is %v and the error %v, want %v and none", remove,
					err, tc.remove)
			}
			if diff := cmp.Diff(wantTyped, typed); diff != "" {
				t.Errorf("typed (-want, +got):\n%s", diff)
			}
		})
	}
}

// withSpec returns an object of a kind, which is written as in "apps/v1 Deployment".
func withSpec(t *testing.T, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	gv, err := schema.ParseGroupVersion(kind[:len(kind)-len(lastWord(kind))-1])
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, "apiVersion: "+gv.String()+"\nkind: "+lastWord(kind)+"\nmetadata: {name: x}\nspec: "+spec)
}

func lastWord(text string) string {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == ' ' {
			return text[i+1:]
		}
	}
	return text
}

const (
	toBeTold  = apis.StatePendingSuspension
	suspended = apis.StateSuspended
	underWay  = apis.StateSuspending
)

type suspensionTests map[string]struct {
	// manifest is what follows apiVersion and kind.
	manifest string
	state    apis.State
	message  string
}

func (tests suspensionTests) run(t *testing.T, rules health.Suspensions, apiVersion, kind string) {
	t.Helper()
	for name, tc := range tests {
		t.Run(kind+" "+name, func(t *testing.T) {
			want := apis.Health{State: tc.state, Message: tc.message}
			expectHealth(t, apiVersion, kind, tc.manifest, rules.Of, want)
		})
	}
}

func TestOfWorkloads(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet", "ReplicaSet"} {
		suspensionTests{
			"just created, not as told": {"metadata: {generation: 1}\nspec: {replicas: 2}",
				toBeTold, "was not told to suspend yet"},
			"one replica by default": {
				"metadata: {generation: 1}\nspec: {minReadySeconds: 1}\nstatus: {observedGeneration: 1, replicas: 0}",
				toBeTold, "was not told to suspend yet"},
			"has none, but was not told": {
				"metadata: {generation: 1}\nspec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 0}",
				toBeTold, "was not told to suspend yet"},
			"told, and not seen yet": {
				"metadata: {generation: 2}\nspec: {replicas: 0}\nstatus: {observedGeneration: 1, replicas: 0}",
				underWay, "has not been observed yet"},
			"created suspended, and not seen yet": {"metadata: {generation: 1}\nspec: {replicas: 0}",
				underWay, "has not been observed yet"},
			"two replicas left": {
				"metadata: {generation: 2}\nspec: {replicas: 0}\nstatus: {observedGeneration: 2, replicas: 2}",
				underWay, "waiting for 2 replicas to go"},
			"one replica left": {
				"metadata: {generation: 2}\nspec: {replicas: 0}\nstatus: {observedGeneration: 2, replicas: 1}",
				underWay, "waiting for 1 replica to go"},
			"suspended": {"metadata: {generation: 2}\nspec: {replicas: 0}\nstatus: {observedGeneration: 2, replicas: 0}",
				suspended, ""},
		}.run(t, nil, "apps/v1", kind)
	}
	suspensionTests{
		"a pod is terminating": {"metadata: {generation: 2}\nspec: {replicas: 0}\n" +
			"status: {observedGeneration: 2, replicas: 0, terminatingReplicas: 1}",
			underWay, "waiting for 1 replica to go"},
	}.run(t, nil, "apps/v1", "Deployment")
}

func TestOfJobs(t *testing.T) {
	suspensionTests{
		"not told": {"spec: {suspend: false}", toBeTold, "was not told to suspend yet"},
		"two pods left": {"spec: {suspend: true}\nstatus: {active: 2, ready: 1}", underWay,
			"waiting for 2 pods to end"},
		"a pod terminates": {"spec: {suspend: true}\nstatus: {terminating: 1}", underWay, "waiting for 1 pod to end"},
		"suspended":        {"spec: {suspend: true}\nstatus: {active: 0}", suspended, ""},
		"complete":         {"status: {conditions: [{type: Complete, status: 'True'}]}", suspended, ""},
		"failed":           {"status: {conditions: [{type: Failed, status: 'True'}]}", suspended, ""},
		"not complete": {"status: {conditions: [{type: Complete, status: 'False'}]}",
			toBeTold, "was not told to suspend yet"},
	}.run(t, nil, "batch/v1", "Job")
	suspensionTests{
		"not told":     {"spec: {schedule: x}", toBeTold, "was not told to suspend yet"},
		"one Job left": {"spec: {suspend: true}\nstatus: {active: [{name: x}]}", underWay, "waiting for 1 Job to end"},
		"suspended":    {"spec: {suspend: true}", suspended, ""},
	}.run(t, nil, "batch/v1", "CronJob")
}

func TestOfOtherKinds(t *testing.T) {
	for kind, apiVersion := range map[string]string{
		"DaemonSet": "apps/v1", "Pod": "v1", "HorizontalPodAutoscaler": "autoscaling/v2",
	} {
		suspensionTests{
			"is there": {"metadata: {name: x}", toBeTold, "is to be deleted"},
			"goes":     {`metadata: {deletionTimestamp: "2025-01-02T03:04:05Z"}`, underWay, "is being deleted"},
		}.run(t, nil, apiVersion, kind)
	}
	for kind, apiVersion := range map[string]string{
		"PersistentVolumeClaim": "v1", "Service": "v1", "Ingress": "networking.k8s.io/v1", "Thing": "example.com/v1",
	} {
		suspensionTests{"any": {"spec: {}", suspended, ""}}.run(t, nil, apiVersion, kind)
	}
}

var thing = schema.GroupKind{Group: "example.com", Kind: "Thing"}

func TestCustomRules(t *testing.T) {
	paused := health.Suspension{
		Suspend: health.SetField(map[string]any{"now": true, "for": 3}, "spec", "pause"),
		Suspended: func(live *unstructured.Unstructured) (bool, string) {
			phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
			return phase == "Paused", "waiting for the\nphase Paused"
		},
	}
	rules := health.Suspensions{thing: paused}
	desired := withSpec(t, "example.com/v1 Thing", "{size: 1}")
	if remove, err := rules.Suspend(desired); remove || err != nil {
		t.Errorf("that Suspend removes is %v and the error %v, want false and none", remove, err)
	}
	want := withSpec(t, "example.com/v1 Thing", "{size: 1, pause: {now: true, for: 3}}")
	if diff := cmp.Diff(want, desired); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	suspensionTests{
		"not told":  {"spec: {pause: {now: true}}", toBeTold, "was not told to suspend yet"},
		"told":      {"spec: {pause: {now: true, for: 3}}", underWay, "waiting for the phase Paused"},
		"suspended": {"spec: {pause: {now: true, for: 3}}\nstatus: {phase: Paused}", suspended, ""},
		"without a place for the field": {"spec: [1]", apis.StateUnknown,
			"value cannot be set because .spec is not a map[string]interface{}"},
	}.run(t, rules, "example.com/v1", "Thing")
}

// TestRulesReplaceThoseOfKnownKinds: a rule without functions leaves the objects alone.
func TestRulesReplaceThoseOfKnownKinds(t *testing.T) {
	rules := health.Suspensions{
		{Group: "apps", Kind: "Deployment"}: {},
		{Group: "batch", Kind: "Job"}:       {Delete: true},
	}
	desired := withSpec(t, "apps/v1 Deployment", "{replicas: 3}")
	before := desired.DeepCopy()
	if remove, err := rules.Suspend(desired); remove || err != nil || !cmp.Equal(before, desired) {
		t.Errorf("that Suspend removes is %v, the error %v and the object %v, want false, none and %v", remove, err,
			desired, before)
	}
	if remove, err := rules.Suspend(withSpec(t, "batch/v1 Job", "{}")); !remove || err != nil {
		t.Errorf("that Suspend removes is %v and the error %v, want true and none", remove, err)
	}
	suspensionTests{"any": {"spec: {replicas: 3}", suspended, ""}}.run(t, rules, "apps/v1", "Deployment")
	suspensionTests{"complete": {"status: {conditions: [{type: Complete, status: 'True'}]}", toBeTold, "is to be deleted"}}.
		run(t, rules, "batch/v1", "Job")
	suspensionTests{"any": {"spec: {replicas: 3}", toBeTold, "was not told to suspend yet"}}.run(t, rules, "apps/v1",
		"StatefulSet")
}

func TestErrors(t *testing.T) {
	boom := errors.New("boom")
	rules := health.Suspensions{
		{Kind: "Secret"}:    {Suspend: func(*unstructured.Unstructured) error { return boom }},
		{Kind: "ConfigMap"}: {Suspend: health.SetField(make(chan int), "data")},
		{Kind: "Event"}:     {Suspend: health.SetField(1)},
		{Kind: "Endpoints"}: {Suspend: health.SetField("text", "subsets")},
	}
	for kind, want := range map[string]string{
		"Secret":    `Secret "x" cannot be suspended: boom`,
		"ConfigMap": `ConfigMap "x" cannot be suspended: json: unsupported type: chan int`,
		"Event":     `Event "x" cannot be suspended: there is no field to set`,
	} {
		object := withSpec(t, "v1 "+kind, "{}")
		for _, desired := range []client.Object{object, typedOf(t, object)} {
			if _, err := rules.Suspend(desired); err == nil || err.Error() != want {
				t.Errorf("Suspend: %v, want %s", err, want)
			} else if kind == "Secret" && !errors.Is(err, boom) {
				t.Errorf("the error is %v, want it to wrap %v", err, boom)
			}
		}
	}
	if _, err := rules.Suspend(typedOf(t, withSpec(t, "v1 Endpoints", "{}"))); err == nil {
		t.Error("a typed object got a field of another type, want an error")
	}
	if got := rules.Of(withSpec(t, "v1 Secret", "{}")); got.State != apis.StateUnknown || got.Message != "boom" {
		t.Errorf(`the health is %v, want unknown with "boom"`, got)
	}
}

func TestNothing(t *testing.T) {
	var pod *corev1.Pod
	for _, object := range []client.Object{nil, pod, (*unstructured.Unstructured)(nil), &unstructured.Unstructured{}} {
		if remove, err := (health.Suspensions{}).Suspend(object); remove || err != nil {
			t.Errorf("that Suspend of %T removes is %v and the error %v, want false and none", object, remove, err)
		}
		if got := (health.Suspensions{}).Of(object); got.State != apis.StateUnknown ||
			got.Message != "there is no object to look at" {
			t.Errorf("the health of %T is %v, want unknown, for there is no object", object, got)
		}
	}
}

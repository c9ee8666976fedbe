package health_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// kinds are those with rules, and some without.
var kinds = []string{
	"apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "apps/v1 ReplicaSet", "v1 Pod",
	"batch/v1 Job", "batch/v1 CronJob", "v1 Service", "networking.k8s.io/v1 Ingress", "v1 PersistentVolumeClaim",
	"v1 PersistentVolume", "autoscaling/v2 HorizontalPodAutoscaler", "autoscaling/v1 HorizontalPodAutoscaler",
	"apiextensions.k8s.io/v1 CustomResourceDefinition", "apiregistration.k8s.io/v1 APIService", "v1 Namespace",
	"gateway.networking.k8s.io/v1 Gateway", "gateway.networking.k8s.io/v1 HTTPRoute", "v1 ConfigMap",
	"example.com/v1 Thing",
}

// FuzzL7MalformedObject gives each kind any content, and demands that the functions do not panic, do not change the
// object, and return a form that the fields of Health promise.
func FuzzL7MalformedObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"status":null,"spec":[]}`, `{"metadata":[1],"spec":null,"status":[null]}`,
		`{"metadata":{"generation":3},"status":{"observedGeneration":2}}`,
		`{"metadata":{"generation":"3","deletionTimestamp":7},"status":"up"}`,
		`{"metadata":{"deletionTimestamp":"soon"}}`,
		`{"status":{"conditions":[null,1,{"type":1},{"type":"Ready","status":true}]}}`,
		`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"A","message":"\u0000\n"}]}}`,
		`{"status":{"conditions":[{"type":"ReplicaFailure","status":"True"},` +
			`{"type":"FailureTarget","status":"True"}]}}`,
		`{"status":{"conditions":[{"type":"AbleToScale","status":"False"},{"type":"Progressing"}]}}`,
		`{"status":{"loadBalancer":{"ingress":[1,{"ip":2},{"hostname":""}]},"phase":7,"active":-1}}`,
		`{"spec":{"type":"LoadBalancer","clusterIP":"x"},"status":{"loadBalancer":[]}}`,
		`{"spec":{"parentRefs":[1]},"status":{"parents":[2,{"parentRef":3,"conditions":4},{"conditions":[5]}]}}`,
		`{"status":{"phase":"Running","containerStatuses":[1,{"name":2},{"state":{"waiting":7}}]}}`,
		`{"status":{"phase":"Pending",` +
			`"containerStatuses":[{"name":"a","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`,
		`{"status":{"phase":"Failed","initContainerStatuses":[{"name":"a","state":{"terminated":{"exitCode":1}}}]}}`,
		`{"spec":{"replicas":-3,"paused":true},"status":{"observedGeneration":9223372036854775807,"replicas":-1}}`,
		`{"spec":{"updateStrategy":{"type":"OnDelete"},"replicas":1e30},"status":{"observedGeneration":0}}`,
		`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":9223372036854775807}},` +
			`"replicas":-9223372036854775808}}`,
		`{"spec":{"selector":{"matchLabels":{"a":1},"matchExpressions":[{"key":"\u0000"}]}}}`,
		`{"spec":{"selector":{"matchLabels":{"app":"web"}}}}`,
	} {
		for i := range kinds {
			f.Add([]byte(seed), uint8(i))
		}
	}
	pods := []corev1.Pod{podOf("a", waits("app", "CrashLoopBackOff"))}
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		content := map[string]any{}
		if json.Unmarshal(data, &content) != nil || content == nil {
			return
		}
		content["apiVersion"], content["kind"], _ = strings.Cut(kinds[int(kind)%len(kinds)], " ")
		object := &unstructured.Unstructured{Object: content}
		before := object.DeepCopy()
		got := health.Of(object)
		checkForm(t, got)
		if again := health.Of(object); !reflect.DeepEqual(got, again) {
			t.Errorf("the health is first %v, then %v, want the same", got, again)
		}
		given := got
		checkForm(t, health.WithPods(object, got, pods))
		if !reflect.DeepEqual(given, got) || !reflect.DeepEqual(before, object) {
			t.Errorf("the health is %v and the object %v, want both as before", got, object)
		}
	})
}

func checkForm(t *testing.T, got apis.Health) {
	t.Helper()
	good := health.Healthy(got.State)
	if got.State == "" || good != (got.Message == "") || good && (got.Grade != "" || got.Reason != "") {
		t.Errorf("the health is %+v, want a state, and a message exactly if it is not good", got)
	}
	if got.Grade != "" && got.Grade != apis.StateDegraded && got.Grade != apis.StateDown {
		t.Errorf("the grade is %q, want none, degraded or down", got.Grade)
	}
	if !utf8.ValidString(got.Message) || len(got.Message) > 200 ||
		strings.ContainsFunc(got.Message, unicode.IsControl) {
		t.Errorf("the message is %q, want at most 200 bytes of valid UTF-8 without control characters", got.Message)
	}
}

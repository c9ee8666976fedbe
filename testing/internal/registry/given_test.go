package registry_test

import (
	"math/rand"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry/registrytest"
)

// TestGivenIncomplete updates an object that no API server would have stored: it has neither defaults nor what is
// required. Nothing but what the update writes is completed and validated.
func TestGivenIncomplete(t *testing.T) {
	t.Parallel()
	given := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "Capital", ResourceVersion: "1", Generation: 1},
	}
	for _, test := range []struct {
		name        string
		subresource string
		change      func(*appsv1.Deployment)
		errors      []string
		// completed says that the contents get defaults.
		completed  bool
		generation int64
	}{
		{name: "nothing", change: func(*appsv1.Deployment) {}, generation: 1},
		{name: "labels", change: func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} }, generation: 1},
		{name: "bad labels", change: func(d *appsv1.Deployment) { d.Labels = map[string]string{"a b": "c"} },
			errors: []string{"Invalid metadata.labels"}, generation: 1},
		{name: "a finalizer", change: func(d *appsv1.Deployment) { d.Finalizers = []string{"a"} },
			errors: []string{"Invalid metadata.finalizers[0]"}, generation: 1},
		{name: "replicas", change: func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) },
			completed: true, generation: 2},
		{name: "bad replicas", change: func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](-3) },
			errors: []string{"Invalid spec.replicas"}, completed: true, generation: 2},
		{name: "status", subresource: "status", change: func(d *appsv1.Deployment) { d.Status.Replicas = 3 },
			generation: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, s := builtIn(t, given)
			old, obj := given.DeepCopy(), given.DeepCopy()
			test.change(obj)
			s.PrepareForUpdate(obj, old, test.subresource)
			if got := refusals(s.ValidateUpdate(obj, old, test.subresource)); !slices.Equal(got, test.errors) {
				t.Errorf("got the errors %v, want %v", got, test.errors)
			}
			if completed := obj.Spec.RevisionHistoryLimit != nil; completed != test.completed {
				t.Errorf("the object was completed: %t, want %t", completed, test.completed)
			}
			if obj.Generation != test.generation {
				t.Errorf("the generation is %d, want %d", obj.Generation, test.generation)
			}
			if !equality.Semantic.DeepEqual(old, given) {
				t.Error("the old object changed, want it as it was")
			}
		})
	}
}

// TestAnyObject has the strategies complete and validate objects with anything in them, which must not panic.
func TestAnyObject(t *testing.T) {
	t.Parallel()
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(clientgoscheme.Scheme)).
		NilChance(0.6).NumElements(0, 2).MaxDepth(14)
	for _, sample := range registrytest.Kinds(t, registrytest.Namespace) {
		_, s := builtIn(t, sample)
		for i := range 10 {
			given, old := s.New(), s.New()
			if i > 0 {
				fill.Fill(given)
			}
			if i > 1 {
				fill.Fill(old)
			}
			before := old.DeepCopyObject()
			obj := given.DeepCopyObject().(client.Object)
			s.PrepareForCreate(obj)
			s.Validate(obj)
			for _, subresource := range []string{"", "status"} {
				obj := given.DeepCopyObject().(client.Object)
				s.PrepareForUpdate(obj, old, subresource)
				s.ValidateUpdate(obj, old, subresource)
			}
			if !equality.Semantic.DeepEqual(before, old) {
				t.Errorf("%T: the old object changed, want it as it was", old)
			}
		}
	}
}

// TestGivenWithoutDefaults changes a bit of objects that were given without what an API server fills in. The change is
// accepted, and the metadata stay as they are.
func TestGivenWithoutDefaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given  string
		change string
	}{
		"labels of a DaemonSet": {daemonSet, `{"metadata":{"finalizers":["example.com/a"]}}`},
		"a DaemonSet":           {daemonSet, `{"spec":{"minReadySeconds":5}}`},
		"a Job":                 {job, `{"spec":{"suspend":true}}`},
		"a Namespace":           {namespace, `{"metadata":{"finalizers":["example.com/a"]}}`},
		"a claim":               {claim, `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`},
		"a Service":             {service, `{"spec":{"selector":{"a":"b"}}}`},
		"a StatefulSet":         {statefulSet, `{"spec":{"replicas":2}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := registrytest.Decode(t, []byte(test.given))
			old.SetUID(sampleUID)
			old.SetResourceVersion("1")
			_, s := builtIn(t, old)
			obj := merged(t, old, []byte(test.change))
			s.PrepareForUpdate(obj, old, "")
			if errs := s.ValidateUpdate(obj, old, ""); len(errs) > 0 {
				t.Errorf("the errors are %v, want none", errs.ToAggregate())
			}
			if len(obj.GetLabels())+len(obj.GetAnnotations()) > 0 {
				t.Errorf("the labels are %v and the annotations %v, want neither", obj.GetLabels(),
					obj.GetAnnotations())
			}
		})
	}
}

const (
	daemonSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: x, namespace: ns}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}
`
	job = `
apiVersion: batch/v1
kind: Job
metadata: {name: x, namespace: ns}
spec: {template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
`
	namespace = `
apiVersion: v1
kind: Namespace
metadata: {name: x}
`
	claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: x, namespace: ns}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
status: {phase: Bound}
`
	service = `
apiVersion: v1
kind: Service
metadata: {name: x, namespace: ns}
spec: {ports: [{port: 80}]}
`
	statefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: x, namespace: ns}
spec:
  serviceName: x
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}
`
)

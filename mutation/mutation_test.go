package mutation_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/edit"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/mutation"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errOops = errors.New("oops")

type mutations = []mutation.Mutation[*corev1.ConfigMap]

func baseline() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string]string{"ran": "-"},
	}
}

// mark returns a mutation that notes that it has run.
func mark(name string, gate feature.Gate) mutation.Mutation[*corev1.ConfigMap] {
	return mutation.Mutation[*corev1.ConfigMap]{Name: name, Gate: gate, Mutate: func(c *corev1.ConfigMap) error {
		c.Data["ran"] += name
		return nil
	}}
}

func fails(name string) mutation.Mutation[*corev1.ConfigMap] {
	return mutation.Mutation[*corev1.ConfigMap]{Name: name, Mutate: func(*corev1.ConfigMap) error { return errOops }}
}

func TestApply(t *testing.T) {
	t.Parallel()
	off, on := feature.When(false), feature.When(true)
	broken := feature.Func(func() (bool, error) { return false, errOops })
	for name, tc := range map[string]struct {
		mutations mutations
		want      string
		enabled   []string
		err       string
	}{
		"none": {want: "-", enabled: []string{}},
		"in order, once": {mutations: mutations{mark("b", nil), mark("a", on)}, want: "-ba",
			enabled: []string{"b", "a"}},
		"gated": {
			mutations: mutations{mark("a", off), mark("b", nil), mark("c", feature.Version("1.2.0", "< 1"))},
			want:      "-b", enabled: []string{"b"},
		},
		"fails": {
			mutations: mutations{mark("a", nil), fails("b")}, enabled: []string{"a", "b"},
			err: `mutate ConfigMap shop/web: mutation "b": oops`,
		},
		"gate fails": {
			mutations: mutations{mark("a", nil), mark("b", broken)},
			err:       `gate of mutation "b": oops`,
		},
		"duplicate": {
			mutations: mutations{mark("a", nil), mark("b", off), mark("a", off)},
			err:       `mutations 0 and 2 have the same name "a"`,
		},
		"empty name":  {mutations: mutations{mark("a", nil), mark("", off)}, err: `mutation 1 has no Name`},
		"no function": {mutations: mutations{{Name: "a", Gate: off}}, err: `mutation 0 "a" has no Mutate`},
		"all problems": {
			mutations: mutations{{}, {}},
			err: "mutation 0 has no Name\nmutation 0 \"\" has no Mutate\nmutation 1 has no Name\n" +
				"mutation 1 \"\" has no Mutate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := baseline()
			for range 2 {
				got, err := mutation.Apply(base, tc.mutations...)
				if want := strings.TrimPrefix(tc.err, "mutate ConfigMap shop/web: "); tc.err != "" {
					if err == nil || err.Error() != "mutate ConfigMap shop/web: "+want || got != nil {
						t.Errorf("the error is %v, not %s; the result is %v", err, tc.err, got)
					}
				} else if err != nil || got.Data["ran"] != tc.want {
					t.Errorf("these have run: %q, not %q: %v", got.Data["ran"], tc.want, err)
				}
				if diff := cmp.Diff(baseline(), base); diff != "" {
					t.Errorf("the baseline has changed (-before +after):\n%s", diff)
				}
			}
			names, err := mutation.Enabled(tc.mutations...)
			if (err == nil) != (tc.enabled != nil) || !slices.Equal(names, tc.enabled) {
				t.Errorf("enabled are %v, not %v: %v", names, tc.enabled, err)
			}
		})
	}
}

func TestNothingRunsBeforeAllIsKnown(t *testing.T) {
	t.Parallel()
	ran := 0
	counts := mutation.Mutation[*corev1.ConfigMap]{Name: "a",
		Mutate: func(*corev1.ConfigMap) error { ran++; return nil }}
	brokenOnes := mutations{mark("a", nil), mark("", nil), {Name: "b"}, mark("b", feature.Func(nil))}
	for _, broken := range brokenOnes {
		if _, err := mutation.Apply(baseline(), counts, broken); err == nil || ran > 0 {
			t.Errorf("%d have run, with the error %v", ran, err)
		}
	}
	var none *corev1.ConfigMap
	if _, err := mutation.Apply(none, counts); err == nil || ran > 0 {
		t.Errorf("%d have run, with the error %v", ran, err)
	}
	if _, err := mutation.Apply[client.Object](nil); err == nil {
		t.Error("there is no error for a baseline that is nil")
	}
}

func TestErrorsWrapTheirCause(t *testing.T) {
	t.Parallel()
	_, err := mutation.Apply(baseline(), fails("a"))
	_, gateErr := mutation.Apply(baseline(), mark("a", feature.Func(func() (bool, error) { return true, errOops })))
	if !errors.Is(err, errOops) || !errors.Is(gateErr, errOops) {
		t.Errorf("the errors %v and %v do not wrap their cause", err, gateErr)
	}
}

// Content that is written in Go has an int, with which the deep copy of unstructured objects panics.
func TestUnstructuredWrittenInGo(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": 3},
	}}
	for _, apply := range []func() (client.Object, error){
		func() (client.Object, error) {
			return mutation.Apply(u, mutation.ForPods[*unstructured.Unstructured]("tracing", nil, label))
		},
		func() (client.Object, error) {
			return mutation.Apply(client.Object(u), mutation.ForPods[client.Object]("tracing", nil, label))
		},
	} {
		got, err := apply()
		if err != nil {
			t.Fatal(err)
		}
		replicas, _, _ := unstructured.NestedInt64(got.(*unstructured.Unstructured).Object, "spec", "replicas")
		if replicas != 3 || u.Object["spec"].(map[string]any)["replicas"] != 3 {
			t.Errorf("the copy is %v, the baseline %v", got, u)
		}
	}
	u.Object["spec"] = func() {}
	_, err := mutation.Apply(u)
	if want := "mutate Deployment: copy the object: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v, not %s", err, want)
	}
}

func TestForPods(t *testing.T) {
	t.Parallel()
	cronJob := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "CronJob"}}
	for _, object := range []client.Object{
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1.ReplicaSet{},
		&batchv1.Job{}, &batchv1.CronJob{}, &corev1.Pod{}, cronJob,
	} {
		mutated, err := mutation.Apply(object, mutation.ForPods[client.Object]("tracing", nil, label))
		if err != nil {
			t.Errorf("%T: %v", object, err)
			continue
		}
		found := ""
		err = edit.PodTemplate(mutated, func(pods *corev1.PodTemplateSpec) error {
			found = pods.Labels["traced"]
			return nil
		})
		if err != nil || found != "yes" {
			t.Errorf("the pods of %T are labeled %q: %v", object, found, err)
		}
	}
	_, err := mutation.Apply(baseline(), mutation.ForPods[*corev1.ConfigMap]("tracing", nil, label))
	if err == nil ||
		!strings.Contains(err.Error(), `mutation "tracing": edit ConfigMap shop/web: the kind has no pod`) {
		t.Errorf("the error is %v", err)
	}
	_, err = mutation.Apply(baseline(), mutation.ForPods[*corev1.ConfigMap]("tracing", nil, nil))
	if err == nil || !strings.Contains(err.Error(), `"tracing" has no Mutate`) {
		t.Errorf("the error is %v", err)
	}
}

func label(pods *corev1.PodTemplateSpec) error {
	return edit.Labels(pods, map[string]string{"traced": "yes"})
}

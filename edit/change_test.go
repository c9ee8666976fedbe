package edit_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/edit"
	"github.com/espalier-dev/espalier/feature/gate"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type changes = []edit.Change[*corev1.ConfigMap]

func baseline() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string]string{"ran": "-"},
	}
}

// mark returns a change that notes that it has run.
func mark(name string, gate gate.Gate) edit.Change[*corev1.ConfigMap] {
	return edit.Change[*corev1.ConfigMap]{Name: name, Gate: gate, Edit: func(c *corev1.ConfigMap) error {
		c.Data["ran"] += name
		return nil
	}}
}

func fails(name string) edit.Change[*corev1.ConfigMap] {
	return edit.Change[*corev1.ConfigMap]{Name: name, Edit: func(*corev1.ConfigMap) error { return errOops }}
}

func TestApply(t *testing.T) {
	t.Parallel()
	off, on := gate.When(false), gate.When(true)
	broken := gate.Func(func() (bool, error) { return false, errOops })
	for name, tc := range map[string]struct {
		changes changes
		want    string
		enabled []string
		err     string
	}{
		"none": {want: "-", enabled: []string{}},
		"in order, once": {changes: changes{mark("b", nil), mark("a", on)}, want: "-ba",
			enabled: []string{"b", "a"}},
		"gated": {
			changes: changes{mark("a", off), mark("b", nil), mark("c", gate.Version("1.2.0", "< 1"))},
			want:    "-b", enabled: []string{"b"},
		},
		"fails": {
			changes: changes{mark("a", nil), fails("b")}, enabled: []string{"a", "b"},
			err: `edit ConfigMap shop/web: change "b": oops`,
		},
		"gate fails": {
			changes: changes{mark("a", nil), mark("b", broken)},
			err:     `gate of change "b": oops`,
		},
		"duplicate": {
			changes: changes{mark("a", nil), mark("b", off), mark("a", off)},
			err:     `changes 0 and 2 have the same name "a"`,
		},
		"empty name":  {changes: changes{mark("a", nil), mark("", off)}, err: `change 1 has no Name`},
		"no function": {changes: changes{{Name: "a", Gate: off}}, err: `change 0 "a" has no Edit`},
		"all problems": {
			changes: changes{{}, {}},
			err: "change 0 has no Name\nchange 0 \"\" has no Edit\nchange 1 has no Name\n" +
				"change 1 \"\" has no Edit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := baseline()
			for range 2 {
				got, err := edit.Apply(base, tc.changes...)
				if want := strings.TrimPrefix(tc.err, "edit ConfigMap shop/web: "); tc.err != "" {
					if err == nil || err.Error() != "edit ConfigMap shop/web: "+want || got != nil {
						t.Errorf("the error is %v and the result %v, want %s and none", err, got, tc.err)
					}
				} else if err != nil || got.Data["ran"] != tc.want {
					t.Errorf("these have run: %q, not %q: %v", got.Data["ran"], tc.want, err)
				}
				if diff := cmp.Diff(baseline(), base); diff != "" {
					t.Errorf("the baseline has changed (-before +after), want it unchanged:\n%s", diff)
				}
			}
			names, err := edit.Enabled(tc.changes...)
			if (err == nil) != (tc.enabled != nil) || !slices.Equal(names, tc.enabled) {
				t.Errorf("the enabled changes are %v (%v), want %v", names, err, tc.enabled)
			}
		})
	}
}

func TestNothingRunsBeforeAllIsKnown(t *testing.T) {
	t.Parallel()
	ran := 0
	counts := edit.Change[*corev1.ConfigMap]{Name: "a",
		Edit: func(*corev1.ConfigMap) error { ran++; return nil }}
	brokenOnes := changes{mark("a", nil), mark("", nil), {Name: "b"}, mark("b", gate.Func(nil))}
	for _, broken := range brokenOnes {
		if _, err := edit.Apply(baseline(), counts, broken); err == nil || ran > 0 {
			t.Errorf("%d changes have run with the error %v, want none and an error", ran, err)
		}
	}
	var none *corev1.ConfigMap
	if _, err := edit.Apply(none, counts); err == nil || ran > 0 {
		t.Errorf("%d changes have run with the error %v, want none and an error", ran, err)
	}
	if _, err := edit.Apply[client.Object](nil); err == nil {
		t.Error("a baseline that is nil has no error, want one")
	}
}

func TestErrorsWrapTheirCause(t *testing.T) {
	t.Parallel()
	_, err := edit.Apply(baseline(), fails("a"))
	_, gateErr := edit.Apply(baseline(), mark("a", gate.Func(func() (bool, error) { return true, errOops })))
	if !errors.Is(err, errOops) || !errors.Is(gateErr, errOops) {
		t.Errorf("the errors are %v and %v, want them to wrap %v", err, gateErr, errOops)
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
			return edit.Apply(u, edit.ForPods[*unstructured.Unstructured]("tracing", nil, label))
		},
		func() (client.Object, error) {
			return edit.Apply(client.Object(u), edit.ForPods[client.Object]("tracing", nil, label))
		},
	} {
		got, err := apply()
		if err != nil {
			t.Fatal(err)
		}
		replicas, _, _ := unstructured.NestedInt64(got.(*unstructured.Unstructured).Object, "spec", "replicas")
		if replicas != 3 || u.Object["spec"].(map[string]any)["replicas"] != 3 {
			t.Errorf("the copy is %v and the baseline %v, want 3 replicas in both", got, u)
		}
	}
	u.Object["spec"] = func() {}
	_, err := edit.Apply(u)
	if want := "edit Deployment: copy the object: "; err == nil || !strings.HasPrefix(err.Error(), want) {
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
		mutated, err := edit.Apply(object, edit.ForPods[client.Object]("tracing", nil, label))
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
			t.Errorf(`the Pods of %T are labeled %q (%v), want "yes"`, object, found, err)
		}
	}
	_, err := edit.Apply(baseline(), edit.ForPods[*corev1.ConfigMap]("tracing", nil, label))
	if err == nil ||
		!strings.Contains(err.Error(), `change "tracing": edit ConfigMap shop/web: the kind has no pod`) {
		t.Errorf("the error is %v, want that the kind has no Pods", err)
	}
	_, err = edit.Apply(baseline(), edit.ForPods[*corev1.ConfigMap]("tracing", nil, nil))
	if err == nil || !strings.Contains(err.Error(), `"tracing" has no Edit`) {
		t.Errorf(`the error is %v, want that "tracing" has no Edit`, err)
	}
}

func label(pods *corev1.PodTemplateSpec) error {
	pods.Labels = map[string]string{"traced": "yes"}
	return nil
}

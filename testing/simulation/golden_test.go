package simulation

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// children returns an operator that runs two Pods for each app, two Secrets with generated names, and says when.
func children() Options {
	return reconciles(func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		if app.Data["seen"] == "" {
			for range 2 {
				drawn := &corev1.Secret{}
				drawn.Namespace, drawn.GenerateName = app.Namespace, "drawn-"
				if err := controllerutil.SetControllerReference(app, drawn, c.Scheme()); err != nil {
					return err
				}
				if err := c.Create(ctx, drawn); err != nil {
					return err
				}
			}
			app.Data = map[string]string{"seen": time.Now().Format(time.RFC3339), "by": "I am " + string(app.UID)}
			return c.Update(ctx, app)
		}
		labels := map[string]string{"app": app.Name}
		child := &appsv1.Deployment{ObjectMeta: named(app.Name)}
		_, err := controllerutil.CreateOrUpdate(ctx, c, child, func() error {
			child.Spec.Replicas, child.Spec.Selector = ptr.To[int32](2), &metav1.LabelSelector{MatchLabels: labels}
			child.Spec.Template.Labels = labels
			if len(child.Spec.Template.Spec.Containers) == 0 {
				child.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
			}
			return controllerutil.SetControllerReference(app, child, c.Scheme())
		})
		return err
	})
}

// restarted tells a story in which the same comes out, whatever came before.
func restarted(restarts int) func(w *World) {
	return func(w *World) {
		w.Pass(time.Duration(restarts) * time.Hour)
		w.Create(newApp("web"))
		w.Rest()
		for range restarts {
			pods := &corev1.PodList{}
			w.List(pods)
			w.Delete(&pods.Items[0])
			w.Kill()
			w.Rest()
		}
	}
}

// essence leaves of objects what the test is about, and not what Kubernetes adds.
func essence(obj *unstructured.Unstructured) {
	delete(obj.Object, "spec")
	if status, ok := obj.Object["status"].(map[string]any); ok {
		maps.DeleteFunc(status, func(field string, _ any) bool {
			return !slices.Contains([]string{"observedGeneration", "podIP", "startTime"}, field)
		})
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for restarts := range 3 {
		attempt(t, children(), func(w *World) {
			restarted(restarts)(w)
			w.Golden("testdata/web.txtar", essence)
		}).must(t)
	}
}

func TestGoldenDiffers(t *testing.T) {
	t.Parallel()
	attempt(t, children(), func(w *World) {
		restarted(0)(w)
		web := &appsv1.Deployment{ObjectMeta: named("web")}
		w.Update(web, func() { web.Annotations["note"] = "seen" })
		w.Create(newSecret("more"))
		w.Delete(&corev1.ConfigMap{ObjectMeta: named("web")})
		w.Golden("testdata/web.txtar", essence)
	}).mustFail(t,
		"the cluster is not as in testdata/web.txtar: the flag -simulation.update writes the file anew",
		"\ndefault/Secret/more.yaml\n", "\n+  name: more\n", "\ndefault/ConfigMap/web.yaml\n", "\n-  by: I am UID of",
	)
}

func TestGoldenIsMissing(t *testing.T) {
	t.Parallel()
	attempt(t, Options{}, func(w *World) { w.Golden("testdata/none.txtar") }).mustFail(t,
		"there is no golden file testdata/none.txtar: the flag -simulation.update writes it")
}

// TestGoldenUpdate is not parallel: it sets the flag.
func TestGoldenUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "a.txtar")
	number := 0
	tell := func() outcome {
		number++
		return attempt(t, Options{}, func(w *World) {
			obj := newApp("drawn")
			obj.Data = map[string]string{"chance": fmt.Sprint(number)}
			w.Create(obj)
			w.Golden(path, func(obj *unstructured.Unstructured) { unstructured.RemoveNestedField(obj.Object, "data") })
		})
	}
	was := *update
	*update = true
	tell().must(t)
	*update = was
	tell().must(t)
}

func TestWrites(t *testing.T) {
	t.Parallel()
	attempt(t, children(), func(w *World) {
		w.Wrote()
		w.Create(newApp("web"))
		w.Rest()
		lines := w.Writes()
		if len(lines) != 4 || lines[0] != "create Secret default/drawn-00001" {
			w.Errorf("the operator wrote %q", lines)
		}
		w.Wrote()
		web := &appsv1.Deployment{ObjectMeta: named("web")}
		w.Delete(web)
		w.Update(newApp("web"), func() {})
		w.Kill()
		w.Rest()
		w.Wrote("create Deployment default/web")
	}).must(t)
}

func TestWroteSomethingElse(t *testing.T) {
	t.Parallel()
	attempt(t, children(), func(w *World) {
		w.Create(newApp("web"))
		w.Rest()
		w.Wrote(
			"create Deployment default/web", "create Secret default/drawn-00001", "create Secret default/drawn-00002",
			"delete Secret default/drawn-00001", "update ConfigMap default/web",
		)
	}).mustFail(t, "the operator wrote something else (-wanted +written):\n", "\n-delete Secret default/drawn-00001\n")
}

func TestNormalLines(t *testing.T) {
	t.Parallel()
	got := strings.Join(normalLines([]string{
		"create B x/one", "create A two", "update B/status x/one", "update A/status two", "update B/status x/one",
		"mark for deletion B x/one", "delete B x/one", "create B x/one",
	}), "\n")
	want := `create A two
update A/status two
create B x/one
update B/status x/one
mark for deletion B x/one
delete B x/one
create B x/one`
	if got != want {
		t.Errorf("the lines are\n%s\nnot\n%s", got, want)
	}
}

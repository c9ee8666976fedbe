package story_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/examples/platform/demo/story"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{GarbageCollection: true, NamespaceDeletion: true}}

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // informers complain when their API server is killed
	os.Exit(plane.Main(m))
}

// TestStoryEndsTheSame tells the story three times: as in the demo, with an API server that fails time and again, and with one that is
// killed during some deeds. Wherever the cluster is looked at, it looks the same.
func TestStoryEndsTheSame(t *testing.T) {
	undisturbed := tell(t, story.Options{Operator: operator(t)})

	for name, disturbed := range map[string]func(*testing.T) story.Options{
		"faulty API server": func(t *testing.T) story.Options {
			config := operator(t)
			config.Wrap(storytellingtest.WithFaults(t, plane.Config(t)))
			return story.Options{Operator: config}
		},
		"killed API server": func(t *testing.T) story.Options {
			return story.Options{Operator: operator(t), AfterDo: storytellingtest.RestartAPIServer[*story.World](t, plane.Environment(t),
				"Release 1.0 is ordered: eight objects in three waves",
				"Release 1.1 is ordered, which has no portal",
				"That dashboard is deleted")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(undisturbed, tell(t, disturbed(t))); diff != "" {
				t.Errorf("the cluster differs (-undisturbed +disturbed)\n%s", diff)
			}
		})
	}
}

func operator(t *testing.T) *rest.Config {
	t.Helper()
	config, err := plane.Environment(t).User(story.OperatorUser)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// looks are the steps before which the cluster is looked at, when all is as the release wants it.
var looks = map[string]bool{"Somebody edits the settings": true, "The platform is deleted": true}

// tell tells the story, and returns what the cluster was like before some steps. In the end nothing is left.
func tell(t *testing.T, options story.Options) map[string]any {
	t.Helper()
	options.Admin = plane.Config(t)
	var printed strings.Builder
	options.Out = &printed
	seen := map[string]any{}
	steps := story.Steps()
	for i, step := range steps {
		if looks[step.Title] {
			steps[i].Do = func(ctx context.Context, w *story.World) error {
				seen[step.Title] = snapshot(ctx, t, options.Admin)
				return step.Do(ctx, w)
			}
		}
	}

	world, err := story.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	err = world.Tell(t.Context(), steps)
	if err := errors.Join(err, world.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	if left := leftovers(t.Context(), t, options.Admin); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if len(seen) != len(looks) {
		t.Errorf("the cluster was looked at %d times", len(seen))
	}
	return seen
}

// TestEachStepIsNeeded looks at the facts of each step before the step is taken: at least one must not be true yet.
func TestEachStepIsNeeded(t *testing.T) {
	steps := story.Steps()
	for i, step := range steps {
		if step.Do == nil || i == 0 {
			continue // what is a fact already is what they are about; without an operator nothing is
		}
		steps[i].Do = func(ctx context.Context, w *story.World) error {
			for _, fact := range step.Facts {
				if fact.Holds(ctx, w) != nil {
					return step.Do(ctx, w)
				}
			}
			return errors.New("its facts are true before it is taken")
		}
		// A deed that changes an object back is seen by nothing else than that it is not.
		if strings.HasPrefix(step.Title, "Somebody edits") {
			steps[i].Do = step.Do
		}
	}
	world, err := story.Open(t.Context(), story.Options{Admin: plane.Config(t), Operator: operator(t)})
	if err != nil {
		t.Fatal(err)
	}
	err = world.Tell(t.Context(), steps)
	if err := errors.Join(err, world.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatal(err)
	}
}

// TestStoryFails tells the story of operators that are broken: it stops where that shows, and cleans up.
func TestStoryFails(t *testing.T) {
	const patience = 5 * time.Second
	for name, tc := range map[string]struct {
		// sabotage is done before the step of that title.
		step     string
		sabotage func(ctx context.Context, w *story.World) error
		want     string
	}{
		"the operator has lost its rights": {
			step:     "Somebody edits the settings",
			sabotage: func(ctx context.Context, w *story.World) error { return forbid(ctx, w.Client) },
			want:     `"Somebody edits the settings": they are put right`,
		},
		"the operator is gone": {
			step:     "Somebody carries the migration out",
			sabotage: func(_ context.Context, w *story.World) error { return w.Abandon() },
			want:     "the operator does not run",
		},
		"the dashboard is not somebody else's": {
			step:     "The platform is deleted",
			sabotage: func(ctx context.Context, w *story.World) error { return giveAway(ctx, w.Client) },
			want:     `"The platform is deleted": that is blocked`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			steps := story.Steps()
			found := false
			for i, step := range steps {
				if step.Title == tc.step && !found {
					found = true
					steps[i].Do = func(ctx context.Context, w *story.World) error {
						return errors.Join(tc.sabotage(ctx, w), step.Do(ctx, w))
					}
				}
			}
			if !found {
				t.Fatalf("there is no step %q", tc.step)
			}
			world, err := story.Open(t.Context(), story.Options{Admin: plane.Config(t), Operator: operator(t), Patience: patience})
			if err != nil {
				t.Fatal(err)
			}
			if err := world.Tell(t.Context(), steps); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v", err)
			}
			if err := world.Close(context.WithoutCancel(t.Context())); err != nil && !strings.Contains(err.Error(), "not so after") {
				t.Error(err)
			}
			if left := leftovers(t.Context(), t, plane.Config(t)); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// forbid takes what the operator may do away from it, but for what the platform itself needs.
func forbid(ctx context.Context, c client.Client) error {
	role := &rbacv1.ClusterRole{}
	if err := c.Get(ctx, client.ObjectKey{Name: story.OperatorUser}, role); err != nil {
		return err
	}
	for i := range role.Rules {
		if role.Rules[i].Resources[0] == "configmaps" {
			role.Rules[i].Verbs = []string{"get", "list", "watch", "delete"}
		}
	}
	return c.Update(ctx, role)
}

// giveAway has the dashboard of somebody else look like one of the platform.
func giveAway(ctx context.Context, c client.Client) error {
	own, other := controller.NewDashboard("demo-observability", "demo-overview", ""), controller.NewDashboard("demo-observability", "sales", "")
	for _, dashboard := range []client.Object{own, other} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(dashboard), dashboard); err != nil {
			return err
		}
	}
	other.SetLabels(own.GetLabels())
	other.SetAnnotations(own.GetAnnotations())
	return c.Update(ctx, other)
}

// TestInhabitedCluster: what the platform would adopt, and take along, is somebody else's.
func TestInhabitedCluster(t *testing.T) {
	admin, err := client.New(plane.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: controller.ViewerRoleName("demo-observability", "demo")}}
	if err := admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), role); err != nil {
			t.Error(err)
		}
	})
	before := leftovers(t.Context(), t, plane.Config(t))
	_, err = story.Open(t.Context(), story.Options{Admin: plane.Config(t), Operator: operator(t)})
	if err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(before, leftovers(t.Context(), t, plane.Config(t))); diff != "" || len(before) == 0 {
		t.Errorf("who was there has lost something (-before +after)\n%s", diff)
	}
}

// kinds are those of which the story has objects.
var kinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("Platform"),
	controller.DashboardKind,
	corev1.SchemeGroupVersion.WithKind("Namespace"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
}

// snapshot returns all objects of the story, without what differs from one telling to the next.
func snapshot(ctx context.Context, t *testing.T, config *rest.Config) map[string]any {
	t.Helper()
	seen := storytellingtest.Snapshot(ctx, t, config, isOfStory, kinds...)
	for _, obj := range seen {
		// It is made of the UID of the platform.
		for _, field := range []string{"labels", "annotations"} {
			unstructured.RemoveNestedField(obj.(map[string]any), "metadata", field, controller.Prefix+"/"+component.LabelOwnerID)
		}
		// That is how often the story itself has touched it, to see that nothing comes of that.
		unstructured.RemoveNestedField(obj.(map[string]any), "metadata", "annotations", "example.com/touched")
	}
	return seen
}

// leftovers names the objects of the story.
func leftovers(ctx context.Context, t *testing.T, config *rest.Config) []string {
	t.Helper()
	return storytellingtest.Leftovers(ctx, t, config, isOfStory, kinds...)
}

// isOfStory tells by the name or namespace whether an object is the story's.
func isOfStory(obj metav1.Object) bool {
	for _, name := range []string{obj.GetNamespace(), obj.GetName()} {
		for _, part := range []string{"demo-observability", "platform-operator", "observability.example.com", "platform.example.com"} {
			if strings.Contains(name, part) {
				return true
			}
		}
	}
	return false
}

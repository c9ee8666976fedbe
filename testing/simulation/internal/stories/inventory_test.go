package stories_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// planted is set for a test binary in which TestPlanted fails.
const planted = "STORIES_PLANTED"

func TestMain(m *testing.M) { stories.Main(m) }

// TestPlanted has an operator that marks an object which is in no inventory.
func TestPlanted(t *testing.T) {
	if os.Getenv(planted) == "" {
		return
	}
	simulation.Run(t, simulation.Options{
		Operator: func(_ context.Context, mgr ctrl.Manager) error {
			return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				obj := &corev1.ConfigMap{ObjectMeta: stories.Named("default", "plain")}
				if err := mgr.GetClient().Create(ctx, obj); err != nil {
					return client.IgnoreAlreadyExists(err)
				}
				obj = &corev1.ConfigMap{ObjectMeta: stories.Named("default", "marked")}
				obj.Annotations = map[string]string{"espalier.dev/owner-id": "default/some"}
				return client.IgnoreAlreadyExists(mgr.GetClient().Create(ctx, obj))
			}))
		},
		Always: []simulation.Invariant{
			stories.InventoryCovers(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Some"}),
		},
	}, func(w *simulation.World) { w.Pass(time.Minute) })
}

func TestInventoryCovers(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPlanted$")
	command.Env = append(os.Environ(), planted+"=true")
	out, err := command.CombinedOutput()
	want := `operator breaks "the inventory of Some has what is marked" by create ConfigMap default/marked: ` +
		"no Some has the object in its inventory"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("the test does not fail with %q: %v\n%s", want, err, out)
	}
}

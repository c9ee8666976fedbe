package simulation_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/simulation"
)

// backup runs a Job once for each ConfigMap in the namespace default, and notes its name. It has a bug: if it dies
// between the two, it runs another Job.
func backup(_ context.Context, mgr ctrl.Manager) error {
	c := mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			parent := &corev1.ConfigMap{}
			if err := c.Get(ctx, r.NamespacedName, parent); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if parent.Namespace != "default" || parent.Annotations["job"] != "" {
				return reconcile.Result{}, nil
			}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, GenerateName: "backup-"}}
			job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "backup", Image: "backup"}}
			if err := c.Create(ctx, job); err != nil {
				return reconcile.Result{}, err
			}
			metav1.SetMetaDataAnnotation(&parent.ObjectMeta, "job", job.Name)
			return reconcile.Result{}, c.Update(ctx, parent)
		}))
}

func oneBackup(w *simulation.World) {
	w.Create(configMap("db", ""))
	w.Rest()
	jobs := &batchv1.JobList{}
	w.List(jobs)
	if len(jobs.Items) != 1 {
		w.Errorf("there are %d backups", len(jobs.Items))
	}
}

// inner is set in a test binary that is run by a test.
const inner = "SIMULATION_INNER"

func TestInnerFaults(t *testing.T) {
	if os.Getenv(inner) != "" {
		simulation.RunFaults(t, simulation.Options{Operator: backup}, oneBackup)
	}
}

func TestInnerSeeds(t *testing.T) {
	if os.Getenv(inner) != "" {
		simulation.RunSeeds(t, simulation.Options{Operator: backup}, oneBackup)
	}
}

// runInner runs a test of this binary that fails, and returns what it prints.
func runInner(t *testing.T, test string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], append(args, "-test.run=^"+test+"$")...)
	command.Env = append(os.Environ(), inner+"=true")
	out, err := command.CombinedOutput()
	if err == nil {
		t.Errorf("%s does not fail:\n%s", test, out)
	}
	return string(out)
}

// smallPlan is a plan with one fault and nothing else.
var smallPlan = regexp.MustCompile(`(?m)^ *faults\.Plan{\n\s*Faults: \[\]faults\.Fault{\n.*\n\s*},\n\s*}$`)

func TestCrashIsFound(t *testing.T) {
	for _, test := range []string{"TestInnerFaults", "TestInnerSeeds"} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			out := runInner(t, test)
			if !strings.Contains(out, "there are 2 backups") || !smallPlan.MatchString(out) {
				t.Errorf("it prints:\n%s", out)
			}
		})
	}
}

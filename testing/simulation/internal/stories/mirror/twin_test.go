package mirror_test

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
	"github.com/espalier-dev/espalier/examples/mirror/bare"
	"github.com/espalier-dev/espalier/examples/mirror/webhook"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// bareOperator sets up the operator that is written with controller-runtime alone.
func bareOperator(ctx context.Context, mgr ctrl.Manager) error {
	reconciler := &bare.Reconciler{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("mirror"), Registry: registries.In(ctx),
	}
	return errors.Join(reconciler.SetupWithManager(ctx, mgr), webhook.SetUp(mgr))
}

// TestTwins tells the life of a mirror with both operators.
func TestTwins(t *testing.T) {
	for name, operator := range map[string]func(context.Context, ctrl.Manager) error{
		"bare": bareOperator, "controller": operator,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := cluster(t)
			options.Operator = operator
			options.Objects = installed()[:2]
			simulation.RunSeeds(t, options, life)
		})
	}
}

func life(w *simulation.World) {
	mirror := &v1.Mirror{ObjectMeta: stories.Named("default", "docs"), Spec: v1.MirrorSpec{
		Upstream: "https://docs.example.com", Replicas: 1, Credentials: "login", Peers: []string{"shop", "wiki"},
	}}
	w.Create(mirror)
	w.Rest()
	says(w, mirror, v1.CredentialsFound, "False")
	says(w, mirror, v1.StatefulSetReady, "Unknown")
	says(w, mirror, v1.Registered, "Unknown")
	login := &corev1.Secret{ObjectMeta: stories.Named("default", "login"), StringData: map[string]string{"a": "b"}}
	w.Create(login)
	w.Rest()
	says(w, mirror, v1.Ready, "True")
	first := template(w)

	w.Update(login, func() { login.StringData = map[string]string{"a": "c"} })
	w.Update(mirror, func() {
		mirror.Spec.Replicas, mirror.Spec.Peers, mirror.Spec.Prune = 2, []string{"wiki", "mail"}, "@weekly"
	})
	foreign := stories.Foreign{&networkingv1.NetworkPolicy{ObjectMeta: stories.Named("default", "docs-other")}}
	foreign.Create(w)
	w.As("someone").Delete(&corev1.Service{ObjectMeta: stories.Named("default", "docs")})
	w.Rest()
	says(w, mirror, v1.Ready, "True")
	if mirror.Status.ReadyReplicas != 2 || mirror.Spec.Image == "" {
		w.Errorf("the mirror has %d ready replicas of the image %q", mirror.Status.ReadyReplicas, mirror.Spec.Image)
	}
	if template(w) == first {
		w.Error("the pods are not replaced, though the credentials have changed")
	}
	exist(w, true, &corev1.Service{ObjectMeta: stories.Named("default", "docs")},
		&policyv1.PodDisruptionBudget{ObjectMeta: stories.Named("default", "docs")},
		&batchv1.CronJob{ObjectMeta: stories.Named("default", "docs-prune")},
		&networkingv1.NetworkPolicy{ObjectMeta: stories.Named("default", "docs-mail")})
	exist(w, false, &networkingv1.NetworkPolicy{ObjectMeta: stories.Named("default", "docs-shop")})

	w.Update(mirror, func() { mirror.Spec.Replicas, mirror.Spec.Prune = 1, "" })
	w.Rest()
	exist(w, false, &policyv1.PodDisruptionBudget{ObjectMeta: stories.Named("default", "docs")},
		&batchv1.CronJob{ObjectMeta: stories.Named("default", "docs-prune")})
	if sites := registries.Of(w).Sites(); sites["default/docs"] != "https://docs.example.com" {
		w.Errorf("the registry knows %v", sites)
	}
	w.Idle(time.Hour)
	w.Delete(mirror)
	w.Rest()
	exist(w, false, mirror, &appsv1.StatefulSet{ObjectMeta: stories.Named("default", "docs")})
	if sites := registries.Of(w).Sites(); len(sites) > 0 {
		w.Errorf("the registry knows %v after the end", sites)
	}
	foreign.AreUntouched(w)
}

// says fails the story unless a condition has the status for the current generation.
func says(w *simulation.World, mirror *v1.Mirror, condition string, status metav1.ConditionStatus) {
	w.Helper()
	w.Get(mirror)
	got := meta.FindStatusCondition(mirror.Status.Conditions, condition)
	if got == nil || got.Status != status || got.ObservedGeneration != mirror.Generation {
		w.Errorf("the condition %s is %+v, want it %s", condition, got, status)
	}
}

// template returns what the pods are annotated with.
func template(w *simulation.World) string {
	w.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: stories.Named("default", "docs")}
	w.Get(set)
	return set.Spec.Template.Annotations["mirror.example.com/credentials"]
}

func exist(w *simulation.World, want bool, objects ...client.Object) {
	w.Helper()
	for _, obj := range objects {
		if w.Exists(obj) != want {
			w.Errorf("that the %T %s exists is %v", obj, obj.GetName(), !want)
		}
	}
}

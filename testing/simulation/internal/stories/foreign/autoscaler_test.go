package foreign_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// components is a cluster with an operator of components.
func components() simulation.Options {
	return simulation.Options{
		Operator: func(ctx context.Context, mgr ctrl.Manager) error {
			config := reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour)
			return component.NewComponentRoot("assembly.example.com", resources.AssemblyGenerator(),
				component.Options[*resources.Assembly]{Config: config}).SetupWithManager(ctx, mgr)
		},
		Scheme:      resources.NewScheme(),
		Definitions: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
	}
}

// web is a Deployment whose manifest says a number of replicas, or none.
func web(replicas *int32) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: stories.Named(namespace, "web"),
		Spec: appsv1.DeploymentSpec{
			Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web:1"}}},
			},
		},
	}
}

// writesOf counts what the operator wrote to the Deployment since the last time.
func writesOf(w *simulation.World) int {
	n := 0
	for _, line := range w.Writes() {
		if line == "update Deployment "+namespace+"/web" {
			n++
		}
	}
	return n
}

// TestAutoscalerOfAManifest has an autoscaler want three replicas where the manifest of a component says one. The
// component corrects it five times, and then every few minutes, and says who changes what. It is at rest when the manifest says
// no number any more.
func TestAutoscalerOfAManifest(t *testing.T) {
	simulation.Run(t, components(), func(w *simulation.World) {
		assembly := resources.NewAssembly(namespace, "all", web(new(int32(1))))
		w.Create(assembly)
		w.Rest()
		w.Writes()

		w.Create(&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: stories.Named(namespace, "web"),
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: "apps/v1", Kind: "Deployment", Name: "web",
				},
				MinReplicas: new(int32(3)), MaxReplicas: 5,
			},
		})
		const contested = `the field manager "kube-controller-manager" keeps changing .spec.replicas ` +
			`(ignore-fields: /spec/replicas`
		condition := func() *metav1.Condition {
			w.Get(assembly)
			return assembly.Status.GetCondition(apis.ConditionReady)
		}
		w.Until("it is contested", func() bool { return condition().Reason == component.ReasonContested })
		if message := condition().Message; !strings.Contains(message, contested) {
			w.Errorf("the condition says %q, want %q", message, contested)
		}
		if n := writesOf(w); n != 5 {
			w.Errorf("the component corrected the replicas %d times before it said so, want 5", n)
		}
		w.Pass(time.Hour)
		if n := writesOf(w); n == 0 || n > 30 {
			w.Errorf("the component corrected the replicas %d times in an hour, want 1 to 30", n)
		}
		if reason := condition().Reason; reason != component.ReasonContested {
			w.Errorf("the reason is %s after an hour, want %s", reason, component.ReasonContested)
		}

		w.Update(assembly, func() { assembly.SetObjects(web(nil)) })
		w.Rest()
		live := web(nil)
		w.Get(live)
		if *live.Spec.Replicas != 3 || live.Status.ReadyReplicas != 3 {
			w.Errorf("there are %d replicas, and %d are ready, want 3", *live.Spec.Replicas, live.Status.ReadyReplicas)
		}
		if condition().Status != metav1.ConditionTrue {
			w.Errorf("the component is not ready: %v", condition())
		}
	})
}

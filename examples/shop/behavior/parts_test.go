package behavior_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// children returns the objects that the operator makes for a shop with everything, once they are there.
func (o *operator) children(name string) map[string]client.Object {
	o.t.Helper()
	return map[string]client.Object{
		"Deployment":    get(o, &appsv1.Deployment{}, name),
		"Service":       get(o, &corev1.Service{}, name),
		"Ingress":       get(o, &networkingv1.Ingress{}, name),
		"mail worker":   get(o, &batchv1.CronJob{}, name+"-mail"),
		"report worker": get(o, &batchv1.CronJob{}, name+"-report"),
	}
}

func TestEverythingIsMade(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		shop := o.running("web")

		for kind, child := range o.children("web") {
			if !metav1.IsControlledBy(child, shop) {
				t.Errorf("the %s has the owners %v, want the shop, or the garbage collector would leave it", kind,
					child.GetOwnerReferences())
			}
			if child.GetLabels()["app.kubernetes.io/instance"] != "web" {
				t.Errorf("the %s has the labels %v, want the instance web", kind, child.GetLabels())
			}
		}
		deployment := get(o, &appsv1.Deployment{}, "web")
		container := deployment.Spec.Template.Spec.Containers[0]
		if container.Image != "shop:1" || container.EnvFrom[0].ConfigMapRef.Name != "settings" {
			t.Errorf("the container is %+v, want the image shop:1 and the settings", container)
		}
		if *deployment.Spec.Replicas != 2 {
			t.Errorf("there are %d replicas, want 2", *deployment.Spec.Replicas)
		}
		service := get(o, &corev1.Service{}, "web")
		selector := client.MatchingLabels(service.Spec.Selector)
		for key, value := range selector {
			if deployment.Spec.Template.Labels[key] != value {
				t.Errorf("the Service selects %v and the pods have %v, want these selected", selector,
					deployment.Spec.Template.Labels)
			}
		}
		if port := service.Spec.Ports[0]; port.Port != 80 || port.TargetPort.IntVal != container.Ports[0].ContainerPort {
			t.Errorf("the port of the Service is %v and that of the pods %v, want 80 and the same target", port,
				container.Ports)
		}
		rule := get(o, &networkingv1.Ingress{}, "web").Spec.Rules[0]
		if rule.Host != "web.example.com" || rule.HTTP.Paths[0].Backend.Service.Name != "web" {
			t.Errorf("the rule of the Ingress is %v, want web.example.com and the Service web", rule)
		}
		cronJob := get(o, &batchv1.CronJob{}, "web-mail")
		worker := cronJob.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
		if cronJob.Spec.Schedule != "*/5 * * * *" || worker.Image != "shop:1" || !slices.Equal(worker.Args, []string{"mail"}) {
			t.Errorf("the worker is %v, want shop:1 mail every 5 minutes", cronJob.Spec)
		}
		if worker.EnvFrom[0].ConfigMapRef.Name != "settings" {
			t.Errorf("the worker has the environment %v, want the settings", worker.EnvFrom)
		}
		if host := o.hosts.HostOf(o.namespace + "/web"); host != "web.example.com" {
			t.Errorf("the host %q is registered, want web.example.com", host)
		}
		for _, child := range []string{`Deployment "web"`, `Service "web"`, `Ingress "web"`, `CronJob "web-mail"`} {
			o.event(shop, "Created", child)
		}
	})
}

func TestTheLeastIsMade(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		o.order("web")
		o.rollOut("web")
		o.expect("web", ready())
		o.absent(&networkingv1.Ingress{}, "web")
		if env := get(o, &appsv1.Deployment{}, "web").Spec.Template.Spec.Containers[0].EnvFrom; len(env) > 0 {
			t.Errorf("the environment is from %v, want nothing", env)
		}
	})
}

func TestReadinessOfTheDeployment(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		o.order("web")
		o.expect("web", list(isFalse(v1.DeploymentReady, ""), isFalse(v1.Ready, ""), isTrue(v1.ServiceReady)))

		o.report("web", func(deployment *appsv1.Deployment) {
			deployment.Status = appsv1.DeploymentStatus{
				ObservedGeneration: deployment.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 1,
			}
		})
		// The number alone may be one of a minute ago: a text that alone changes is shown at most once in a minute.
		shop := o.expect("web", list(
			isFalse(v1.DeploymentReady, "of 2 replicas available"), isFalse(v1.Ready, "of 2 replicas available"),
		))
		progressing := shop.Status.GetCondition(v1.DeploymentReady).Reason

		o.report("web", func(deployment *appsv1.Deployment) {
			deployment.Status.Conditions = []appsv1.DeploymentCondition{{
				Type:   appsv1.DeploymentProgressing,
				Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "the image cannot be pulled",
			}}
		})
		o.eventually(func() error {
			shop := get(o, &v1.Shop{}, "web")
			condition := shop.Status.GetCondition(v1.DeploymentReady)
			if condition.Status != metav1.ConditionFalse || condition.Reason == progressing || condition.Message == "" {
				return fmt.Errorf("DeploymentReady does not show the failure: %v", condition)
			}
			return nil
		})

		o.rollOut("web")
		o.expect("web", ready())
	})
}

func TestSettings(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		o.order("web", withEverything)
		o.expect("web", list(
			isFalse(v1.SettingsFound, "settings"), isFalse(v1.Ready, "settings"),
			isUnknown(v1.DeploymentReady), isUnknown(v1.WorkersReady), isUnknown(v1.Registered),
		))
		o.absent(&appsv1.Deployment{}, "web")
		o.absent(&batchv1.CronJob{}, "web-mail")
		if o.hosts.HostOf(o.namespace+"/web") != "" {
			t.Error("the host is registered, want it not to be")
		}

		// The ConfigMap wakes the shop.
		o.do(o.Create(t.Context(), o.settings("1")))
		o.rollOut("web")
		o.expect("web", ready())

		before := get(o, &appsv1.Deployment{}, "web").Spec.Template.Annotations
		change(o, o.settings(""), func(settings *corev1.ConfigMap) { settings.Data["LEVEL"] = "2" })
		o.eventually(func() error {
			if after := get(o, &appsv1.Deployment{}, "web").Spec.Template.Annotations; maps.Equal(before, after) {
				return fmt.Errorf("the pods are not replaced: %v", after)
			}
			return nil
		})
		o.rollOut("web")
		o.expect("web", ready())

		// What is there stays when the settings go.
		o.do(o.Delete(t.Context(), o.settings("")))
		o.expect("web", list(isFalse(v1.SettingsFound, "settings"), isFalse(v1.Ready, "settings")))
		o.children("web")
	})
}

func TestChangesOfTheSpec(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		shop := o.running("web")
		change(o, shop, func(shop *v1.Shop) {
			shop.Spec.Image = "shop:2"
			shop.Spec.Replicas = 3
			shop.Spec.Settings = ""
			shop.Spec.Host = "other.example.com"
			shop.Spec.Workers = []v1.Worker{{Name: "mail", Schedule: "0 * * * *"}, {Name: "prices", Schedule: "0 5 * * *"}}
		})
		o.eventually(func() error {
			deployment := get(o, &appsv1.Deployment{}, "web")
			container := deployment.Spec.Template.Spec.Containers[0]
			if container.Image != "shop:2" || *deployment.Spec.Replicas != 3 || len(container.EnvFrom) > 0 {
				return fmt.Errorf("the Deployment is %v", deployment.Spec)
			}
			return nil
		})
		o.rollOut("web")
		o.expect("web", ready())
		if cronJob := get(o, &batchv1.CronJob{}, "web-mail"); cronJob.Spec.Schedule != "0 * * * *" ||
			len(cronJob.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Args) > 0 {
			t.Errorf("the worker is %v, want it to run every hour without arguments", cronJob.Spec)
		}
		get(o, &batchv1.CronJob{}, "web-prices")
		o.gone(&batchv1.CronJob{}, "web-report")
		o.event(shop, "Updated", `Deployment "web"`)
		o.event(shop, "Deleted", `CronJob "web-report"`)
		if rule := get(o, &networkingv1.Ingress{}, "web").Spec.Rules[0]; rule.Host != "other.example.com" {
			t.Errorf("the rule of the Ingress is %v, want other.example.com", rule)
		}
		if host := o.hosts.HostOf(o.namespace + "/web"); host != "other.example.com" {
			t.Errorf("the host %q is registered, want other.example.com", host)
		}

		change(o, shop, func(shop *v1.Shop) { shop.Spec.Host, shop.Spec.Workers = "", nil })
		o.gone(&networkingv1.Ingress{}, "web")
		o.gone(&batchv1.CronJob{}, "web-mail")
		o.gone(&batchv1.CronJob{}, "web-prices")
		o.expect("web", ready())
		if host := o.hosts.HostOf(o.namespace + "/web"); host != "" {
			t.Errorf("the host %q is registered still, want none", host)
		}
	})
}

func TestEditsAndDeletionsAreHealed(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		o.running("web")
		change(o, get(o, &appsv1.Deployment{}, "web"), func(deployment *appsv1.Deployment) {
			delete(deployment.Labels, "app.kubernetes.io/instance")
			deployment.Spec.Template.Spec.Containers[0].Image = "else:1"
		})
		change(o, get(o, &networkingv1.Ingress{}, "web"), func(ingress *networkingv1.Ingress) {
			ingress.Spec.Rules[0].Host = "else.example.com"
		})
		change(o, get(o, &batchv1.CronJob{}, "web-mail"), func(cronJob *batchv1.CronJob) {
			cronJob.Spec.Schedule = "1 1 1 1 1"
		})
		o.do(o.Delete(t.Context(), &corev1.Service{ObjectMeta: o.meta("web")}))
		o.do(o.Delete(t.Context(), &batchv1.CronJob{ObjectMeta: o.meta("web-report")}))

		o.eventually(func() error {
			deployment := get(o, &appsv1.Deployment{}, "web")
			ingress := get(o, &networkingv1.Ingress{}, "web")
			cronJob := get(o, &batchv1.CronJob{}, "web-mail")
			if deployment.Labels["app.kubernetes.io/instance"] != "web" ||
				deployment.Spec.Template.Spec.Containers[0].Image != "shop:1" ||
				ingress.Spec.Rules[0].Host != "web.example.com" || cronJob.Spec.Schedule != "*/5 * * * *" {
				return fmt.Errorf("not healed: %v, %v, %v", deployment.Spec, ingress.Spec, cronJob.Spec)
			}
			return nil
		})
		get(o, &corev1.Service{}, "web")
		get(o, &batchv1.CronJob{}, "web-report")
		o.rollOut("web")
		o.expect("web", ready())
	})
}

// TestAdditionsOfOthersStay: fields that the operator says nothing about are not its own.
func TestAdditionsOfOthersStay(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		shop := o.running("web")
		change(o, get(o, &appsv1.Deployment{}, "web"), func(deployment *appsv1.Deployment) {
			deployment.Labels["team"] = "a"
			deployment.Spec.Template.Spec.Containers = append(deployment.Spec.Template.Spec.Containers,
				corev1.Container{Name: "sidecar", Image: "sidecar:1"})
		})
		change(o, get(o, &batchv1.CronJob{}, "web-mail"), func(cronJob *batchv1.CronJob) {
			suspend := true
			cronJob.Spec.Suspend = &suspend
		})
		change(o, shop, func(shop *v1.Shop) { shop.Spec.Image = "shop:2" })
		o.eventually(func() error {
			image := get(o, &appsv1.Deployment{}, "web").Spec.Template.Spec.Containers[0].Image
			if image != "shop:2" {
				return fmt.Errorf("the image is %s", image)
			}
			return nil
		})
		o.rollOut("web")
		o.expect("web", ready())
		deployment := get(o, &appsv1.Deployment{}, "web")
		if deployment.Labels["team"] != "a" || len(deployment.Spec.Template.Spec.Containers) != 2 {
			t.Errorf("the Deployment is %v with the labels %v, want 2 containers and the team a", deployment.Spec,
				deployment.Labels)
		}
		if cronJob := get(o, &batchv1.CronJob{}, "web-mail"); !*cronJob.Spec.Suspend {
			t.Error("the worker is not suspended any more, want it to be")
		}
	})
}

func TestNothingIsWrittenWhileNothingChanges(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		shop := o.running("web")
		controlplanetest.Quiet(o.t, o.requests)
		o.reconciled(func() {
			change(o, shop, func(shop *v1.Shop) { shop.Annotations = map[string]string{"touched": "yes"} })
		})
		o.reconciled(func() {
			change(o, o.settings(""), func(settings *corev1.ConfigMap) { settings.Labels = map[string]string{"touched": "yes"} })
		})
		controlplanetest.Rest(o.t, o.requests)
		if o.requests.Writes() > 0 {
			t.Errorf("there are writes of the operator, want none:\n%s", o.requests)
		}

		// One that starts finds all as it should be. The first start after an object was created does not count: an
		// operator that applies may take over the fields that the API server counts as created.
		for range 2 {
			o.stop()
			o.reconciled(o.start)
			controlplanetest.Rest(o.t, o.requests)
		}
		if o.requests.Writes() > 0 {
			t.Errorf("there are writes of the operator after its start, want none:\n%s", o.requests)
		}
		if events := o.events(shop); slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, "Updated") }) {
			t.Errorf("the events are %q, want none of updates since nothing has changed", events)
		}
	})
}

package behavior_test

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
)

var podTemplate = corev1.PodTemplateSpec{
	ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "theirs"}},
	Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways,
		Containers:    []corev1.Container{{Name: "theirs", Image: "theirs:1"}},
	},
}

// theirs creates objects that have the names of children of the shop "web" but are not the shop's.
func (o *operator) theirs() map[string]client.Object {
	o.t.Helper()
	gang := &corev1.ConfigMap{ObjectMeta: o.meta("gang")}
	o.do(o.Create(o.t.Context(), gang))

	deployment := &appsv1.Deployment{ObjectMeta: o.meta("web")}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: podTemplate.Labels}
	deployment.Spec.Template = *podTemplate.DeepCopy()
	o.do(controllerutil.SetControllerReference(gang, deployment, o.Scheme()))

	service := &corev1.Service{ObjectMeta: o.meta("web")}
	service.Spec.Ports = []corev1.ServicePort{{Port: 1}}

	ingress := &networkingv1.Ingress{ObjectMeta: o.meta("web")}
	ingress.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: "theirs", Port: networkingv1.ServiceBackendPort{Number: 1},
	}}

	cronJob := func(name string) *batchv1.CronJob {
		cronJob := &batchv1.CronJob{ObjectMeta: o.meta(name)}
		cronJob.Labels = map[string]string{"app.kubernetes.io/instance": "web"}
		cronJob.Spec.Schedule = "1 1 1 1 1"
		cronJob.Spec.JobTemplate.Spec.Template = *podTemplate.DeepCopy()
		cronJob.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		return cronJob
	}
	objects := map[string]client.Object{
		"Deployment": deployment, "Service": service, "Ingress": ingress,
		"CronJob of a worker's name": cronJob("web-mail"), "CronJob of another name": cronJob("web-other"),
	}
	for _, obj := range objects {
		o.do(o.Create(o.t.Context(), obj))
	}
	return objects
}

// untouched fails the test unless each object is as it was.
func (o *operator) untouched(objects map[string]client.Object) {
	o.t.Helper()
	for name, before := range objects {
		after := before.DeepCopyObject().(client.Object)
		if err := o.Get(o.t.Context(), client.ObjectKeyFromObject(before), after); err != nil {
			o.t.Errorf("the %s: %v", name, err)
		} else if after.GetResourceVersion() != before.GetResourceVersion() {
			o.t.Errorf("the %s has the version %s, want %s, for it was written: %v", name, after.GetResourceVersion(),
				before.GetResourceVersion(), after.GetManagedFields())
		}
	}
}

func TestWhatIsNotTheShopsIsLeftAlone(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		objects := o.theirs()
		o.do(o.Create(t.Context(), o.settings("1")))
		shop := o.order("web", withEverything)
		o.expect("web", list(
			isFalse(v1.Ready, "gang"),
			isFalse(v1.DeploymentReady, "gang"),
			isFalse(v1.ServiceReady, "already exists"),
			isFalse(v1.IngressReady, "already exists"),
			isFalse(v1.WorkersReady, "already exists"),
			isUnknown(v1.Registered),
		))
		get(o, &batchv1.CronJob{}, "web-report")
		o.untouched(objects)

		// Nor is it deleted when there is to be nothing of that name.
		change(o, shop, func(shop *v1.Shop) { shop.Spec.Host, shop.Spec.Workers = "", nil })
		o.gone(&batchv1.CronJob{}, "web-report")
		o.expect("web", list(isTrue(v1.IngressReady), isTrue(v1.WorkersReady), isFalse(v1.ServiceReady, "already exists"),
			isTrue(v1.Registered)))
		o.untouched(objects)

		// The shop gets its own when the others have gone.
		o.do(o.Delete(t.Context(), objects["Deployment"], client.PropagationPolicy(metav1.DeletePropagationBackground)))
		o.do(o.Delete(t.Context(), objects["Service"]))
		o.rollOut("web")
		o.expect("web", ready())
		if !metav1.IsControlledBy(get(o, &appsv1.Deployment{}, "web"), shop) {
			t.Error("the Deployment is not the shop's, want it to be")
		}
	})
}

func TestHostOfAnotherShop(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		o.running("web")
		o.order("copy", func(shop *v1.Shop) { shop.Spec.Host = "web.example.com" })
		o.rollOut("copy")
		copied := o.expect("copy", list(
			isFalse(v1.Registered, o.namespace+"/web"), isFalse(v1.Ready, o.namespace+"/web"), isTrue(v1.DeploymentReady),
		))
		if reason := copied.Status.GetCondition(v1.Registered).Reason; reason != "HostTaken" {
			t.Errorf("the reason is %s, want HostTaken", reason)
		}

		// Nothing tells the operator, it asks again.
		o.do(o.Delete(t.Context(), &v1.Shop{ObjectMeta: o.meta("web")}))
		o.gone(&v1.Shop{}, "web")
		o.expect("copy", ready())
		if host := o.hosts.HostOf(o.namespace + "/copy"); host != "web.example.com" {
			t.Errorf("the host %q is registered, want web.example.com", host)
		}
	})
}

func TestDeletion(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		o.running("web")
		o.hosts.Fail(errors.New("the registry is down"))
		o.do(o.Delete(t.Context(), &v1.Shop{ObjectMeta: o.meta("web")}))
		o.expect("web", list(isFalse(v1.Ready, "the registry is down")))

		o.hosts.Fail(nil)
		o.gone(&v1.Shop{}, "web")
		if host := o.hosts.HostOf(o.namespace + "/web"); host != "" {
			t.Errorf("the host %q is registered still, want none", host)
		}
	})
}

// TestDeletionWithoutSettings: what a shop needs for its work it does not need for its end.
func TestDeletionWithoutSettings(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		o.running("web")
		o.do(o.Delete(t.Context(), o.settings("")))
		o.expect("web", list(isFalse(v1.SettingsFound, "settings")))
		o.do(o.Delete(t.Context(), &v1.Shop{ObjectMeta: o.meta("web")}))
		o.gone(&v1.Shop{}, "web")
		if host := o.hosts.HostOf(o.namespace + "/web"); host != "" {
			t.Errorf("the host %q is registered still, want none", host)
		}
	})
}

func TestErrorsAreShown(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		shop := o.running("web")
		o.hosts.Fail(errors.New("the registry is down"))
		change(o, shop, func(shop *v1.Shop) { shop.Spec.Replicas = 5 })
		o.expect("web", list(isFalse(v1.Ready, "the registry is down")))
		// The rest goes on.
		o.eventually(func() error {
			if replicas := *get(o, &appsv1.Deployment{}, "web").Spec.Replicas; replicas != 5 {
				return fmt.Errorf("there are %d replicas", replicas)
			}
			return nil
		})
		o.rollOut("web")
		o.expect("web", list(isTrue(v1.DeploymentReady)))

		o.hosts.Fail(nil)
		o.expect("web", ready())
	})
}

func TestMistakesOfTheUserAreShown(t *testing.T) {
	forEach(t, func(t *testing.T, o *operator) {
		shop := o.running("web")
		change(o, shop, func(shop *v1.Shop) {
			shop.Spec.Workers[0].Schedule = "now and then"
			shop.Spec.Workers[1].Schedule = "0 6 * * *"
		})
		o.expect("web", list(
			isFalse(v1.WorkersReady, "now and then"), isFalse(v1.Ready, "now and then"),
			isTrue(v1.DeploymentReady), isTrue(v1.Registered),
		))
		o.eventually(func() error {
			if schedule := get(o, &batchv1.CronJob{}, "web-report").Spec.Schedule; schedule != "0 6 * * *" {
				return fmt.Errorf("the other worker has the schedule %s", schedule)
			}
			return nil
		})

		change(o, shop, func(shop *v1.Shop) { shop.Spec.Workers[0].Schedule = "0 7 * * *" })
		o.expect("web", ready())
	})
}

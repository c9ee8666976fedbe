package controller_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	rtesting "github.com/espalier-dev/espalier/testing"
)

func withHost(s *v1.Shop) { s.Spec.Host = "web.example.com" }

var ingress = rtesting.NewFixture(&networkingv1.Ingress{
	ObjectMeta: childMeta("web"),
	Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
		Host: "web.example.com",
		IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{
				Path:     "/",
				PathType: ptr.To(networkingv1.PathTypePrefix),
				Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
				}},
			}},
		}},
	}}},
})

func TestIngress(t *testing.T) {
	ready := is(v1.IngressReady, metav1.ConditionTrue, "Ready", "")
	none := is(v1.IngressReady, metav1.ConditionTrue, "NotDesired", "")
	run(t, tests{
		"a shop with a host": {
			Resource:       shop.With(withHost).Object(),
			ExpectCreates:  []object{ingress},
			ExpectEvents:   normal("Created", `Created Ingress "web"`),
			ExpectResource: shop.With(withHost, ready).Object(),
		},
		"a shop without": {
			Resource:       shop.Object(),
			ExpectResource: shop.With(none).Object(),
		},
		"a shop that has lost its host": {
			Resource:       shop.Object(),
			GivenObjects:   []object{ingress},
			ExpectDeletes:  []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(ingress, scheme)},
			ExpectEvents:   normal("Deleted", `Deleted Ingress "web"`),
			ExpectResource: shop.With(none).Object(),
		},
	}, controller.Ingress)
}

// cronJob is that of the worker "mail".
var cronJob = rtesting.NewFixture(&batchv1.CronJob{
	ObjectMeta: childMeta("web-mail"),
	Spec: batchv1.CronJobSpec{
		Schedule: "0 4 * * *",
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"shop.example.com/worker": "mail"}},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyOnFailure,
				Containers:    []corev1.Container{{Name: "worker", Image: "shop:1", Args: []string{"mail"}}},
			},
		}}},
	},
})

func TestWorkers(t *testing.T) {
	withWorker := func(s *v1.Shop) {
		s.Spec.Workers = []v1.Worker{{Name: "mail", Schedule: "0 4 * * *", Args: []string{"mail"}}}
	}
	run(t, tests{
		"a worker": {
			Resource:       shop.With(withWorker).Object(),
			ExpectCreates:  []object{cronJob},
			ExpectEvents:   normal("Created", `Created CronJob "web-mail"`),
			ExpectResource: shop.With(withWorker, is(v1.WorkersReady, metav1.ConditionTrue, "Ready", "")).Object(),
		},
		"a worker that the shop does not have any more": {
			Resource:       shop.Object(),
			GivenObjects:   []object{cronJob},
			ExpectDeletes:  []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(cronJob, scheme)},
			ExpectEvents:   normal("Deleted", `Deleted CronJob "web-mail"`),
			ExpectResource: shop.With(is(v1.WorkersReady, metav1.ConditionTrue, "NotDesired", "")).Object(),
		},
	}, controller.Workers)
}

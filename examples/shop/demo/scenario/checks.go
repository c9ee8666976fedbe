package scenario

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

const (
	image = "example.com/shop:1"
	host  = "web.example.com"
)

// The objects of the scenario, by what they are to it. They have a name, and nothing else.
func web() *v1.Shop    { return demo.Named[v1.Shop](namespace, "web") }
func second() *v1.Shop { return demo.Named[v1.Shop](namespace, "copy") }

func settings() *corev1.ConfigMap { return demo.Named[corev1.ConfigMap](namespace, "colours") }

func deployment(shop string) *appsv1.Deployment {
	return demo.Named[appsv1.Deployment](namespace, shop)
}
func service(shop string) *corev1.Service { return demo.Named[corev1.Service](namespace, shop) }
func ingress() *networkingv1.Ingress      { return demo.Named[networkingv1.Ingress](namespace, "web") }
func cronJob(worker string) *batchv1.CronJob {
	return demo.Named[batchv1.CronJob](namespace, "web-"+worker)
}

// parts are the children of the first shop.
func parts() []client.Object {
	return []client.Object{deployment("web"), service("web"), ingress(), cronJob("mail"), cronJob("report")}
}

// newShop returns the first shop as it is ordered. Where pods would run, it has none.
func (s *scenario) newShop() *v1.Shop {
	shop := web()
	shop.Spec = v1.ShopSpec{Image: image, Host: host, Settings: settings().Name, Replicas: 2, Workers: []v1.Worker{
		{Name: "mail", Schedule: "0 4 * * *"}, {Name: "report", Schedule: "0 6 * * 1"},
	}}
	if s.Controllers {
		shop.Spec.Replicas = 0
	}
	return shop
}

// newCopy returns the second shop. It has the host that the first has then.
func (s *scenario) newCopy() *v1.Shop {
	shop := second()
	shop.Spec = v1.ShopSpec{Image: image, Host: "shop.example.com", Replicas: s.newShop().Spec.Replicas}
	return shop
}

func newSettings() *corev1.ConfigMap {
	configMap := settings()
	configMap.Data = map[string]string{"COLOUR": "green"}
	return configMap
}

func theirService() *corev1.Service {
	theirs := service("copy")
	theirs.Spec.Ports = []corev1.ServicePort{{Port: 1}}
	return theirs
}

func theirIngress() *networkingv1.Ingress {
	theirs := demo.Named[networkingv1.Ingress](namespace, "copy")
	theirs.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: "theirs", Port: networkingv1.ServiceBackendPort{Number: 1},
	}}
	return theirs
}

// hostIs holds when the registry has that host of a shop, or none.
func (s *scenario) hostIs(shop *v1.Shop, host string) demo.Condition {
	return func(context.Context) error {
		if found := s.hosts.HostOf(client.ObjectKeyFromObject(shop).String()); found != host {
			return fmt.Errorf("the registry has the host %q of %s, not %q", found, shop.Name, host)
		}
		return nil
	}
}

// registry has the registry fail, or work again.
func (s *scenario) registry(err error) demo.Action {
	return func(context.Context) error {
		s.hosts.Fail(err)
		return nil
	}
}

const checksumAnnotation = "shop.example.com/settings-checksum"

func (s *scenario) noteChecksum(ctx context.Context) error {
	return demo.Finds(s.Fixture, deployment("web"), func(found *appsv1.Deployment) error {
		s.checksum = found.Spec.Template.Annotations[checksumAnnotation]
		return nil
	})(ctx)
}

func (s *scenario) hasOtherChecksum(ctx context.Context) error {
	return demo.Finds(s.Fixture, deployment("web"), func(found *appsv1.Deployment) error {
		if now := found.Spec.Template.Annotations[checksumAnnotation]; s.checksum == "" || now == s.checksum {
			return fmt.Errorf("the checksum of the settings is %s, and was %q", now, s.checksum)
		}
		return nil
	})(ctx)
}

// hasSchedule holds when the worker "mail" has the schedule.
func (s *scenario) hasSchedule(schedule string) demo.Condition {
	return demo.Finds(s.Fixture, cronJob("mail"), func(found *batchv1.CronJob) error {
		if found.Spec.Schedule != schedule {
			return fmt.Errorf("the schedule is %s, not %s", found.Spec.Schedule, schedule)
		}
		return nil
	})
}

// leadsFrom holds when the Ingress of the first shop has the host and no other.
func (s *scenario) leadsFrom(host string) demo.Condition {
	return demo.Finds(s.Fixture, ingress(), func(found *networkingv1.Ingress) error {
		if rules := found.Spec.Rules; len(rules) != 1 || rules[0].Host != host || rules[0].HTTP == nil {
			return fmt.Errorf("the rules are %v", rules)
		}
		return nil
	})
}

func (s *scenario) noteReconciles(context.Context) error {
	s.reconciles = s.Operator.Reconciles()["copy"]
	return nil
}

// isAskedAgain holds when the second shop is being deleted and is still there, although the operator has tried to let
// it go, and tried again.
func (s *scenario) isAskedAgain(ctx context.Context) error {
	if tries := s.Operator.Reconciles()["copy"] - s.reconciles; tries < 2 {
		return fmt.Errorf("the operator has tried %d times", tries)
	}
	return demo.Finds(s.Fixture, second(), func(found *v1.Shop) error {
		if found.DeletionTimestamp == nil {
			return errors.New("it is not being deleted")
		}
		return nil
	})(ctx)
}

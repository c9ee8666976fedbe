package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

const (
	// namespace is that of the shop, and brokers the one of somebody else.
	namespace = "demo-market"
	brokers   = "demo-market-brokers"
	name      = "books"
)

// The objects of the scenario have a kind and a name, and nothing else. Nobody changes them.
var (
	shop       = demo.Named[v1.Shop](namespace, name)
	deployment = demo.Named[appsv1.Deployment](namespace, name)

	server     = demo.Named[appsv1.StatefulSet](namespace, name+"-database")
	service    = demo.Named[corev1.Service](namespace, name+"-database")
	connection = demo.Named[corev1.Secret](namespace, name+"-database-url")
	password   = demo.Named[corev1.Secret](namespace, name+"-database-password")
	ofDatabase = []client.Object{server, service, connection, password}

	broker      = demo.Named[corev1.Service](namespace, name+"-queue")
	definitions = demo.Named[corev1.ConfigMap](namespace, name+"-queue")
	elsewhere   = demo.Named[corev1.ConfigMap](brokers, name+"-queue")
	ofQueue     = []client.Object{broker, definitions}
	ofBoth      = slices.Concat(ofDatabase, ofQueue)
)

// order is a shop without pods, with a database and a queue.
func order() *v1.Shop {
	ordered := shop.DeepCopy()
	ordered.Spec.Image = "example.com/shop:1"
	ordered.Spec.Database, ordered.Spec.Queue = &v1.Database{Version: "15.6"}, &v1.Queue{Names: []string{"orders"}}
	return ordered
}

// orders orders a version of the database.
func (s *scenario) orders(version string) demo.Action {
	return s.Patches(shop, fmt.Sprintf(`{"spec":{"database":{"version":%q}}}`, version))
}

// isReady holds when a condition of the shop is True.
func (s *scenario) isReady(condition string) demo.Condition {
	return s.Reports(shop, condition, metav1.ConditionTrue, "Ready")
}

// isNotReady holds when a condition of the shop is False for the reason, and its message has the parts.
func (s *scenario) isNotReady(condition, reason string, parts ...string) demo.Condition {
	return s.Reports(shop, condition, metav1.ConditionFalse, reason, parts...)
}

// shows holds when the cluster shows these capabilities of the operator, and no others.
func (s *scenario) shows(wanted ...string) demo.Condition {
	return func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("plugins.espalier.dev/v1alpha1")
		list.SetKind("CapabilityList")
		err := s.Client.List(ctx, list, client.MatchingLabels{"plugins.espalier.dev/operator": "shop"})
		if err != nil {
			return err
		}
		var shown []string
		for _, item := range list.Items {
			spec, _, _ := unstructured.NestedMap(item.Object, "spec")
			versions, _, _ := unstructured.NestedStringSlice(spec, "versions")
			text := fmt.Sprintf("%s/%s %s", spec["category"], spec["type"], strings.Join(versions, ", "))
			shown = append(shown, strings.TrimSpace(text))
		}
		slices.Sort(shown)
		if !slices.Equal(shown, wanted) {
			return fmt.Errorf("it shows %q, not %q", shown, wanted)
		}
		return nil
	}
}

// rollsOut rolls the server out once that is to have a version.
func (s *scenario) rollsOut(version string) demo.Condition {
	return demo.All(
		s.Has(server, "{.spec.template.spec.containers[0].image}", "docker.io/library/postgres:"+version),
		s.RollsOut(server))
}

// connects holds when the shop can connect to the address that the Service of its database has been given.
func (s *scenario) connects(ctx context.Context) error {
	return demo.Finds(s.Fixture, service, func(given *corev1.Service) error {
		return demo.Finds(s.Fixture, connection, func(found *corev1.Secret) error {
			address := given.Spec.ClusterIP
			if address == "" || !strings.Contains(string(found.Data["url"]), "@"+address+":") {
				return fmt.Errorf("the URL of the database does not have the address %q", address)
			}
			return nil
		})(ctx)
	})(ctx)
}

// has holds when the broker is to have a queue.
func (s *scenario) has(queue string) demo.Condition {
	return demo.Finds(s.Fixture, definitions, func(found *corev1.ConfigMap) error {
		if !strings.Contains(found.Data["definitions.json"], `"name":"`+queue+`"`) {
			return fmt.Errorf("there is no queue %s in %s", queue, found.Data)
		}
		return nil
	})
}

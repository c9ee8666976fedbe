package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/plugins/api/v1"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

const (
	// namespace is that of the shop, and brokers the one of somebody else.
	namespace = "demo-market"
	brokers   = "demo-market-brokers"
	shop      = "books"
)

// The objects of the scenario, by what they are to it. They have a kind and a name, and nothing else.
func theShop() *v1.Shop { return demo.Named[v1.Shop](namespace, shop) }
func server() *appsv1.StatefulSet {
	return demo.Named[appsv1.StatefulSet](namespace, shop+"-database")
}
func password() client.Object { return demo.Named[corev1.Secret](namespace, shop+"-database-password") }
func connection() *corev1.Secret {
	return demo.Named[corev1.Secret](namespace, shop+"-database-url")
}
func service() *corev1.Service  { return demo.Named[corev1.Service](namespace, shop+"-database") }
func broker() client.Object     { return demo.Named[corev1.Service](namespace, shop+"-queue") }
func queues() *corev1.ConfigMap { return demo.Named[corev1.ConfigMap](namespace, shop+"-queue") }
func elsewhere() client.Object  { return demo.Named[corev1.ConfigMap](brokers, shop+"-queue") }
func ofDatabase() []client.Object {
	return []client.Object{password(), service(), server(), connection()}
}
func ofQueue() []client.Object { return []client.Object{broker(), queues()} }

func newCapabilities() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("plugins.espalier.dev/v1alpha1")
	list.SetKind("CapabilityList")
	return list
}

// says holds when a condition of the shop was observed at the current generation, is as given, and its message has all
// of these parts. A check can show the message then, see message.
func (s *scenario) says(
	condition string, status metav1.ConditionStatus, reason string, parts ...string,
) demo.Condition {
	return func(ctx context.Context) error {
		found := theShop()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		c := found.Status.GetCondition(condition)
		switch {
		case c == nil:
			return fmt.Errorf("there is no condition %s", condition)
		case c.ObservedGeneration != found.Generation:
			return fmt.Errorf("it was observed at generation %d of %d", c.ObservedGeneration, found.Generation)
		}
		s.said = fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		for _, part := range parts {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("there is nothing of %q in %s", part, s.said)
			}
		}
		if c.Status != status || c.Reason != reason {
			return fmt.Errorf("the condition is %s", s.said)
		}
		return nil
	}
}

// message returns what the condition says that the check has read.
func (s *scenario) message() string { return s.said }

// isReady holds when a condition of the shop is True.
func (s *scenario) isReady(condition string) demo.Condition {
	return s.says(condition, metav1.ConditionTrue, "Ready")
}

// shows holds when the cluster shows these capabilities of the operator, and no others.
func (s *scenario) shows(wanted ...string) demo.Condition {
	return func(ctx context.Context) error {
		list := newCapabilities()
		err := s.Client.List(ctx, list, client.MatchingLabels{"plugins.espalier.dev/operator": "market"})
		if err != nil {
			return err
		}
		var shown []string
		for _, item := range list.Items {
			category, _, _ := unstructured.NestedString(item.Object, "spec", "category")
			typ, _, _ := unstructured.NestedString(item.Object, "spec", "type")
			versions, _, _ := unstructured.NestedStringSlice(item.Object, "spec", "versions")
			shown = append(shown, strings.TrimSpace(category+"/"+typ+" "+strings.Join(versions, ", ")))
		}
		slices.Sort(shown)
		if !slices.Equal(shown, wanted) {
			return fmt.Errorf("it shows %q, not %q", shown, wanted)
		}
		return nil
	}
}

// rollOut plays the part of the controller of StatefulSets, as soon as the server is to have a version. Where there is
// one, it waits for the version alone.
func (s *scenario) rollOut(version string) demo.Condition {
	return func(ctx context.Context) error {
		found := server()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		image := found.Spec.Template.Spec.Containers[0].Image
		if !strings.HasSuffix(image, ":"+version) {
			return fmt.Errorf("the server is to have the image %s, not version %s", image, version)
		}
		if s.Controllers {
			return nil
		}
		found.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: found.Generation, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			CurrentReplicas: 1, UpdatedReplicas: 1, CurrentRevision: version, UpdateRevision: version,
		}
		return s.Client.Status().Update(ctx, found)
	}
}

// connects holds when the shop can connect to the address that the Service of its database has been given.
func (s *scenario) connects(ctx context.Context) error {
	secret, given := connection(), service()
	err := errors.Join(s.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret),
		s.Client.Get(ctx, client.ObjectKeyFromObject(given), given))
	if err != nil {
		return err
	}
	address := given.Spec.ClusterIP
	if address == "" || !strings.Contains(string(secret.Data["url"]), "@"+address+":") {
		return fmt.Errorf("the URL of the database does not have the address %q", address)
	}
	return nil
}

// has holds when the broker is to have a queue.
func (s *scenario) has(queue string) demo.Condition {
	return func(ctx context.Context) error {
		found := queues()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		if !strings.Contains(found.Data["definitions.json"], `"name":"`+queue+`"`) {
			return fmt.Errorf("there is no queue %s in %s", queue, found.Data)
		}
		return nil
	}
}

// runsAnother holds when the plugin of PostgreSQL is another process than the one before.
func runsAnother(before *int) demo.Condition {
	return func(context.Context) error {
		now, err := childCalled("postgres")
		if err == nil && now == *before {
			err = fmt.Errorf("it is still the process %d", now)
		}
		return err
	}
}

// hasEnded holds when the plugin of PostgreSQL does not run.
func hasEnded(context.Context) error {
	if id, err := childCalled("postgres"); err == nil {
		return fmt.Errorf("there is still the process %d", id)
	}
	return nil
}

// areOwned holds when the shop is the controller of the objects, so that they are deleted with it.
func (s *scenario) areOwned(objects ...client.Object) demo.Condition {
	return func(ctx context.Context) error {
		owner := theShop()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
			return err
		}
		for _, object := range objects {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if !metav1.IsControlledBy(object, owner) {
				return fmt.Errorf("%T %s does not belong to the shop", object, object.GetName())
			}
		}
		return nil
	}
}

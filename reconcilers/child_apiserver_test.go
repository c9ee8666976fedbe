package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// treeOf returns what startOperator makes a root of.
func treeOf(node widgetNode) func(reconcilers.Config) *widgetRoot {
	return func(config reconcilers.Config) *widgetRoot {
		return &widgetRoot{Config: config, Reconciler: node}
	}
}

// A manager reads some types past its cache, where there is no index: unstructured ones, unless it is told otherwise, and
// those it is told of. Their children are found all the same.
func TestChildrenThatAreNotReadFromTheCache(t *testing.T) {
	t.Parallel()
	configMapKind := &unstructured.Unstructured{}
	configMapKind.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	for name, test := range map[string]struct {
		node    widgetNode
		options client.CacheOptions
	}{
		"unstructured": {
			node: &reconcilers.ChildReconciler[*resources.Widget, *unstructured.Unstructured, *unstructured.UnstructuredList]{
				ChildType: configMapKind,
				DesiredChild: func(_ context.Context, w *resources.Widget) (*unstructured.Unstructured, error) {
					child := configMapKind.DeepCopy()
					child.SetNamespace(w.Namespace)
					child.SetName(w.Name + "-a")
					child.Object["data"] = map[string]any{"image": w.Spec.Fields["image"]}
					return child, nil
				},
				MergeBeforeUpdate: func(current, desired *unstructured.Unstructured) {
					current.Object["data"] = desired.Object["data"]
				},
				ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *unstructured.Unstructured, error) {},
			},
		},
		"not cached": {
			node:    configMapChild("a"),
			options: client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := live(t)
			op, roots := startOperatorIn(t, plane.Namespace(t), ctrl.Options{Client: client.Options{Cache: &test.options}}, treeOf(test.node))
			w := op.createWidget(t, c)
			key := client.ObjectKey{Namespace: w.Namespace, Name: w.Name + "-a"}
			eventually(t, "there is no child", func(ctx context.Context) error { return c.Get(ctx, key, &corev1.ConfigMap{}) })
			eventually(t, "reconciling fails", func(ctx context.Context) error {
				_, err := roots[0].Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
				return err
			})
		})
	}
}

// A merge by name keeps what others put into a list. What the server adds to the items is then at other indexes than in
// the list that is desired, and must not be added to another item.
func TestAdditionsOfTheServerAreNotMixedUp(t *testing.T) {
	t.Parallel()
	c := live(t)
	op, roots := startOperator(t, treeOf(&reconcilers.ChildReconciler[*resources.Widget, *corev1.Service, *corev1.ServiceList]{
		DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.Service, error) {
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: map[string]string{"version": w.Spec.Fields["version"]}},
				Spec: corev1.ServiceSpec{
					Selector: map[string]string{"widget": w.Name},
					Ports: []corev1.ServicePort{
						{Name: "http", Port: 80, TargetPort: intstr.FromInt32(80)},
						{Name: "dns", Port: 53, TargetPort: intstr.FromInt32(53), Protocol: corev1.ProtocolUDP},
					},
				},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Service) {
			current.Labels = desired.Labels
			for _, port := range desired.Spec.Ports {
				current.Spec.Ports = mergePort(current.Spec.Ports, port)
			}
		},
		ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.Service, error) {},
	}))
	w := op.createWidget(t, c)
	key := client.ObjectKeyFromObject(w)
	service := &corev1.Service{}
	change := func(what string, edit func()) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error {
			if err := c.Get(ctx, key, service); err != nil {
				return err
			}
			edit()
			return c.Update(ctx, service)
		})
	}
	change("no service", func() {
		extra := corev1.ServicePort{Name: "extra", Port: 9000, Protocol: corev1.ProtocolTCP}
		service.Spec.Ports = append([]corev1.ServicePort{extra}, service.Spec.Ports...)
	})
	eventually(t, "not changed", func(ctx context.Context) error {
		if err := c.Get(ctx, key, w); err != nil {
			return err
		}
		w.Spec.Fields["version"] = "2"
		return c.Update(ctx, w)
	})
	eventually(t, "the label does not follow", func(ctx context.Context) error {
		if err := c.Get(ctx, key, service); err != nil || service.Labels["version"] == "2" {
			return err
		}
		return fmt.Errorf("labels are %v", service.Labels)
	})
	change("cannot be annotated", func() { service.Annotations = map[string]string{"touched": "true"} })
	eventually(t, "the cache does not follow", func(ctx context.Context) error {
		cached := &corev1.Service{}
		if err := op.GetClient().Get(ctx, key, cached); err != nil || cached.Annotations["touched"] == "true" {
			return err
		}
		return fmt.Errorf("annotations are %v", cached.Annotations)
	})
	reconcileSteadily(t, op, roots[0], w)

	if err := c.Get(t.Context(), key, service); err != nil {
		t.Fatal(err)
	}
	var ports []string
	for _, port := range service.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%s/%s", port.Name, port.Protocol))
	}
	if got, want := fmt.Sprint(ports), "[extra/TCP http/TCP dns/UDP]"; got != want {
		t.Errorf("the ports are %s, want %s", got, want)
	}
}

func mergePort(ports []corev1.ServicePort, port corev1.ServicePort) []corev1.ServicePort {
	for i := range ports {
		if ports[i].Name == port.Name {
			port.NodePort = ports[i].NodePort
			ports[i] = port
			return ports
		}
	}
	return append(ports, port)
}

// A merge that lets current share what desired refers to, and encoding that fills in what a value keeps to itself, must not
// make what is desired look new in each request (invariant L1).
func TestL1WhatIsDesiredStaysTheSameAfterAnyMerge(t *testing.T) {
	t.Parallel()
	child := deploymentChild()
	plain := child.DesiredChild
	child.DesiredChild = func(ctx context.Context, w *resources.Widget) (*appsv1.Deployment, error) {
		desired, err := plain(ctx, w)
		desired.Labels = map[string]string{"app": w.Name}
		desired.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(1<<30, resource.BinarySI)},
		}}}
		return desired, err
	}
	child.MergeBeforeUpdate = func(current, desired *appsv1.Deployment) {
		current.Labels = desired.Labels
		current.Labels["managed-by"] = "test"
		current.Spec = desired.Spec
	}
	c := live(t)
	op, roots := startOperator(t, treeOf(child))
	w := op.createWidget(t, c)
	eventually(t, "not ready", func(ctx context.Context) error { return isReady(ctx, c, w) })
	reconcileSteadily(t, op, roots[0], w)

	eventually(t, "not changed", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		w.Spec.Fields["image"] = "example.com/app:2"
		return c.Update(ctx, w)
	})
	eventually(t, "the image does not follow", func(ctx context.Context) error {
		deployment := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), deployment); err != nil {
			return err
		}
		if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "example.com/app:2" {
			return fmt.Errorf("image is %s", image)
		}
		return nil
	})
	reconcileSteadily(t, op, roots[0], w)
}

// The resource does not own its child: it is enqueued when an object that has the child's name goes, and when the child
// itself goes, which a finalizer of another controller delays.
func TestAnUnownedChildEnqueuesItsResource(t *testing.T) {
	t.Parallel()
	child := configMapChild("a")
	child.Finalizer = ours
	child.ListOptions = func(_ context.Context, w *resources.Widget) []client.ListOption {
		return []client.ListOption{client.InNamespace(w.Namespace)}
	}
	child.ReflectChildStatusOnParent = func(_ context.Context, w *resources.Widget, _ *corev1.ConfigMap, err error) {
		w.Status.AddField("rejected", fmt.Sprint(err != nil))
	}
	c := live(t)
	op, _ := startOperator(t, treeOf(child))
	blocker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "widget-a"}}
	if err := c.Create(t.Context(), blocker); err != nil {
		t.Fatal(err)
	}
	w := op.createWidget(t, c)
	eventually(t, "the name of the child is free", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil || w.Status.Fields["rejected"] == "true" {
			return err
		}
		return fmt.Errorf("the status has %v", w.Status.Fields)
	})
	if err := c.Delete(t.Context(), blocker); err != nil {
		t.Fatal(err)
	}

	held := &corev1.ConfigMap{}
	eventually(t, "the child is not created", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(blocker), held); err != nil {
			return err
		}
		controllerutil.AddFinalizer(held, theirs)
		return c.Update(ctx, held)
	})
	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child is not deleted", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(held), held); err != nil || held.DeletionTimestamp != nil {
			return err
		}
		return errors.New("it is not terminating")
	})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || !controllerutil.ContainsFinalizer(w, ours) {
		t.Fatalf("the widget has the finalizers %v (%v), want it to wait with %s", w.Finalizers, err, ours)
	}
	controllerutil.RemoveFinalizer(held, theirs)
	if err := c.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the finalizer stays", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); !apierrs.IsNotFound(err) {
			return fmt.Errorf("the widget is there: %w", err)
		}
		return nil
	})
}

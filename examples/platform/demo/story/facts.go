package story

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// check is what a fact does to find out whether it holds.
type check = func(ctx context.Context, w *World) error

// The objects of the platform, by what they are to the story. They have a kind and a name, and nothing else.
func theType() client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: controller.DashboardCRDName}}
}

func configMap(name string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func settings() client.Object  { return configMap(controller.SettingsName(name)) }
func migration() client.Object { return configMap(controller.MigrationName(name)) }
func portal() client.Object    { return configMap(controller.PortalName(name)) }

func viewer() client.Object {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: controller.ViewerName(name)}}
}

func viewerRole() client.Object {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: controller.ViewerRoleName(namespace, name)}}
}

func viewerBinding() client.Object {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: controller.ViewerRoleName(namespace, name)}}
}

func overview() client.Object {
	return controller.NewDashboard(namespace, controller.OverviewName(name), "")
}

// sales is the dashboard of somebody else.
func sales() client.Object { return controller.NewDashboard(namespace, "sales", "Sales of this week") }

func areThere(objects ...client.Object) check {
	return func(ctx context.Context, w *World) error {
		for _, obj := range objects {
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object)); err != nil {
				return err
			}
		}
		return nil
	}
}

func areGone(objects ...client.Object) check {
	return func(ctx context.Context, w *World) error {
		for _, obj := range objects {
			err := w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
			if err == nil {
				return fmt.Errorf("there is still the %T %s", obj, obj.GetName())
			}
			if !storytelling.IsGone(err) {
				return err
			}
		}
		return nil
	}
}

// isNew holds when the object is there, and is not the one that was remembered.
func isNew(obj client.Object) check {
	return func(ctx context.Context, w *World) error {
		if len(w.before) == 0 {
			return errNothing
		}
		now := obj.DeepCopyObject().(client.Object)
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil {
			return err
		}
		if slices.ContainsFunc(w.before, func(old client.Object) bool { return old.GetUID() == now.GetUID() }) {
			return errors.New("it is the old one")
		}
		return nil
	}
}

// remember reads objects, for facts that are about what became of them.
func (w *World) remember(ctx context.Context, objects ...client.Object) error {
	w.before = nil
	for _, obj := range objects {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		w.before = append(w.before, obj)
	}
	return nil
}

var errNothing = errors.New("nothing was remembered")

// areUntouched holds when the objects that were remembered are as they were, and there to stay.
func areUntouched(ctx context.Context, w *World) error {
	if len(w.before) == 0 {
		return errNothing
	}
	for _, obj := range w.before {
		if err := w.IsUntouched(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

func settingsSay(key, value string) check {
	return func(ctx context.Context, w *World) error {
		var found corev1.ConfigMap
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(settings()), &found); err != nil {
			return err
		}
		if found.Data[key] != value {
			return fmt.Errorf("the %s in the settings is %q, not %q", key, found.Data[key], value)
		}
		return nil
	}
}

func (w *World) platform(ctx context.Context) (*v1alpha1.Platform, error) {
	var platform v1alpha1.Platform
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &platform)
	return &platform, err
}

// reports holds when the condition was observed at the current generation, is as given, and its message has all of
// these parts. A step can show the message then, see said.
func reports(condition string, status metav1.ConditionStatus, reason string, parts ...string) check {
	return func(ctx context.Context, w *World) error {
		platform, err := w.platform(ctx)
		if err != nil {
			return err
		}
		c := platform.Status.GetCondition(condition)
		switch {
		case c == nil:
			return fmt.Errorf("there is no condition %s", condition)
		case c.ObservedGeneration != platform.Generation:
			return fmt.Errorf("the platform is at generation %d, and %s was observed at %d", platform.Generation, condition, c.ObservedGeneration)
		case c.Status != status || c.Reason != reason:
			return fmt.Errorf("%s is %s, for the reason %s: %s", condition, c.Status, c.Reason, c.Message)
		}
		for _, part := range parts {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("%s says %q, and nothing of %q", condition, c.Message, part)
			}
		}
		w.said = fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		return nil
	}
}

// said returns what the condition says that the fact is about.
func said(w *World) string { return w.said }

// isReady holds when that release is there, and all of its objects, of which there are so many.
func isReady(version string, objects int) check {
	return func(ctx context.Context, w *World) error {
		if err := reports("Ready", metav1.ConditionTrue, "Ready")(ctx, w); err != nil {
			return err
		}
		platform, err := w.platform(ctx)
		if err != nil {
			return err
		}
		status := platform.Status
		switch {
		case platform.Spec.Version != version:
			return fmt.Errorf("release %s is asked for", platform.Spec.Version)
		case status.State != apis.ComponentReady || status.AppliedGeneration != platform.Generation:
			return fmt.Errorf("it is %s, at generation %d of %d", status.State, status.AppliedGeneration, platform.Generation)
		case len(status.Inventory) != objects:
			return fmt.Errorf("there are records of %d objects, not %d", len(status.Inventory), objects)
		}
		return nil
	}
}

package story

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/config"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// The platform of the story, and the namespace that it is in.
const (
	namespace = "demo-observability"
	name      = "demo"
)

// install creates what has to be there before the operator starts.
func (w *World) install(ctx context.Context) error {
	crd, err := config.CRD()
	if err != nil {
		return err
	}
	role, err := config.Role()
	if err != nil {
		return err
	}
	if err := w.mustBeMissing(ctx); err != nil {
		return err
	}
	if err := w.Create(ctx, crd); err != nil {
		return fmt.Errorf("unable to install the definition of the Platform: %w", err)
	}
	if err := w.Grant(ctx, role, OperatorUser); err != nil {
		return err
	}
	home := &corev1.Namespace{}
	home.Name = namespace
	if err := w.Create(ctx, home); err != nil {
		return fmt.Errorf("unable to create the namespace of the platform: %w", err)
	}
	err = storytelling.Eventually(ctx, storytelling.Patience, func(ctx context.Context) error {
		return w.May(ctx, true, OperatorUser, "list", v1alpha1.GroupVersion.Group, "platforms", storytelling.Everywhere)
	})
	if err != nil {
		return fmt.Errorf("the role is not in force: %w", err)
	}
	err = storytelling.Eventually(ctx, storytelling.Patience, func(ctx context.Context) error {
		return w.Client.List(ctx, &v1alpha1.PlatformList{})
	})
	if err != nil {
		return fmt.Errorf("the definition of the Platform is not served: %w", err)
	}
	return nil
}

// mustBeMissing returns an error if the cluster has something that the platform would adopt, and take along when it
// goes. In the namespace there is nothing, since it is new.
func (w *World) mustBeMissing(ctx context.Context) error {
	objects, err := everything()
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if obj.GetNamespace() != "" {
			continue
		}
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil {
			return fmt.Errorf("%T %s already exists: the story would change and delete it, so it is not told in this cluster", obj, obj.GetName())
		}
		if !storytelling.IsGone(err) {
			return err
		}
	}
	return nil
}

// everything returns the objects of the release that has the most of them.
func everything() ([]client.Object, error) {
	return controller.Objects(namespace, name, &v1alpha1.PlatformSpec{Version: controller.Version1})
}

// removePlatform deletes the platform while the operator can still clean up after it. If it cannot (it has failed, or
// was not started) that is done here.
func (w *World) removePlatform(ctx context.Context) error {
	var platform client.Object
	var errs []error
	for _, obj := range slices.Backward(w.Created()) {
		switch obj.(type) {
		case *v1alpha1.Platform:
			platform = obj
		case *corev1.Namespace:
			continue
		}
		if obj.GetNamespace() == namespace {
			errs = append(errs, storytelling.Eventually(ctx, storytelling.Patience, func(ctx context.Context) error { return w.Delete(ctx, obj) }))
		}
	}
	if platform == nil {
		return errors.Join(errs...)
	}
	err := storytelling.Eventually(ctx, storytelling.Patience, func(ctx context.Context) error {
		if err := w.operator.Failure(); err != nil {
			return errors.Join(w.DropFinalizers(ctx, platform), w.removeOrphans(ctx))
		}
		return w.Gone(ctx, platform)
	})
	if err != nil {
		errs = append(errs, err, w.DropFinalizers(ctx, platform), w.removeOrphans(ctx))
	}
	return errors.Join(errs...)
}

// removeOrphans deletes the objects in the cluster that platforms have, and nobody cleans up. Those in the namespace go
// with it.
func (w *World) removeOrphans(ctx context.Context) error {
	objects, err := everything()
	if err != nil {
		return err
	}
	var errs []error
	for _, obj := range objects {
		if obj.GetNamespace() != "" {
			continue
		}
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil && obj.GetLabels()[controller.Prefix+"/"+component.LabelOwnerID] != "" {
			err = w.Delete(ctx, obj)
		}
		if !storytelling.IsGone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

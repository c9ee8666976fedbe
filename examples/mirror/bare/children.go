package bare

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
)

// notOursError says that an object has the name of a child but belongs to somebody else.
type notOursError struct {
	kind, name, owner string
}

func (e *notOursError) Error() string {
	return fmt.Sprintf("%s %q already exists and belongs to %s", e.kind, e.name, e.owner)
}

// apply creates or updates a child, unless its name is taken. The condition of the part shows an error.
func (r *Reconciler) apply(
	ctx context.Context, mirror *v1.Mirror, part string, child client.Object, mutate func(),
) error {
	gvk, err := apiutil.GVKForObject(child, r.Scheme())
	if err != nil {
		return err
	}
	operation, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		if child.GetUID() != "" && !metav1.IsControlledBy(child, mirror) {
			theirs := &notOursError{kind: gvk.Kind, name: child.GetName(), owner: "nobody"}
			if controller := metav1.GetControllerOf(child); controller != nil {
				theirs.owner = fmt.Sprintf("%s %q", controller.Kind, controller.Name)
			}
			return theirs
		}
		current := child.GetLabels()
		merge(&current, labels(mirror))
		child.SetLabels(current)
		mutate()
		return controllerutil.SetControllerReference(mirror, child, r.Scheme())
	})
	if err != nil {
		return setFailed(mirror, part, fmt.Errorf("unable to apply %s %q: %w", gvk.Kind, child.GetName(), err))
	}
	switch operation {
	case controllerutil.OperationResultCreated:
		r.event(mirror, child, "Created", gvk.Kind)
	case controllerutil.OperationResultUpdated:
		r.event(mirror, child, "Updated", gvk.Kind)
	}
	return nil
}

// remove deletes a child, unless there is none or it is not the mirror's.
func (r *Reconciler) remove(ctx context.Context, mirror *v1.Mirror, part string, child client.Object) error {
	gvk, err := apiutil.GVKForObject(child, r.Scheme())
	if err != nil {
		return err
	}
	err = r.Get(ctx, client.ObjectKeyFromObject(child), child)
	if err == nil && metav1.IsControlledBy(child, mirror) && child.GetDeletionTimestamp() == nil {
		if err = r.Delete(ctx, child, client.Preconditions{UID: new(child.GetUID())}); err == nil {
			r.event(mirror, child, "Deleted", gvk.Kind)
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return setFailed(mirror, part, fmt.Errorf("unable to delete %s %q: %w", gvk.Kind, child.GetName(), err))
	}
	return nil
}

func (r *Reconciler) event(mirror *v1.Mirror, child client.Object, reason, kind string) {
	r.Recorder.Eventf(mirror, child, corev1.EventTypeNormal, reason, reason, "%s %s %q", reason, kind, child.GetName())
}

func childMeta(mirror *v1.Mirror, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: mirror.Namespace, Name: name}
}

func labels(mirror *v1.Mirror) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "mirror", "app.kubernetes.io/instance": mirror.Name}
}

// merge adds what is desired to labels or annotations, and leaves those of others.
func merge(current *map[string]string, desired map[string]string) {
	if *current == nil {
		*current = map[string]string{}
	}
	for key, value := range desired {
		(*current)[key] = value
	}
}

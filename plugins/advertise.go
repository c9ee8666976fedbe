package plugins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/plugins/internal/answer"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Advertisement says where a host shows which capabilities there are: as objects of the kind Capability, which the file
// config/plugins.espalier.dev_capabilities.yaml defines, one for each type. The operator needs the rights to get, list,
// create, update and delete them:
//
//	+kubebuilder:rbac:groups=plugins.espalier.dev,resources=capabilities,verbs=get;list;create;update;delete
type Advertisement struct {
	// Client writes the objects. Required.
	Client client.Client
	// Operator is the name of the operator, which no other one in the cluster has. It is part of the names of the
	// objects, and the value of their label plugins.espalier.dev/operator. Those that have the label, and whose
	// capability is not known any more, are deleted. Required.
	Operator string
}

// capabilityKind is the kind of the objects.
var capabilityKind = schema.GroupVersionKind{Group: "plugins.espalier.dev", Version: "v1alpha1", Kind: "Capability"}

// operatorLabel is the key of the label that says whose an object is.
const operatorLabel = "plugins.espalier.dev/operator"

const (
	// settleTime is how long changes are waited for, so that several are written at once.
	settleTime = 100 * time.Millisecond
	// advertiseRetry is when the objects are written again after an error.
	advertiseRetry = 10 * time.Second
)

func (a *Advertisement) check() error {
	if a.Client == nil || a.Operator == "" {
		return errors.New("the field Advertise of a Host must have a Client and an Operator")
	}
	return nil
}

// run writes the objects whenever what is known changes, until the context ends.
func (a *Advertisement) run(ctx context.Context, h *Host) {
	changed := make(chan struct{}, 1)
	stop := h.registry.watch(func(string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	last := ""
	for again := time.After(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			again = time.After(settleTime)
			continue
		case <-again:
		}
		again = nil
		known, settled := h.registry.known()
		if !settled {
			continue
		}
		err := a.write(ctx, known)
		if err == nil || ctx.Err() != nil {
			last = ""
			continue
		}
		if text := message.Stable(err.Error()); text != last {
			h.log.Error(err, "the capabilities are not shown as they are")
			last = text
		}
		again = time.After(advertiseRetry)
	}
}

// write makes the objects agree with what is known.
func (a *Advertisement) write(ctx context.Context, known []answer.Provided) error {
	wanted := a.objects(known)
	there := &unstructured.UnstructuredList{}
	there.SetGroupVersionKind(capabilityKind.GroupVersion().WithKind(capabilityKind.Kind + "List"))
	if err := a.Client.List(ctx, there, client.MatchingLabels{operatorLabel: a.Operator}); err != nil {
		return fmt.Errorf("unable to list the objects of the kind Capability: %w", err)
	}
	var errs []error
	for i := range there.Items {
		errs = append(errs, a.settle(ctx, &there.Items[i], wanted[there.Items[i].GetName()]))
		delete(wanted, there.Items[i].GetName())
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := a.Client.Create(ctx, wanted[name]); err != nil {
			errs = append(errs, fmt.Errorf("unable to create the Capability %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// settle makes an object agree with the one that is wanted, or deletes it if that is nil.
func (a *Advertisement) settle(ctx context.Context, object, wanted *unstructured.Unstructured) error {
	if wanted == nil {
		if err := a.Client.Delete(ctx, object); err != nil && !apierrs.IsNotFound(err) {
			return fmt.Errorf("unable to delete the Capability %s: %w", object.GetName(), err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(object.Object["spec"], wanted.Object["spec"]) {
		return nil
	}
	object.Object["spec"] = wanted.Object["spec"]
	if err := a.Client.Update(ctx, object); err != nil {
		return fmt.Errorf("unable to update the Capability %s: %w", object.GetName(), err)
	}
	return nil
}

// objects returns the objects for what is known, by their names. Versions that several plugins have are given once.
func (a *Advertisement) objects(known []answer.Provided) map[string]*unstructured.Unstructured {
	objects := map[string]*unstructured.Unstructured{}
	versions := map[string][]string{}
	for _, provided := range known {
		for _, t := range provided.Types {
			category, name := strings.ToLower(provided.Category), strings.ToLower(t.Name)
			called := strings.ToLower(a.Operator) + "." + category + "." + name
			versions[called] = append(versions[called], t.Versions...)
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"category": category, "type": name, "operator": a.Operator,
			}}}
			object.SetGroupVersionKind(capabilityKind)
			object.SetName(called)
			object.SetLabels(map[string]string{operatorLabel: a.Operator})
			objects[called] = object
		}
	}
	for called, all := range versions {
		if all = answer.Sorted(all); len(all) > 0 {
			given := make([]any, len(all))
			for i, version := range all {
				given[i] = version
			}
			objects[called].Object["spec"].(map[string]any)["versions"] = given
		}
	}
	return objects
}

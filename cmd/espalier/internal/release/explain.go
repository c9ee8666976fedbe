package release

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/definitions"
	"github.com/espalier-dev/espalier/internal/ownership"
)

// Explain says in lines whose an object is, by which marks, and what its deletion waits for, or would.
func (c *Cluster) Explain(ctx context.Context, object *unstructured.Unstructured, now time.Time) ([]string, error) {
	name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	lines := []string{fmt.Sprintf("%s %s: it %s", object.GetKind(), name, cmp.Or(ownership.ClaimOf(object), unowned))}
	for _, key := range slices.Sorted(maps.Keys(object.GetAnnotations())) {
		prefix, isOwner := strings.CutSuffix(key, "/"+generator.AnnotationOwnerID)
		owner := object.GetAnnotations()[key]
		if !isOwner || !ownership.IsOwner(owner) {
			continue
		}
		label := object.GetLabels()[prefix+"/"+generator.LabelOwnerID]
		match := "the label agrees"
		if label != engine.OwnerID(owner) {
			match = "the label does not agree, so others have changed it, or have copied the annotation"
		}
		recorded, err := c.recordIn(ctx, owner, object)
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("mark: %s: %s; %s", key, owner, match), recorded)
	}
	for _, owner := range object.GetOwnerReferences() {
		line := fmt.Sprintf("owner reference: %s %s", owner.Kind, owner.Name)
		if owner.Controller != nil && *owner.Controller {
			line += ", its controller"
		}
		lines = append(lines, line)
	}
	managers := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		managers[strings.TrimSpace(fmt.Sprintf("%s (%s) %s", entry.Manager, entry.Operation, entry.Subresource))] = true
	}
	if len(managers) > 0 {
		lines = append(lines, "written by: "+strings.Join(slices.Sorted(maps.Keys(managers)), ", "))
	}
	blockers, err := c.blockersOf(ctx, object, now)
	return append(lines, blockers...), err
}

const unowned = "belongs to nobody that is known"

// recordIn says what the inventory of an owner has of an object.
func (c *Cluster) recordIn(ctx context.Context, owner string, object *unstructured.Unstructured) (string, error) {
	// What follows is the key of the item that the component is of.
	owner, _, _ = strings.Cut(owner, "[")
	parts := strings.Split(owner, "/")
	if len(parts) == 5 {
		return "the owner is in another cluster", nil
	}
	of := ownership.Name(owner)
	kind := schema.ParseGroupKind(parts[0])
	var found *Component
	var err error
	if key := (client.ObjectKey{Namespace: parts[1], Name: parts[2]}); kind == Kind.GroupKind() {
		found, err = c.Release(ctx, key.Namespace, key.Name)
	} else {
		var gvk schema.GroupVersionKind
		if gvk, err = c.KindFor(kind.Kind + "." + kind.Group); err == nil {
			found, err = c.Resource(ctx, gvk, key)
		}
	}
	switch {
	case apierrs.IsNotFound(err) && kind == Kind.GroupKind():
		return fmt.Sprintf("%s does not exist any more: recover %s makes it again from the marks", of, parts[2]), nil
	case apierrs.IsNotFound(err):
		return of + " does not exist any more", nil
	case apierrs.IsForbidden(err):
		return of + " may not be read", nil
	case err != nil:
		return of + ": " + err.Error(), nil
	case string(found.Object.GetUID()) != parts[3]:
		return "the owner is a former " + of + ", which is gone", nil
	case found.Status.InventoryKind != "":
		return fmt.Sprintf("the inventory of %s is in objects of the kind %s", of, found.Status.InventoryKind), nil
	}
	key := keyOf(object)
	for i := range found.Status.Inventory {
		r := &found.Status.Inventory[i]
		if recordKey(r) == key {
			line := fmt.Sprintf("the inventory of %s has it: wave %d, %s %s", of, r.ApplyOrder, r.Phase, r.Message)
			return strings.TrimSpace(line), nil
		}
	}
	return "the inventory of " + of + " does not have it", nil
}

// maxNamed is how many objects that block a deletion are named.
const maxNamed = 5

// blockersOf says what the deletion of an object waits for, or would wait for.
func (c *Cluster) blockersOf(ctx context.Context, object *unstructured.Unstructured, now time.Time) ([]string, error) {
	var lines []string
	state := "deletion: it is not being deleted"
	if deleted := object.GetDeletionTimestamp(); deleted != nil {
		state = "deletion: it is being deleted since " + duration.HumanDuration(now.Sub(deleted.Time))
	}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		state += "; it stays until others remove the finalizers " + strings.Join(finalizers, ", ")
	}
	lines = append(lines, state)
	for _, condition := range conditionsOf(object) {
		// These say what of a namespace is left.
		text, _ := condition["message"].(string)
		if condition["status"] == "True" && object.GetKind() == "Namespace" {
			lines = append(lines, "deletion: "+text)
		}
	}
	kind, defines := definitions.Defines(object)
	if !defines {
		return lines, nil
	}
	instances, err := c.listAll(ctx, kind, nil)
	if err != nil {
		return append(lines, fmt.Sprintf("deletion: the instances cannot be listed: %v", err)), nil
	}
	marks := map[string]int{}
	for i := range instances {
		marks["deletion: instances would go, of which one "+cmp.Or(ownership.ClaimOf(&instances[i]), unowned)]++
	}
	named := slices.Sorted(maps.Keys(marks))
	for _, line := range named[:min(len(named), maxNamed)] {
		lines = append(lines, fmt.Sprintf("%s (%d such)", line, marks[line]))
	}
	return lines, nil
}

func conditionsOf(object *unstructured.Unstructured) (conditions []map[string]any) {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok {
			conditions = append(conditions, fields)
		}
	}
	return conditions
}

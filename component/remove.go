package component

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/ownership"
	"github.com/espalier-dev/espalier/internal/served"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remove deletes the component, or its objects if it is withdrawn.
func (r *request[T]) remove(ctx context.Context) error {
	// Who has mended what blocks annotates the resource, and need not wait for the next attempt.
	if annotations := r.resource.GetAnnotations(); !r.dryRun && !maps.Equal(annotations, r.state.annotations) {
		r.state.annotations = maps.Clone(annotations)
		r.state.engine.RetryFences()
	}
	if r.facts.deleting && !r.dryRun {
		if err := r.recordLeftovers(ctx); err != nil {
			return err
		}
	}
	var namespaceGoes func(context.Context, string) (bool, error)
	if r.facts.deleting {
		namespaceGoes = r.namespacesThatGo()
	}
	report, err := r.runEngine(ctx, engine.Task{
		Deleting: true, NamespaceGoes: namespaceGoes,
		Orphan:   ownership.Orphans(r.resource),
		Patterns: r.patterns(),
		DryRun:   r.dryRun,
		Now:      r.now,
		BeforeDelete: func(ctx context.Context) error {
			return r.hooks(ctx, "pre-delete", r.Hooks.PreDelete)
		},
	})
	if err := r.assess(report, err); err != nil || !r.facts.done || r.dryRun {
		return err
	}
	if r.facts.withdrawing {
		err := r.release(ctx)
		r.facts.withdrawn = err == nil
		return err
	}
	return r.finish(ctx)
}

func (r *request[T]) patterns() []plan.Pattern {
	patterns := make([]plan.Pattern, 0, len(r.configuration.AdditionalManagedTypes))
	for _, t := range r.configuration.AdditionalManagedTypes {
		patterns = append(patterns, plan.Pattern{Group: t.Group, Kind: t.Kind})
	}
	return patterns
}

// finish lets the resource go, once its objects are gone. It is then not touched any more.
func (r *request[T]) finish(ctx context.Context) error {
	err := r.release(ctx)
	r.finished = err == nil
	return err
}

// release ends what the component has of the resource, once its objects are gone.
func (r *request[T]) release(ctx context.Context) error {
	if err := r.hooks(ctx, "post-delete", r.Hooks.PostDelete); err != nil {
		return err
	}
	if err := r.store.Remove(ctx); err != nil {
		return fmt.Errorf("unable to remove the inventory: %w", err)
	}
	if err := reconcilers.ClearFinalizer(ctx, r.resource, r.Finalizer); err != nil {
		return err
	}
	r.source.setCoalesceDelay(r.owner.Watcher, 0)
	return r.state.Close()
}

// recordLeftovers records the objects with our marks if the inventory has no record, as after the status was emptied.
// They may have been adopted, and count as such if their policy allowed it. Only the kinds of Dependents, and those
// that are desired, are known and looked for.
func (r *request[T]) recordLeftovers(ctx context.Context) error {
	known, err := r.store.Load(ctx)
	if err != nil {
		return fmt.Errorf("unable to load the inventory: %w", err)
	}
	if len(known) > 0 {
		return nil
	}
	log := logr.FromContextOrDiscard(ctx)
	namespace, kinds, err := r.knownKinds(ctx)
	if err != nil {
		log.Info("The inventory is empty, and what is desired is not known: other objects than those of "+
			"Dependents are not looked for", "reason", err.Error())
	}
	var found []client.Object
	for _, kind := range slices.Compact(slices.SortedFunc(slices.Values(kinds), compareKinds)) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		label := client.MatchingLabels{r.Prefix + "/" + generator.LabelOwnerID: r.owner.OwnerID}
		switch err := r.target.client.List(ctx, list, label); {
		case served.IsNotFound(err), served.IsNotServed(err):
		case apierrs.IsForbidden(err), apierrs.IsMethodNotSupported(err):
			log.Info("The inventory is empty, and objects of a kind cannot be looked for", "kind", kind.Kind,
				"reason", err.Error())
		case err != nil:
			return fmt.Errorf("unable to look for each %s that the inventory does not have: %w", kind.Kind, err)
		}
		for i := range list.Items {
			// Controllers copy the label to what they make of our objects.
			annotations := list.Items[i].GetAnnotations()
			if annotations[r.Prefix+"/"+generator.AnnotationOwnerID] == r.owner.Owner {
				found = append(found, &list.Items[i])
			}
		}
	}
	objects, err := manifest.Prepare(found, r.manifestOptions(namespace), nil)
	if err != nil || len(objects) == 0 {
		return err
	}
	records := make([]apis.InventoryRecord, len(objects))
	for i := range objects {
		records[i] = plan.RecordOf(&objects[i].Desired)
	}
	if _, err := r.store.Save(ctx, records); err != nil {
		return fmt.Errorf("unable to record objects that the inventory does not have: %w", err)
	}
	return nil
}

func compareKinds(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) }

// knownKinds returns the kinds of Dependents, and those of the desired objects with their namespace. The error says why
// these are not known.
func (r *request[T]) knownKinds(ctx context.Context) (
	namespace string, kinds []schema.GroupVersionKind, err error,
) {
	defer reconcilers.Recover(ctx, &err)
	for _, dependent := range r.Dependents {
		if kind, err := r.config.GroupVersionKindFor(dependent); err == nil {
			kinds = append(kinds, kind)
		}
	}
	// As if the resource were not deleted. What the request knows of it stays.
	alive := *r
	alive.facts = facts{}
	if alive.refers {
		if err := alive.loadReferences(ctx); err != nil {
			return namespace, kinds, err
		}
	}
	parameters, err := alive.parameters(ctx)
	if err != nil {
		return namespace, kinds, err
	}
	input, _, err := alive.inputs(ctx)
	if err != nil {
		return namespace, kinds, err
	}
	namespace = input.namespace
	generated, err := alive.generate(ctx, parameters, input.generatorInput)
	if err != nil {
		return namespace, kinds, err
	}
	objects, err := manifest.Prepare(generated, alive.manifestOptions(namespace), nil)
	for i := range objects {
		desired := &objects[i].Desired
		kinds = append(kinds, desired.GroupKind().WithVersion(desired.Version))
	}
	return namespace, kinds, err
}

package component

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// generatorInput is what the output of a deterministic generator depends on. The digest covers the parameters.
type generatorInput struct {
	namespace, name, digest string
	revision, generation    int64
	// reported is what the generator reports as a further input.
	reported string
}

// taskInput is what a task of the engine is made from, besides what is generated.
type taskInput struct {
	generatorInput
	// configuration is a digest of the configuration.
	configuration uint64
	supervision   reconcilers.Supervision
}

// inputs returns what the request is about. known is false if the configuration has no digest.
func (r *request[T]) inputs(ctx context.Context) (input taskInput, known bool, err error) {
	configuration := r.configuration
	// It says where the component is deployed. What is remembered is forgotten when that changes.
	configuration.KubeConfig = nil
	sum, known := digest.Of(&configuration)
	input = taskInput{configuration: sum, supervision: r.supervision, generatorInput: generatorInput{
		namespace:  cmp.Or(strings.TrimSpace(r.configuration.Namespace), r.resource.GetNamespace()),
		name:       cmp.Or(strings.TrimSpace(r.configuration.Name), r.resource.GetName()),
		digest:     r.digest,
		revision:   r.revision,
		generation: r.resource.GetGeneration(),
	}}
	if !generator.ReportsInputs(r.Generator) {
		return input, known, nil
	}
	reporter := r.Generator.(generator.InputReporter)
	if input.reported, err = reporter.Inputs(r.generationContext(ctx), input.namespace, input.name); err != nil {
		err = fmt.Errorf("unable to generate the objects: %w", err)
	}
	return input, known, err
}

// rollOut has the engine roll out what is desired. It does not if the last request left nothing to do and nothing has
// changed since.
func (r *request[T]) rollOut(ctx context.Context, parameters generator.Unstructurable) error {
	input, known, err := r.inputs(ctx)
	if err != nil {
		return err
	}
	var unchanged *engine.Report
	if known && !r.dryRun && r.state.taskInput == input {
		unchanged = r.engine().Unchanged(r.now)
	}
	if unchanged != nil && generator.IsDeterministic(r.Generator) {
		return r.assess(unchanged, nil)
	}
	r.state.taskInput = taskInput{}
	desired, err := r.desired(ctx, parameters, input, known, unchanged != nil)
	if err != nil {
		return err
	}
	r.keepRevision()
	r.facts.varies = r.state.variation.message
	if known {
		r.state.taskInput = input
	}
	if desired == nil {
		return r.assess(unchanged, nil)
	}
	task := r.task(*desired)
	task.BeforeCreate = r.isCurrent
	if r.facts.suspends {
		if err := r.suspend(ctx, &task); err != nil {
			r.state.taskInput = taskInput{}
			return err
		}
	}
	report, err := r.runEngine(ctx, task)
	err = r.assess(report, err)
	if r.facts.done || r.facts.empty != "" {
		// They can be generated again. All that is needed until then is in the cache.
		r.state.generated = nil
	}
	return err
}

// desired returns the objects that are desired. It returns nil if unchanged is true and they are as in the last
// request.
// A deterministic generator is not called again for the same input, unless something has to be written and the objects
// are not in memory any more. If it returns other objects again and again, it is not called for a while either.
func (r *request[T]) desired(
	ctx context.Context, parameters generator.Unstructurable, task taskInput, known, unchanged bool,
) (*[]manifest.Object, error) {
	input := task.generatorInput
	cache, options := &r.state.engine.Manifests, r.manifestOptions(input.namespace)
	deterministic := generator.IsDeterministic(r.Generator)
	if r.state.variation.last != nil {
		if held := r.held(task); held != nil && unchanged {
			return nil, nil
		} else if held != nil {
			objects, err := manifest.Prepare(held, options, cache)
			return &objects, err
		}
	}
	if deterministic && r.state.preparedFor == input && !r.state.keeps(input) {
		generate := func() ([]client.Object, error) { return r.generate(ctx, parameters, input) }
		objects, ok, err := manifest.PrepareAgain(generate, options, cache)
		if ok || err != nil {
			return &objects, err
		}
	}
	generated, err := r.generate(ctx, parameters, input)
	if err != nil {
		return nil, err
	}
	if unchanged && cache.Unchanged(generated, &options) {
		if r.state.variation.last != nil {
			r.state.variation.expire(r.now)
		}
		return nil, nil
	}
	before := cache.Snapshot()
	objects, err := manifest.Prepare(generated, options, cache)
	if err != nil {
		r.state.generated, r.state.preparedFor = nil, generatorInput{}
		return &objects, err
	}
	if deterministic {
		r.state.preparedFor = input
	}
	if known && !r.dryRun && (!cache.Same() || r.state.variation.last != nil) {
		r.observeVariation(task, before, generated, objects)
	}
	return &objects, nil
}

// generate calls the generator, unless it is deterministic and the objects are in memory.
func (r *request[T]) generate(
	ctx context.Context, parameters generator.Unstructurable, input generatorInput,
) ([]client.Object, error) {
	if r.state.keeps(input) {
		return r.state.generated, nil
	}
	r.state.generated = nil
	generated, err := r.Generator.Generate(r.generationContext(ctx), input.namespace, input.name, parameters)
	if err != nil {
		return nil, fmt.Errorf("unable to generate the objects: %w", err)
	}
	if generator.IsDeterministic(r.Generator) {
		// Whoever uses them copies what it changes.
		r.state.generated, r.state.generatedFor = generated, input
	}
	return generated, nil
}

// keeps reports whether what was generated for input is in memory.
func (s *resourceState) keeps(input generatorInput) bool {
	return s.generated != nil && s.generatedFor == input
}

// task is what the engine has to do about objects.
func (r *request[T]) task(objects []manifest.Object) engine.Task {
	task := engine.Task{
		Objects:    objects,
		AllowEmpty: r.AllowEmpty || r.allowsEmpty(),
		Patterns:   r.patterns(),
		DryRun:     r.dryRun,
		Previews:   r.previews,
		Now:        r.now,
	}
	for i := range objects {
		switch key := objects[i].Desired.Key; objects[i].Settings.Presence {
		case generator.PresenceAbsent:
			leave(&task, key, apis.DeleteDelete)
		case generator.PresenceOrphaned:
			leave(&task, key, apis.DeleteOrphan)
		default:
		}
	}
	if r.configuration.MissingNamespacesPolicy != apis.MissingNamespacesDoNotCreate {
		task.Namespaces = manifest.MissingNamespaces(objects)
		if r.target.server == "" {
			// The resource is in this namespace, so it exists.
			own := func(name string) bool { return name == r.resource.GetNamespace() }
			task.Namespaces = slices.DeleteFunc(task.Namespaces, own)
		}
	}
	return task
}

// leave says what becomes of an object that is not desired.
func leave(task *engine.Task, key plan.Key, policy apis.DeletePolicy) {
	if task.Leaving == nil {
		task.Leaving = map[plan.Key]apis.DeletePolicy{}
	}
	task.Leaving[key] = policy
}

func (r *request[T]) manifestOptions(namespace string) manifest.Options {
	return manifest.Options{
		Prefix:          r.Prefix,
		Namespace:       namespace,
		ComponentDigest: r.digest,
		AdoptionPolicy:  r.configuration.AdoptionPolicy,
		UpdatePolicy:    r.configuration.UpdatePolicy,
		DeletePolicy:    r.configuration.DeletePolicy,
		PrunePolicy:     r.configuration.PrunePolicy,
		ReapplyInterval: r.configuration.ReapplyInterval,
		Scheme:          r.config.Scheme(),
		GeneratorScheme: r.generatorScheme,
		Namespaced:      r.target.namespaced,
	}
}

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
func (j *job[T]) inputs(ctx context.Context) (input taskInput, known bool, err error) {
	configuration := j.configuration
	// It says where the component is deployed. What is remembered is forgotten when that changes.
	configuration.KubeConfig = nil
	sum, known := digest.Of(&configuration)
	input = taskInput{configuration: sum, supervision: j.supervision, generatorInput: generatorInput{
		namespace:  cmp.Or(strings.TrimSpace(j.configuration.Namespace), j.resource.GetNamespace()),
		name:       cmp.Or(strings.TrimSpace(j.configuration.Name), j.resource.GetName()),
		digest:     j.digest,
		revision:   j.revision,
		generation: j.resource.GetGeneration(),
	}}
	if !generator.ReportsInputs(j.Generator) {
		return input, known, nil
	}
	reporter := j.Generator.(generator.InputReporter)
	if input.reported, err = reporter.Inputs(j.generationContext(ctx), input.namespace, input.name); err != nil {
		err = fmt.Errorf("unable to generate the objects: %w", err)
	}
	return input, known, err
}

// rollOut has the engine roll out what is desired. It does not if the last request left nothing to do and nothing has
// changed since.
func (j *job[T]) rollOut(ctx context.Context, parameters generator.Unstructurable) error {
	input, known, err := j.inputs(ctx)
	if err != nil {
		return err
	}
	machine := j.engine()
	var unchanged *engine.Report
	if known && !j.dryRun && j.state.taskInput == input {
		unchanged = machine.Unchanged(j.now)
	}
	if unchanged != nil && generator.IsDeterministic(j.Generator) {
		return j.assess(unchanged, nil)
	}
	j.state.taskInput = taskInput{}
	desired, err := j.desired(ctx, parameters, input, known, unchanged != nil)
	if err != nil {
		return err
	}
	j.keepRevision()
	j.facts.varies = j.state.variation.message
	if known {
		j.state.taskInput = input
	}
	if desired == nil {
		return j.assess(unchanged, nil)
	}
	task := j.task(*desired)
	if j.facts.suspends {
		if err := j.suspend(&task); err != nil {
			j.state.taskInput = taskInput{}
			return err
		}
	}
	report, err := j.runEngine(ctx, machine, task)
	err = j.assess(report, err)
	if j.facts.done {
		// They can be generated again. All that is needed until then is in the cache.
		j.state.generated = nil
	}
	return err
}

// desired returns the objects that are desired. It returns nil if unchanged is true and they are as in the last
// request.
// A deterministic generator is not called again for the same input, unless something has to be written and the objects
// are not in memory any more. If it returns other objects again and again, it is not called for a while either.
func (j *job[T]) desired(
	ctx context.Context, parameters generator.Unstructurable, task taskInput, known, unchanged bool,
) (*[]manifest.Object, error) {
	input := task.generatorInput
	cache, options := &j.state.engine.Manifests, j.manifestOptions(input.namespace)
	deterministic := generator.IsDeterministic(j.Generator)
	if j.state.variation.last != nil {
		if held := j.held(task); held != nil && unchanged {
			return nil, nil
		} else if held != nil {
			objects, err := manifest.Prepare(held, options, cache)
			return &objects, err
		}
	}
	if deterministic && j.state.preparedFor == input && !j.state.keeps(input) {
		generate := func() ([]client.Object, error) { return j.generate(ctx, parameters, input) }
		objects, ok, err := manifest.PrepareAgain(generate, options, cache)
		if ok || err != nil {
			return &objects, err
		}
	}
	generated, err := j.generate(ctx, parameters, input)
	if err != nil {
		return nil, err
	}
	if unchanged && cache.Unchanged(generated, &options) {
		if j.state.variation.last != nil {
			j.state.variation.expire(j.now)
		}
		return nil, nil
	}
	before := cache.Snapshot()
	objects, err := manifest.Prepare(generated, options, cache)
	if err != nil {
		j.state.generated, j.state.preparedFor = nil, generatorInput{}
		return &objects, err
	}
	if deterministic {
		j.state.preparedFor = input
	}
	if known && !j.dryRun && (!cache.Same() || j.state.variation.last != nil) {
		j.observeVariation(task, before, generated, objects)
	}
	return &objects, nil
}

// generate calls the generator, unless it is deterministic and the objects are in memory.
func (j *job[T]) generate(
	ctx context.Context, parameters generator.Unstructurable, input generatorInput,
) ([]client.Object, error) {
	if j.state.keeps(input) {
		return j.state.generated, nil
	}
	j.state.generated = nil
	generated, err := j.Generator.Generate(j.generationContext(ctx), input.namespace, input.name, parameters)
	if err != nil {
		return nil, fmt.Errorf("unable to generate the objects: %w", err)
	}
	if generator.IsDeterministic(j.Generator) {
		// Whoever uses them copies what it changes.
		j.state.generated, j.state.generatedFor = generated, input
	}
	return generated, nil
}

// keeps reports whether what was generated for input is in memory.
func (s *resourceState) keeps(input generatorInput) bool {
	return s.generated != nil && s.generatedFor == input
}

// task is what the engine has to do about objects.
func (j *job[T]) task(objects []manifest.Object) engine.Task {
	task := engine.Task{
		Objects:  objects,
		Patterns: j.patterns(),
		DryRun:   j.dryRun,
		Now:      j.now,
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
	if j.configuration.MissingNamespacesPolicy != apis.MissingNamespacesDoNotCreate {
		task.Namespaces = manifest.MissingNamespaces(objects)
		if j.deployment.target == "" {
			// The resource is in this namespace, so it exists.
			own := func(name string) bool { return name == j.resource.GetNamespace() }
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

func (j *job[T]) manifestOptions(namespace string) manifest.Options {
	return manifest.Options{
		Prefix:          j.Prefix,
		Namespace:       namespace,
		ComponentDigest: j.digest,
		AdoptionPolicy:  j.configuration.AdoptionPolicy,
		UpdatePolicy:    j.configuration.UpdatePolicy,
		DeletePolicy:    j.configuration.DeletePolicy,
		PrunePolicy:     j.configuration.PrunePolicy,
		ReapplyInterval: j.configuration.ReapplyInterval,
		Scheme:          j.config.Scheme(),
		GeneratorScheme: j.generatorScheme,
		Namespaced:      j.deployment.namespaced,
	}
}

package components

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/digest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// generatorInput is what the output of a deterministic generator depends on. The digest covers the parameters.
type generatorInput struct {
	namespace, name, digest string
	revision, generation    int64
}

// taskInput is what a task of the engine is made from, besides what is generated.
type taskInput struct {
	generatorInput
	// configuration is a digest of the configuration.
	configuration uint64
}

// inputs returns what the request is about. known is false if the configuration has no digest.
func (j *job[T]) inputs() (input taskInput, known bool) {
	configuration := j.configuration
	// It says where the component is deployed. What is remembered is forgotten when that changes.
	configuration.KubeConfig = nil
	sum, known := digest.Of(&configuration)
	return taskInput{configuration: sum, generatorInput: generatorInput{
		namespace:  cmp.Or(strings.TrimSpace(j.configuration.Namespace), j.resource.GetNamespace()),
		name:       cmp.Or(strings.TrimSpace(j.configuration.Name), j.resource.GetName()),
		digest:     j.digest,
		revision:   j.status.Revision,
		generation: j.resource.GetGeneration(),
	}}, known
}

// rollOut has the engine roll out what is desired. It does not if the last request left nothing to do and nothing has
// changed since.
func (j *job[T]) rollOut(ctx context.Context, parameters component.Unstructurable) error {
	input, known := j.inputs()
	machine := j.engine()
	var resting *engine.Report
	if known && !j.dryRun && j.state.taskInput == input {
		resting = machine.AtRest(j.now)
	}
	j.state.taskInput = taskInput{}
	deterministic := component.IsDeterministic(j.Generator)
	if resting != nil && deterministic {
		j.state.taskInput = input
		return j.assess(resting, nil)
	}
	generated, err := j.generate(ctx, parameters, input.generatorInput)
	if err != nil {
		return err
	}
	options := j.manifestOptions(input.namespace)
	if resting != nil && j.state.engine.Manifests.Unchanged(generated, &options) {
		j.state.taskInput = input
		return j.assess(resting, nil)
	}
	objects, err := manifest.Prepare(generated, options, &j.state.engine.Manifests)
	if err != nil {
		return err
	}
	if deterministic {
		// Prepare and the engine copy what they change.
		j.state.generated, j.state.generatedFor = generated, input.generatorInput
	}
	if known {
		j.state.taskInput = input
	}
	report, err := j.runEngine(ctx, machine, j.task(objects))
	return j.assess(report, err)
}

// task is what the engine has to do about objects.
func (j *job[T]) task(objects []manifest.Object) engine.Task {
	task := engine.Task{
		Objects:  objects,
		Patterns: j.patterns(),
		DryRun:   j.dryRun,
		Now:      j.now,
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

// generate returns the objects that are desired. A deterministic generator is not called again for the same input.
func (j *job[T]) generate(
	ctx context.Context, parameters component.Unstructurable, input generatorInput,
) ([]client.Object, error) {
	if component.IsDeterministic(j.Generator) && j.state.generatedFor == input {
		return j.state.generated, nil
	}
	j.state.generated, j.state.generatedFor = nil, generatorInput{}
	generated, err := j.Generator.Generate(j.generationContext(ctx), input.namespace, input.name, parameters)
	if err != nil {
		return nil, fmt.Errorf("unable to generate the objects: %w", err)
	}
	return generated, nil
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

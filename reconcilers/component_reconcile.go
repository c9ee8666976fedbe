package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Reconcile goes as far as the cluster allows, see [ComponentReconciler].
func (r *ComponentReconciler[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = enter(ctx, r.Name)
	deleting := resource.GetDeletionTimestamp() != nil
	if deleting && !controllerutil.ContainsFinalizer(resource, r.Finalizer) {
		return Result{}, nil
	}
	job, err := r.begin(ctx, resource)
	if err != nil {
		noteFailure(ctx, "", err)
		return Result{}, err
	}
	job.run(ctx)
	if job.finished {
		return Result{}, nil
	}
	result, err := job.conclude(ctx)
	noteFailure(ctx, "", err)
	return result, err
}

// Plan tells what Reconcile would do now, and does nothing but read: no hook is called, and neither the resource nor the
// cluster is changed. It reads each object of the component, and may be called while Reconcile runs.
func (r *ComponentReconciler[T]) Plan(ctx context.Context, resource T) (*ComponentPlan, error) {
	r.init()
	if err := r.check(); err != nil {
		return nil, err
	}
	ctx = enter(ctx, r.Name)
	job, err := r.begin(ctx, copyOf(resource))
	if err != nil {
		return nil, err
	}
	// Reconcile may be at work with what is remembered.
	job.dryRun, job.memory = true, &componentMemory{}
	job.run(ctx)
	if job.situation.err != nil {
		return nil, job.situation.err
	}
	return newComponentPlan(job.report), nil
}

// componentJob is one request of a component.
type componentJob[T client.Object] struct {
	*ComponentReconciler[T]
	resource      T
	config        Config
	status        *apis.ComponentStatus
	before        apis.ComponentStatus
	configuration component.Configuration
	memory        *componentMemory
	deployment    *componentDeployment
	store         inventory.Store
	now           time.Time
	dryRun        bool

	digest    string
	report    *engine.Report
	situation componentSituation
	// retryAfter is the delay that a retriable error asks for; nil for the interval.
	retryAfter *time.Duration
	// finished: the component is gone, and the resource is not to be touched any more.
	finished bool
}

// begin gathers what a request needs and may fail without the component being concerned.
func (r *ComponentReconciler[T]) begin(ctx context.Context, resource T) (*componentJob[T], error) {
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	status := r.Status(resource)
	if status == nil {
		return nil, fmt.Errorf("ComponentReconciler %q must define Status since %s has none of a component: %w", r.Name, typeName(resource), ErrDurable)
	}
	return &componentJob[T]{
		ComponentReconciler: r,
		resource:            resource,
		config:              config,
		status:              status,
		before:              *status,
		memory:              r.memoryOf(ctx, resource),
		now:                 rtime.RetrieveNow(ctx),
		situation: componentSituation{
			deleting: resource.GetDeletionTimestamp() != nil,
			first:    status.ProcessingDigest == "" && status.LastAppliedAt == nil,
		},
	}, nil
}

// run does the work and notes what it found out.
func (j *componentJob[T]) run(ctx context.Context) {
	err := j.work(ctx)
	if err == nil {
		return
	}
	j.situation.err = err
	var retriable *component.RetriableError
	if errors.As(err, &retriable) {
		j.situation.retriable = true
		j.retryAfter = retriable.RetryAfter()
	}
}

func (j *componentJob[T]) work(ctx context.Context) error {
	if err := j.configure(ctx); err != nil {
		return err
	}
	if j.configuration.Suspended && !j.situation.deleting {
		j.situation.suspended = true
		return nil
	}
	if !j.dryRun && !j.situation.deleting {
		if err := AddFinalizer(ctx, j.resource, j.Finalizer); err != nil {
			return err
		}
	}
	if err := j.hooks(ctx, "post-read", j.Hooks.PostRead); err != nil {
		return err
	}
	if err := j.reach(ctx); err != nil {
		if errors.Is(err, errAbandoned) && !j.dryRun {
			return j.abandon(ctx)
		}
		return err
	}
	if j.situation.deleting {
		return j.remove(ctx)
	}
	return j.deploy(ctx)
}

// configure finds out how the component is to be deployed.
func (j *componentJob[T]) configure(ctx context.Context) error {
	configuration, err := component.ConfigurationOf(j.resource)
	if err != nil {
		return fmt.Errorf("the configuration is invalid: %w", err)
	}
	if j.Configure != nil {
		if err := j.Configure(ctx, j.resource, &configuration); err != nil {
			return err
		}
	}
	j.configuration = configuration
	return nil
}

// deploy rolls the component out.
func (j *componentJob[T]) deploy(ctx context.Context) error {
	parameters, err := j.Parameters(ctx, j.resource)
	if err != nil {
		return fmt.Errorf("unable to find the parameters: %w", err)
	}
	if err := j.count(ctx, parameters); err != nil {
		return err
	}
	if err := j.hooks(ctx, "pre-reconcile", j.Hooks.PreReconcile); err != nil {
		return err
	}
	objects, err := j.generate(ctx, parameters)
	if err != nil {
		return err
	}
	task := engine.Task{
		Objects:  objects,
		Patterns: j.patterns(),
		DryRun:   j.dryRun,
		Now:      j.now,
	}
	if j.configuration.MissingNamespacesPolicy != apis.MissingNamespacesDoNotCreate {
		task.Namespaces = manifest.MissingNamespaces(objects)
		if j.deployment.target == "" {
			// The resource is in it, so it is there.
			task.Namespaces = slices.DeleteFunc(task.Namespaces, func(name string) bool { return name == j.resource.GetNamespace() })
		}
	}
	err = j.engage(ctx, task)
	if err == nil && j.situation.done {
		err = j.hooks(ctx, "post-reconcile", j.Hooks.PostReconcile)
	}
	return err
}

// count finds out what is rolled out, and which revision it is.
func (j *componentJob[T]) count(ctx context.Context, parameters component.Unstructurable) error {
	var references map[string]string
	if j.References != nil {
		var err error
		if references, err = j.References(ctx, j.resource); err != nil {
			return fmt.Errorf("unable to find the references: %w", err)
		}
	}
	digest, err := component.ComponentDigest(parameters.ToUnstructured(), j.resource.GetAnnotations(), j.Prefix, references)
	if err != nil {
		return fmt.Errorf("the spec has no digest: %w", err)
	}
	j.digest = digest
	j.situation.changed = j.status.ProcessingDigest != "" && j.status.ProcessingDigest != digest
	if j.status.LastProcessingDigest != digest {
		j.status.Revision++
		j.status.LastProcessingDigest = digest
	}
	return nil
}

// generate makes the objects that are desired.
func (j *componentJob[T]) generate(ctx context.Context, parameters component.Unstructurable) ([]manifest.Object, error) {
	namespace, name := j.placement()
	generated, err := j.Generator.Generate(j.generationContext(ctx), namespace, name, parameters)
	if err != nil {
		return nil, fmt.Errorf("unable to generate the objects: %w", err)
	}
	return manifest.Prepare(generated, manifest.Options{
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
		Namespaced:      j.deployment.scopes(),
	}, &j.memory.engine.Manifests)
}

// watcher is the resource to wake: that of the root, whatever the node sees it as.
func (j *componentJob[T]) watcher(ctx context.Context) types.NamespacedName {
	if request := scopeOf(ctx).request; request.Name != "" {
		return request.NamespacedName
	}
	return client.ObjectKeyFromObject(j.resource)
}

// placement is where the component is deployed, and under which name.
func (j *componentJob[T]) placement() (namespace, name string) {
	return orElse(j.configuration.Namespace, j.resource.GetNamespace()), orElse(j.configuration.Name, j.resource.GetName())
}

func (j *componentJob[T]) generationContext(ctx context.Context) context.Context {
	namespace, name := j.resource.GetNamespace(), j.resource.GetName()
	generation := component.NewContext(ctx).
		WithReconcilerName(j.Prefix).
		WithLocalClient(j.config.Client)
	if j.deployment != nil {
		generation = generation.WithClient(j.deployment.client)
	}
	return generation.
		WithComponent(j.resource).
		WithComponentNamespace(namespace).
		WithComponentName(name).
		WithComponentDigest(j.digest).
		WithComponentRevision(j.status.Revision)
}

func (j *componentJob[T]) patterns() []plan.Pattern {
	patterns := make([]plan.Pattern, 0, len(j.configuration.AdditionalManagedTypes))
	for _, t := range j.configuration.AdditionalManagedTypes {
		patterns = append(patterns, plan.Pattern{Group: t.Group, Kind: t.Kind})
	}
	return patterns
}

// remove takes the component away.
func (j *componentJob[T]) remove(ctx context.Context) error {
	err := j.engage(ctx, engine.Task{
		Deleting: true,
		Patterns: j.patterns(),
		DryRun:   j.dryRun,
		Now:      j.now,
		BeforeDelete: func(ctx context.Context) error {
			return j.hooks(ctx, "pre-delete", j.Hooks.PreDelete)
		},
	})
	if err != nil || !j.situation.done || j.dryRun {
		return err
	}
	return j.finish(ctx)
}

// abandon lets the resource go although its objects may still be there: nobody knows where.
func (j *componentJob[T]) abandon(ctx context.Context) error {
	store, err := j.inventoryStore()
	if err != nil {
		return err
	}
	if _, err := store.Load(ctx); err != nil {
		return fmt.Errorf("unable to load the inventory: %w", err)
	}
	if _, err := store.Save(ctx, nil); err != nil {
		return fmt.Errorf("unable to give up the inventory: %w", err)
	}
	j.store = store
	j.record(componentEvent{corev1.EventTypeWarning, "Abandoned", "The objects are given up, since the kubeconfig of their cluster is not there any more"})
	return j.finish(ctx)
}

// finish lets the resource go, once its objects are gone.
func (j *componentJob[T]) finish(ctx context.Context) error {
	if err := j.hooks(ctx, "post-delete", j.Hooks.PostDelete); err != nil {
		return err
	}
	if err := j.store.Remove(ctx); err != nil {
		return fmt.Errorf("unable to remove the inventory: %w", err)
	}
	j.finished = true
	if err := ClearFinalizer(ctx, j.resource, j.Finalizer); err != nil {
		j.finished = false
		return err
	}
	j.memory.forgotten()
	j.strays.forget(j.resource.GetUID())
	return nil
}

// hooks calls hooks of one sort in their order, until one fails.
func (j *componentJob[T]) hooks(ctx context.Context, sort string, hooks []component.Hook[T]) error {
	if j.dryRun || len(hooks) == 0 {
		return nil
	}
	hooked := j.generationContext(ctx)
	for i, hook := range hooks {
		if err := hook(hooked, j.config.Client, j.resource); err != nil {
			return fmt.Errorf("%s hook %d failed: %w", sort, i, err)
		}
	}
	return nil
}

// conclude sets the status and decides when to come back.
func (j *componentJob[T]) conclude(ctx context.Context) (Result, error) {
	if err := j.situation.err; err != nil && (isQuiet(err) && !errors.Is(err, ErrDurable) || apierrs.IsConflict(err) && !j.objectsFailed()) {
		// Somebody was faster, or another node's convention is at work: this is no state of the component.
		return Result{}, err
	}
	reasonBefore := j.reason()
	if j.looking() {
		return j.comeBack(componentVerdict{reason: reasonBefore}), nil
	}
	verdict := j.settle(ctx)
	j.announce(ctx, reasonBefore, verdict)
	if j.situation.err != nil && !j.situation.retriable {
		return Result{}, j.situation.err
	}
	if verdict.reason == ComponentReasonTimeout && reasonBefore != ComponentReasonTimeout && j.situation.err == nil {
		return Result{}, fmt.Errorf("the component is not ready: %s", verdict.message)
	}
	return j.comeBack(verdict), nil
}

// objectsFailed tells whether something could not be done about an object, whatever else failed.
func (j *componentJob[T]) objectsFailed() bool {
	return j.report != nil && slices.ContainsFunc(j.report.Results, func(r execute.Result) bool { return r.Err != nil })
}

// looking tells whether nothing was found out but that watches have to start first, as after a restart: the component has not changed
// because we begin to look.
func (j *componentJob[T]) looking() bool {
	s, report := j.situation, j.report
	return s.err == nil && report != nil && len(report.Syncing) > 0 && len(report.Results) == 0 && !s.recorded && !s.deleting &&
		j.before.State != "" && j.before.ProcessingDigest == j.digest &&
		!slices.ContainsFunc(report.Plan.Obstacles, func(o plan.Obstacle) bool { return o.Kind != plan.ObstacleWaiting })
}

// comeBack decides when the component is looked at again, if nothing wakes it before. That can wait for whatever is more urgent.
func (j *componentJob[T]) comeBack(verdict componentVerdict) Result {
	delay := j.delay(verdict)
	if delay <= 0 {
		return Result{}
	}
	priority := handler.LowPriority
	return Result{RequeueAfter: jittered(delay, string(j.resource.GetUID())), Priority: &priority}
}

func (j *componentJob[T]) delay(verdict componentVerdict) time.Duration {
	s := j.situation
	switch {
	case s.suspended:
		return 0
	case s.retriable:
		j.memory.progressed("")
		if j.retryAfter != nil && *j.retryAfter > 0 {
			return *j.retryAfter
		}
		return j.configuration.Retry
	case s.done:
		j.memory.progressed("")
		if len(j.report.Polled) > 0 {
			return j.untilReapply(min(componentPollInterval, j.configuration.Requeue))
		}
		return j.untilReapply(j.configuration.Requeue)
	case s.recorded:
		return time.Millisecond
	}
	backoff := componentBackoff(j.memory.again(verdict.reason, j.report.Changed()), componentPollInterval)
	switch {
	case s.blocked:
		// Nobody tells us when the objects of others go.
		return backoff + time.Second
	case j.deployment.blind || j.report.Waits || len(j.report.Polled) > 0:
		return backoff
	case s.deleting || j.status.ProcessingSince == nil:
		return j.configuration.Requeue
	}
	// The timeout is noticed when it is due.
	if left := j.status.ProcessingSince.Add(j.configuration.Timeout).Sub(j.now); left > 0 {
		return j.untilReapply(min(left, j.configuration.Requeue))
	}
	return j.untilReapply(j.configuration.Requeue)
}

// untilReapply shortens a delay to when an object is to be rewritten.
func (j *componentJob[T]) untilReapply(delay time.Duration) time.Duration {
	if due := j.report.Plan.Reapply; !due.IsZero() {
		return min(delay, max(due.Sub(j.now), time.Second))
	}
	return delay
}

// componentPollInterval is how often a component is looked at that has objects which nobody tells us about.
const componentPollInterval = 10 * time.Second

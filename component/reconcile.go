package component

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Reconcile goes as far as the cluster allows, see [ComponentReconciler].
func (r *ComponentReconciler[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return reconcilers.Result{}, err
	}
	ctx = reconcilers.Enter(ctx, r.Name)
	if resource.GetDeletionTimestamp() != nil && !controllerutil.ContainsFinalizer(resource, r.Finalizer) {
		return reconcilers.Result{}, nil
	}
	job, err := r.begin(ctx, resource)
	if err != nil {
		return reconcilers.Result{}, reconcilers.Failed(ctx, nil, err)
	}
	result, err := job.run(ctx)
	return result, reconcilers.Failed(ctx, nil, err)
}

// Plan returns what Reconcile would do now, and only reads: no hook is called, and neither the resource nor the cluster
// is changed. It reads each object of the component, and may be called while Reconcile runs.
func (r *ComponentReconciler[T]) Plan(ctx context.Context, resource T) (*Plan, error) {
	r.init()
	if err := r.check(); err != nil {
		return nil, err
	}
	ctx = reconcilers.Enter(ctx, r.Name)
	job, err := r.begin(ctx, resource.DeepCopyObject().(T))
	if err != nil {
		return nil, err
	}
	// Reconcile may run at the same time and uses the state of the resource.
	job.dryRun, job.state = true, newResourceState()
	if err := job.deployOrRemove(ctx); err != nil {
		return nil, err
	}
	return newPlan(job.report), nil
}

// job is one request for a component.
type job[T client.Object] struct {
	*ComponentReconciler[T]
	resource      T
	config        reconcilers.Config
	kind          schema.GroupVersionKind
	owner         observe.Component
	status        *apis.ComponentStatus
	before        apis.ComponentStatus
	configuration generator.Configuration
	state         *resourceState
	deployment    *deployment
	// formerOwnerID is the owner label that the component wrote before its owner had a cluster; empty in its own.
	formerOwnerID string
	store         inventory.Store
	now           time.Time
	dryRun        bool

	// references are the identities of what the spec refers to.
	references map[string]string
	digest     string
	// revision is the one that digest has. It counts once something was generated for it.
	revision int64
	report   *engine.Report
	facts    facts
	// supervisor is nil if there is none, and for a resource that is being deleted.
	supervisor  reconcilers.Supervisor
	supervision reconcilers.Supervision
	// retryAfter is the delay that a retriable error asks for; nil for the interval.
	retryAfter *time.Duration
	// finished is true once the component is gone. The resource is then not touched any more.
	finished bool
}

// begin collects what a request needs. Its errors are no state of the component.
func (r *ComponentReconciler[T]) begin(ctx context.Context, resource T) (*job[T], error) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	status := r.Status(resource)
	if status == nil {
		return nil, permanent(fmt.Errorf("ComponentReconciler %q must define Status since %s has none of a component",
			r.Name, typeOf(resource)))
	}
	// The kind is empty if the scheme does not know it.
	kind, _ := config.GroupVersionKindFor(resource)
	now := rtime.RetrieveNow(ctx)
	text := engine.OwnerText(kind.GroupKind(), client.ObjectKeyFromObject(resource), "", resource.GetUID())
	owner := observe.Component{UID: resource.GetUID(), OwnerID: engine.OwnerID(text), Owner: text, Now: now}
	// Events bring back the resource of the root, although the node may see it as another type.
	if owner.Watcher = reconcilers.RetrieveRequest(ctx).NamespacedName; owner.Watcher.Name == "" {
		owner.Watcher = client.ObjectKeyFromObject(resource)
	}
	j := &job[T]{
		ComponentReconciler: r,
		resource:            resource,
		config:              config,
		kind:                kind,
		owner:               owner,
		status:              status,
		before:              *status,
		revision:            status.Revision,
		state:               r.states.Of(ctx, resource, newResourceState),
		now:                 now,
		facts: facts{
			deleting: resource.GetDeletionTimestamp() != nil,
			first:    status.ProcessingDigest == "" && status.LastAppliedAt == nil,
		},
	}
	j.supervise(ctx)
	return j, nil
}

// supervise notes what the supervisor asks for.
func (j *job[T]) supervise(ctx context.Context) {
	if j.facts.deleting {
		return
	}
	j.supervisor, j.supervision = reconcilers.SupervisorOf(ctx), reconcilers.SupervisionOf(ctx, j.resource)
	j.facts.withdrawing = j.supervision == reconcilers.Withdraw
	j.facts.suspends = j.supervision == reconcilers.Suspend
}

// run does what the cluster allows, sets the status, and decides when to come back.
func (j *job[T]) run(ctx context.Context) (reconcilers.Result, error) {
	err := j.deployOrRemove(ctx)
	if j.supervisor != nil {
		j.observe(ctx, err)
	}
	if j.finished {
		return reconcilers.Result{}, nil
	}
	var retriable *generator.RetriableError
	_, j.facts.unreachable = errors.AsType[*clusters.UnreachableError](err)
	if j.facts.err = err; errors.As(err, &retriable) {
		j.facts.retriable, j.retryAfter = true, retriable.RetryAfter()
	}
	quiet := errors.Is(err, reconcilers.ErrQuiet) && !errors.Is(err, reconcilers.ErrDurable)
	if quiet || apierrs.IsConflict(err) && !j.anyResult(func(r execute.Result) bool { return r.Err != nil }) {
		// A conflict with another writer, or a quiet error of another node, is no state of the component.
		return reconcilers.Result{}, err
	}
	reasonBefore := j.reason()
	if j.waitsForWatches() {
		_, back := decide(states, &j.facts)
		return j.requeueAfter(back, reasonBefore), nil
	}
	c, back := j.updateStatus(ctx)
	if c.reason != reasonBefore || err != nil || j.anyResult(func(execute.Result) bool { return true }) {
		j.recordEvents(ctx, reasonBefore, c)
	}
	if back == byError {
		return reconcilers.Result{}, err
	}
	if c.reason == ReasonTimeout && reasonBefore != ReasonTimeout && err == nil {
		return reconcilers.Result{}, fmt.Errorf("the component is not ready: %s", c.message)
	}
	return j.requeueAfter(back, c.reason), nil
}

// anyResult reports whether match holds for an operation that was carried out.
func (j *job[T]) anyResult(match func(execute.Result) bool) bool {
	return j.report != nil && slices.ContainsFunc(j.report.Results, match)
}

// waitsForWatches reports whether the request found out nothing but that watches have to start first, as after a
// restart. The state of the component has not changed by that.
func (j *job[T]) waitsForWatches() bool {
	s, report := j.facts, j.report
	if s.err != nil || s.recorded || s.leaving() || report == nil || len(report.Syncing) == 0 {
		return false
	}
	blocks := func(o plan.Obstacle) bool { return o.Kind != plan.ObstacleWaiting }
	return len(report.Results) == 0 && j.before.State != "" && j.before.ProcessingDigest == j.digest &&
		!slices.ContainsFunc(report.Plan.Obstacles, blocks)
}

// deployOrRemove goes as far as the cluster allows.
func (j *job[T]) deployOrRemove(ctx context.Context) error {
	configuration, err := generator.ConfigurationOf(j.resource)
	if err != nil {
		return fmt.Errorf("the configuration is invalid: %w", err)
	}
	if j.Configure != nil {
		if err := j.Configure(ctx, j.resource, &configuration); err != nil {
			return err
		}
	}
	j.configuration = configuration
	if err := j.impersonate(); err != nil {
		return err
	}
	if j.facts.suspended = j.configuration.Suspended && !j.facts.deleting; j.facts.suspended {
		return nil
	}
	if j.facts.withdrawn = j.facts.withdrawing && !j.hasObjects(); j.facts.withdrawn {
		return nil
	}
	if !j.dryRun && !j.facts.leaving() {
		if err := reconcilers.AddFinalizer(ctx, j.resource, j.Finalizer); err != nil {
			return err
		}
	}
	if j.refers {
		if err := j.loadReferences(ctx); err != nil {
			return err
		}
	}
	if err := j.hooks(ctx, "post-read", j.Hooks.PostRead); err != nil {
		return err
	}
	err = j.selectCluster(ctx)
	switch {
	case err != nil:
	case j.facts.leaving():
		err = j.remove(ctx)
	default:
		err = j.deploy(ctx)
	}
	if err == nil {
		return nil
	}
	if err = j.explain(err); j.facts.deleting {
		return j.abandonAfter(ctx, err)
	}
	return err
}

// deploy rolls the component out.
func (j *job[T]) deploy(ctx context.Context) error {
	parameters, err := j.Parameters(ctx, j.resource)
	if err != nil {
		return fmt.Errorf("unable to find the parameters: %w", err)
	}
	if err := j.computeRevision(ctx, parameters); err != nil {
		return err
	}
	if j.refers {
		if parameters, err = j.withValues(parameters); err != nil {
			return err
		}
	}
	if err := j.hooks(ctx, "pre-reconcile", j.Hooks.PreReconcile); err != nil {
		return err
	}
	if err := j.rollOut(ctx, parameters); err != nil || !j.facts.done || j.facts.suspends {
		return err
	}
	return j.hooks(ctx, "post-reconcile", j.Hooks.PostReconcile)
}

// computeRevision computes the digest of what is rolled out, and which revision that is.
func (j *job[T]) computeRevision(ctx context.Context, parameters generator.Unstructurable) error {
	references, err := j.identities(ctx)
	if err != nil {
		return err
	}
	spec, annotations := parameters.ToUnstructured(), j.resource.GetAnnotations()
	digest, err := generator.ComponentDigest(spec, annotations, j.Prefix, references)
	if err != nil {
		return fmt.Errorf("the spec has no digest: %w", err)
	}
	j.digest = digest
	j.facts.changed = j.status.ProcessingDigest != "" && j.status.ProcessingDigest != digest
	if j.status.LastProcessingDigest != digest {
		j.revision = j.status.Revision + 1
	}
	return nil
}

// keepRevision counts the revision. What the generator refuses never was one.
func (j *job[T]) keepRevision() {
	j.status.Revision, j.status.LastProcessingDigest = j.revision, j.digest
}

// identities are those of what the component refers to.
func (j *job[T]) identities(ctx context.Context) (map[string]string, error) {
	if j.References == nil {
		return j.references, nil
	}
	identities, err := j.References(ctx, j.resource)
	if err != nil {
		return nil, fmt.Errorf("unable to find the references: %w", err)
	}
	if len(j.references) == 0 {
		return identities, nil
	}
	all := maps.Clone(j.references)
	maps.Copy(all, identities)
	return all, nil
}

func (j *job[T]) generationContext(ctx context.Context) context.Context {
	generation := generator.NewContext(ctx).WithReconcilerName(j.Prefix)
	if local, _, err := j.localClient(ctx); err == nil {
		// Without it, the operator's own client must not take its place.
		generation = generation.WithLocalClient(local)
	}
	if j.deployment != nil {
		generation = generation.WithClient(j.deployment.client).WithDiscovery(j.deployment.discovery)
	}
	return generation.
		WithComponent(j.resource).
		WithComponentNamespace(j.resource.GetNamespace()).
		WithComponentName(j.resource.GetName()).
		WithComponentDigest(j.digest).
		WithComponentRevision(j.revision)
}

func (j *job[T]) patterns() []plan.Pattern {
	patterns := make([]plan.Pattern, 0, len(j.configuration.AdditionalManagedTypes))
	for _, t := range j.configuration.AdditionalManagedTypes {
		patterns = append(patterns, plan.Pattern{Group: t.Group, Kind: t.Kind})
	}
	return patterns
}

// hooks calls the hooks of one sort in order, until one fails.
func (j *job[T]) hooks(ctx context.Context, sort string, hooks []generator.Hook[T]) error {
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

// engine returns the engine of the component.
func (j *job[T]) engine() *engine.Engine {
	owner := j.owner
	return &engine.Engine{
		Client:   j.deployment.client,
		Observer: j.deployment.observer,
		Store:    j.store,
		Guard: &foreign.Guard{
			Client:        j.deployment.client,
			Discovery:     j.deployment.discovery,
			OwnerLabel:    j.Prefix + "/" + generator.LabelOwnerID,
			OwnerID:       owner.OwnerID,
			FormerOwnerID: j.formerOwnerID,
			FieldManager:  j.FieldManager,
			Fresh:         j.deployment.fresh,
			Margin:        j.FenceMargin,
			Memory:        &j.state.namespaces,
		},
		Memory:       &j.state.engine,
		Component:    owner,
		Mark:         execute.Mark{Prefix: j.Prefix, ID: owner.OwnerID, Owner: owner.Owner},
		FieldManager: j.FieldManager,
		Reclaim:      j.ReclaimFrom,
		Parallel:     j.Parallel,
	}
}

// runEngine runs the engine.
func (j *job[T]) runEngine(
	ctx context.Context, machine *engine.Engine, task engine.Task,
) (*engine.Report, error) {
	// The writes of the request itself must not wake the resource.
	defer machine.Observer.Pause(machine.Component)()
	report, err := machine.Run(ctx, task)
	if !j.dryRun {
		j.source.setCoalesceDelay(machine.Component.Watcher, len(report.Inventory))
		if len(report.Results) > 0 {
			logResults(ctx, report.Results)
		}
		if len(report.Failures) > 0 {
			logAuxiliary(ctx, task.Objects, report.Failures)
		}
	}
	return report, err
}

// assess notes how far the engine came.
func (j *job[T]) assess(report *engine.Report, err error) error {
	j.report = report
	j.facts.recorded = report.Recorded > 0
	j.facts.done = err == nil && report.Plan.Done && !j.facts.recorded
	j.facts.blocked = hasObstacle(report, plan.ObstacleBlocked)
	j.facts.contested = hasObstacle(report, plan.ObstacleContested)
	j.facts.fenceAt = report.RetryAt
	j.facts.failed, j.facts.unseen, j.facts.polled = len(report.Failures) > 0, report.Waits, len(report.Polled) > 0
	j.facts.unwatched = j.deployment.unwatched
	if !j.facts.done {
		j.facts.progress = plan.Message(report.Plan, maxMessage-maxRemarks)
	}
	if err != nil {
		return err
	}
	if j.state.unkept++; !j.facts.recorded {
		j.state.unkept = 0
	}
	if j.state.unkept > maxUnkept {
		return errInventoryLost
	}
	return nil
}

// maxUnkept is how many requests in a row may record objects and not find the records kept. It leaves room for
// conflicts of the status with other writers.
const maxUnkept = 20

// hasObstacle reports whether an obstacle of the kind is left, and the component does not do without the object.
func hasObstacle(report *engine.Report, kind plan.ObstacleKind) bool {
	return slices.ContainsFunc(report.Plan.Obstacles, func(o plan.Obstacle) bool {
		return o.Kind == kind && !o.Auxiliary
	})
}

// errInventoryLost means that the inventory never becomes durable.
var errInventoryLost = errors.New("the status does not keep the inventory: the CustomResourceDefinition " +
	"of the resource has to define the status of a component, and the root has to write it")

// maxRemarks, in bytes, is how much room is left in a message for remarks about types that cannot be watched.
const maxRemarks = 256

package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	defer r.states.End(ctx)
	request, err := r.begin(ctx, resource)
	if err != nil {
		return reconcilers.Result{}, reconcilers.Failed(ctx, nil, err)
	}
	result, err := request.run(ctx)
	return result, reconcilers.Failed(ctx, nil, err)
}

// request is one request for a component.
type request[T client.Object] struct {
	*ComponentReconciler[T]
	resource      T
	config        reconcilers.Config
	kind          schema.GroupVersionKind
	owner         observe.Component
	status        *apis.ComponentStatus
	before        apis.ComponentStatus
	configuration generator.Configuration
	state         *resourceState
	target        *target
	// kubeconfig is that of the target; empty for the cluster of the operator.
	kubeconfig []byte
	// formerOwnerID is the owner label that the component wrote before its owner had a cluster; empty in its own.
	formerOwnerID string
	store         inventory.Store
	now           time.Time
	dryRun        bool
	// previews is how many writes a dry run tries.
	previews int

	// references are the identities of what the spec refers to.
	references map[string]string
	// digest covers content, which is the digest of what the objects are made from besides the spec.
	digest, content string
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
func (r *ComponentReconciler[T]) begin(ctx context.Context, resource T) (*request[T], error) {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	status := r.statusOf(ctx, resource)
	if status == nil {
		return nil, permanent(fmt.Errorf("ComponentReconciler %q must define Status since %s has none of a component",
			r.Name, typeOf(resource)))
	}
	// The kind is empty if the scheme does not know it.
	kind, _ := config.GroupVersionKindFor(resource)
	now := rtime.RetrieveNow(ctx)
	item := reconcilers.ItemName(ctx, "")
	text := engine.OwnerText(kind.GroupKind(), client.ObjectKeyFromObject(resource), "", resource.GetUID()) + item
	owner := observe.Component{UID: resource.GetUID(), Item: item, OwnerID: engine.OwnerID(text), Owner: text, Now: now}
	// Events bring back the resource of the root, although the node may see it as another type.
	if owner.Watcher = reconcilers.RetrieveRequest(ctx).NamespacedName; owner.Watcher.Name == "" {
		owner.Watcher = client.ObjectKeyFromObject(resource)
	}
	begun := &request[T]{
		ComponentReconciler: r,
		resource:            resource,
		config:              config,
		kind:                kind,
		owner:               owner,
		status:              status,
		before:              *status,
		revision:            status.Revision,
		state:               r.states.Of(ctx, newResourceState),
		now:                 now,
		facts: facts{
			deleting: resource.GetDeletionTimestamp() != nil,
			first:    status.ProcessingDigest == "" && status.LastAppliedAt == nil,
		},
	}
	begun.supervise(ctx)
	return begun, nil
}

// supervise notes what the supervisor asks for.
func (r *request[T]) supervise(ctx context.Context) {
	if r.facts.deleting {
		return
	}
	r.supervisor, r.supervision = reconcilers.SupervisorOf(ctx), reconcilers.SupervisionOf(ctx, r.resource)
	r.facts.withdrawing = r.supervision == reconcilers.Withdraw
	r.facts.suspends = r.supervision == reconcilers.Suspend
}

// run does what the cluster allows, sets the status, and decides when to come back.
func (r *request[T]) run(ctx context.Context) (reconcilers.Result, error) {
	err := r.deployOrRemove(ctx)
	if r.supervisor != nil {
		r.observe(ctx, err)
	}
	if r.finished {
		reconcilers.Note(ctx, Progress{})
		return reconcilers.Result{}, nil
	}
	var retriable *generator.RetriableError
	_, r.facts.unreachable = errors.AsType[*clusters.UnreachableError](err)
	if r.facts.err = err; errors.As(err, &retriable) {
		r.facts.retriable, r.retryAfter = true, retriable.RetryAfter()
	}
	quiet := errors.Is(err, reconcilers.ErrQuiet) && !errors.Is(err, reconcilers.ErrDurable)
	if quiet || apierrs.IsConflict(err) && !r.anyResult(func(r execute.Result) bool { return r.Err != nil }) {
		// A conflict with another writer, or a quiet error of another node, is no state of the component.
		return reconcilers.Result{}, err
	}
	reasonBefore := r.reason()
	if r.waitsForWatches() {
		_, back := decide(states, &r.facts)
		return r.requeueAfter(back, reasonBefore), nil
	}
	c, back := r.updateStatus(ctx)
	r.noteProgress(ctx, c)
	if r.owner.Item != "" {
		r.reportItem(ctx)
	}
	if c.reason != reasonBefore || err != nil || r.anyResult(func(execute.Result) bool { return true }) {
		r.recordEvents(ctx, reasonBefore, c)
	}
	if back == byError {
		return reconcilers.Result{}, err
	}
	if c.reason == ReasonTimeout && reasonBefore != ReasonTimeout && err == nil {
		return reconcilers.Result{}, fmt.Errorf("the component is not ready: %s", c.message)
	}
	return r.requeueAfter(back, c.reason), nil
}

// anyResult reports whether match holds for an operation that was carried out.
func (r *request[T]) anyResult(match func(execute.Result) bool) bool {
	return r.report != nil && slices.ContainsFunc(r.report.Results, match)
}

// waitsForWatches reports whether the request found out nothing but that watches have to start first, as after a
// restart. The state of the component has not changed by that.
func (r *request[T]) waitsForWatches() bool {
	s, report := r.facts, r.report
	if s.err != nil || s.recorded || s.leaving() || report == nil || len(report.Syncing) == 0 {
		return false
	}
	blocks := func(o plan.Obstacle) bool { return o.Kind != plan.ObstacleWaiting }
	return len(report.Results) == 0 && r.before.State != "" && r.before.ProcessingDigest == r.digest &&
		!slices.ContainsFunc(report.Plan.Obstacles, blocks)
}

// deployOrRemove goes as far as the cluster allows. A panic of a function of the author, such as a generator or a hook,
// is an error.
func (r *request[T]) deployOrRemove(ctx context.Context) (err error) {
	defer reconcilers.Recover(ctx, &err)
	if err = r.goOn(ctx); err != nil {
		err = r.explain(err)
	}
	if r.facts.deleting && !r.finished {
		return r.abandonAfter(ctx, err)
	}
	return err
}

// goOn finds out what is asked for, and deploys the component or removes it.
func (r *request[T]) goOn(ctx context.Context) (err error) {
	defer reconcilers.Recover(ctx, &err)
	configuration, err := generator.ConfigurationOf(r.resource)
	if err != nil {
		return fmt.Errorf("the configuration is invalid: %w", err)
	}
	r.completePolicies(&configuration)
	if r.Configure != nil {
		if err := r.Configure(ctx, r.resource, &configuration); err != nil {
			return err
		}
	}
	r.configuration = configuration
	if err := r.impersonate(); err != nil {
		return err
	}
	if r.facts.suspended = r.configuration.Suspended && !r.facts.deleting; r.facts.suspended {
		return nil
	}
	if r.facts.withdrawn = r.facts.withdrawing && !r.hasObjects(); r.facts.withdrawn {
		return nil
	}
	if !r.dryRun && !r.facts.leaving() {
		if err := reconcilers.AddFinalizer(ctx, r.resource, r.Finalizer); err != nil {
			return err
		}
	}
	if r.refers {
		if err := r.loadReferences(ctx); err != nil {
			return err
		}
	}
	if err := r.hooks(ctx, "post-read", r.Hooks.PostRead); err != nil {
		return err
	}
	if err := r.selectCluster(ctx); err != nil {
		return err
	}
	if r.facts.leaving() {
		return r.remove(ctx)
	}
	return r.deploy(ctx)
}

// completePolicies adds the policies of the node to those of the resource.
func (r *ComponentReconciler[T]) completePolicies(c *generator.Configuration) {
	c.AdoptionPolicy = cmp.Or(c.AdoptionPolicy, r.policies.AdoptionPolicy)
	c.UpdatePolicy = cmp.Or(c.UpdatePolicy, r.policies.UpdatePolicy)
	c.DeletePolicy = cmp.Or(c.DeletePolicy, r.policies.DeletePolicy)
	c.PrunePolicy = cmp.Or(c.PrunePolicy, r.policies.PrunePolicy)
	c.MissingNamespacesPolicy = cmp.Or(c.MissingNamespacesPolicy, r.policies.MissingNamespacesPolicy)
}

// deploy rolls the component out.
func (r *request[T]) deploy(ctx context.Context) error {
	parameters, err := r.parameters(ctx)
	if err != nil {
		return err
	}
	if err := r.hooks(ctx, "pre-reconcile", r.Hooks.PreReconcile); err != nil {
		return err
	}
	if err := r.rollOut(ctx, parameters); err != nil || !r.facts.done || r.facts.suspends {
		return err
	}
	return r.hooks(ctx, "post-reconcile", r.Hooks.PostReconcile)
}

// parameters returns what the generator gets, and computes the revision that this is.
func (r *request[T]) parameters(ctx context.Context) (generator.Unstructurable, error) {
	parameters, err := r.Parameters(ctx, r.resource)
	if err != nil {
		return nil, fmt.Errorf("unable to find the parameters: %w", err)
	}
	if err := r.computeRevision(ctx, parameters); err != nil || !r.refers {
		return parameters, err
	}
	return r.withValues(parameters)
}

// computeRevision computes the digest of what is rolled out, and which revision that is.
func (r *request[T]) computeRevision(ctx context.Context, parameters generator.Unstructurable) error {
	references, err := r.identities(ctx)
	if err != nil {
		return err
	}
	spec, annotations := parameters.ToUnstructured(), r.resource.GetAnnotations()
	digest, err := generator.ComponentDigest(spec, annotations, r.Prefix, references)
	if err != nil {
		return fmt.Errorf("the spec has no digest: %w", err)
	}
	if digester, ok := r.Generator.(generator.ContentDigester); ok {
		if r.content, err = digester.ContentDigest(r.generationContext(ctx)); err != nil {
			return err
		}
	}
	last, _, _ := strings.Cut(r.status.LastProcessingDigest, "/")
	r.digest = withContent(r.status.LastProcessingDigest, digest, r.content)
	r.facts.changed = r.status.ProcessingDigest != "" && r.status.ProcessingDigest != r.digest
	if last != r.digest {
		r.revision = r.status.Revision + 1
	}
	return nil
}

// withContent returns the digest of a component whose objects are made from content. last is what was recorded of the
// last roll-out. A digest from before content was recorded stays as long as nothing changes.
func withContent(last, digest, content string) string {
	former, known, recorded := strings.Cut(last, "/")
	if content == "" || former == digest && (!recorded || known == content) {
		return digest
	}
	both, _ := generator.ComponentDigest([]string{digest, content}, nil, "", nil) // texts only
	return both
}

// keepRevision counts the revision. What the generator refuses never was one.
func (r *request[T]) keepRevision() {
	r.status.Revision, r.status.LastProcessingDigest = r.revision, r.digest
	if r.content != "" {
		r.status.LastProcessingDigest += "/" + r.content
	}
}

// identities are those of what the component refers to.
func (r *request[T]) identities(ctx context.Context) (map[string]string, error) {
	if r.References == nil {
		return r.references, nil
	}
	identities, err := r.References(ctx, r.resource)
	if err != nil {
		return nil, fmt.Errorf("unable to find the references: %w", err)
	}
	if len(r.references) == 0 {
		return identities, nil
	}
	all := maps.Clone(r.references)
	maps.Copy(all, identities)
	return all, nil
}

func (r *request[T]) generationContext(ctx context.Context) context.Context {
	generation := generator.NewContext(ctx).WithReconcilerName(r.Prefix)
	if local, _, err := r.localClient(ctx); err == nil {
		// Without it, the operator's own client must not take its place.
		generation = generation.WithLocalClient(local)
	}
	if r.target != nil {
		generation = generation.WithClient(r.target.client).WithDiscovery(r.target.discovery)
	}
	return generation.
		WithComponent(r.resource).
		WithComponentNamespace(r.resource.GetNamespace()).
		WithComponentName(r.resource.GetName()).
		WithComponentDigest(r.digest).
		WithComponentRevision(r.revision)
}

// hooks calls the hooks with a name, such as pre-delete, in order, until one fails.
func (r *request[T]) hooks(ctx context.Context, name string, hooks []generator.Hook[T]) error {
	if r.dryRun || len(hooks) == 0 {
		return nil
	}
	hooked := r.generationContext(ctx)
	for i, hook := range hooks {
		if err := hook(hooked, r.config.Client, r.resource); err != nil {
			return fmt.Errorf("%s hook %d failed: %w", name, i, err)
		}
	}
	return nil
}

// engine returns the engine of the component.
func (r *request[T]) engine() *engine.Engine {
	owner := r.owner
	return &engine.Engine{
		Client:    r.target.client,
		Discovery: r.target.discovery,
		Observer:  r.target.observer,
		Store:     r.store,
		Guard: &foreign.Guard{
			Client:        r.target.client,
			Discovery:     r.target.discovery,
			OwnerLabel:    r.Prefix + "/" + generator.LabelOwnerID,
			OwnerID:       owner.OwnerID,
			FormerOwnerID: r.formerOwnerID,
			FieldManager:  r.FieldManager,
			Fresh:         r.target.fresh,
			Margin:        r.FenceMargin,
			Memory:        &r.state.namespaces,
		},
		Memory:       &r.state.engine,
		Component:    owner,
		Mark:         execute.Mark{Prefix: r.Prefix, ID: owner.OwnerID, Owner: owner.Owner},
		FieldManager: r.FieldManager,
		Reclaim:      r.ReclaimFrom,
		Parallel:     r.Parallel,
	}
}

// runEngine runs the engine of the component.
func (r *request[T]) runEngine(ctx context.Context, task engine.Task) (*engine.Report, error) {
	// The writes of the request itself must not wake the resource.
	defer r.target.observer.Pause(r.owner)()
	report, err := r.engine().Run(ctx, task)
	if report.Created() {
		err = errors.Join(err, r.undoIfEnding(ctx))
	}
	if !r.dryRun {
		r.source.setCoalesceDelay(r.owner.Watcher, len(report.Inventory))
		if len(report.Results) > 0 {
			tellResults(ctx, report.Results)
		}
		if len(report.Left) > 0 {
			r.tellLeft(ctx, report.Left)
		}
		r.state.logAuxiliary(ctx, task.Objects, report)
	}
	return report, err
}

// assess notes how far the engine came.
func (r *request[T]) assess(report *engine.Report, err error) error {
	r.report = report
	r.facts.recorded = report.Recorded > 0
	r.facts.done = err == nil && report.Plan.Done && !r.facts.recorded
	r.facts.empty = r.emptySet(&report.Plan)
	r.facts.blocked = hasObstacle(report, plan.ObstacleBlocked)
	r.facts.contested = hasObstacle(report, plan.ObstacleContested)
	obstacles := report.Plan.Obstacles
	if kept := slices.IndexFunc(obstacles, func(o plan.Obstacle) bool { return o.Kept }); kept >= 0 {
		r.facts.kept = obstacles[kept].String()
	}
	r.facts.failed, r.facts.unseen, r.facts.polled = len(report.Failures) > 0, report.Waits, len(report.Polled) > 0
	r.facts.fenceAt, r.facts.unwatched = report.RetryAt, r.target.unwatched
	if !r.facts.done {
		r.facts.progress = plan.Message(report.Plan, maxMessage-maxRemarks)
	}
	if err != nil {
		return err
	}
	if r.state.unkept.Note(r.facts.recorded) > maxUnkept {
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

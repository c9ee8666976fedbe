package story

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/reconcilers"
)

// OperatorUser is the name of the user that the operator is.
const OperatorUser = "platform-operator"

// Options are what a story is told with.
type Options struct {
	// Admin connects to the cluster as somebody who may do everything. Required.
	Admin *rest.Config
	// Operator connects to the cluster as OperatorUser, who needs no rights at first. Required.
	Operator *rest.Config
	// Logger is the operator's. Default: none.
	Logger logr.Logger
	// Out is where the story is printed. Default: nowhere.
	Out io.Writer
	// Patience is how long a fact may take to come true. Default: a minute.
	Patience time.Duration
	// AfterDo is called in each step when its deed is done, before the facts are looked at. An error ends the story.
	// Optional.
	AfterDo func(ctx context.Context, step Step) error
}

// Step is something that somebody does, and what comes of it.
type Step = storytelling.Step[*World]

// Fact is something that is expected to become true by itself.
type Fact = storytelling.Fact[*World]

// World is the cluster that a story is told in, and the operator once it runs.
type World struct {
	*storytelling.Cluster

	options  Options
	operator storytelling.Operator
	// requests are those of the operator.
	requests *controlplane.Requests
	tree     string
	// said is what the condition said when a fact was last looked at that is about it.
	said string
	// before are objects as they were before something was done.
	before []client.Object
	// touches is how often the platform was annotated.
	touches int
}

// Open makes a cluster ready for the story: it installs the definition of the Platform, the role of the operator, and
// the namespace that the platform is for. Nothing that is there already is changed; it is an error, since Close would
// take it away.
//
// The caller calls Close in the end, unless Open returns an error, in which case nothing is left behind.
func Open(ctx context.Context, options Options) (*World, error) {
	options.Patience = cmp.Or(options.Patience, storytelling.Patience)
	if options.Logger.GetSink() == nil {
		options.Logger = logr.Discard()
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	admin, err := client.New(options.Admin, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("unable to connect to the cluster: %w", err)
	}
	w := &World{Cluster: &storytelling.Cluster{Client: admin}, options: options}
	if err := w.install(ctx); err != nil {
		return nil, errors.Join(err, w.Close(context.WithoutCancel(ctx)))
	}
	return w, nil
}

// Tell goes through the steps and prints them. It stops at the first that fails: the error names the step and the fact.
func (w *World) Tell(ctx context.Context, steps []Step) error {
	return storytelling.Teller[*World]{
		World:    w,
		Out:      w.options.Out,
		Patience: w.options.Patience,
		AfterDo:  w.options.AfterDo,
		Failure:  w.operator.Failure,
	}.Tell(ctx, steps)
}

// Close stops the operator and takes away all that the story has brought into the cluster. It returns when that is
// gone.
func (w *World) Close(ctx context.Context) error {
	err := w.removePlatform(ctx)
	return errors.Join(err, w.operator.Stop(), w.RemoveCreated(ctx))
}

// Abandon stops the operator and leaves the cluster as it is, for somebody else to throw away.
func (w *World) Abandon() error { return w.operator.Stop() }

// startOperator sets up the operator, as main.go of the example does, and lets it run.
func (w *World) startOperator(ctx context.Context) error {
	var config *rest.Config
	config, w.requests = controlplane.CountRequests(w.options.Operator)
	mgr, err := manager.New(config, storytelling.ManagerOptions(w.Client.Scheme(), w.options.Logger))
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	root := controller.New(reconcilers.NewConfig(mgr, &v1alpha1.Platform{}, 10*time.Hour))
	root.AfterReconcile = func(_ context.Context, request reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
		w.operator.Count(request.Name)
		return result, err
	}
	w.tree = root.Describe().String()
	if err := root.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("unable to set up the operator: %w", err)
	}
	// It goes on while the platform is removed.
	w.operator.Start(ctx, mgr)
	return nil
}

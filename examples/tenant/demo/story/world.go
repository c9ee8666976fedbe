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

	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

const (
	// OperatorUser is the name of the user that the operator is.
	OperatorUser = "tenant-operator"
	// HubUser is the name of the user that the operator is on the hub, where the defaults are. The cluster of the story
	// plays the hub.
	HubUser = "tenant-operator-hub"
)

// Options are what a story is told with.
type Options struct {
	// Admin connects to the cluster as somebody who may do everything. Required.
	Admin *rest.Config
	// Operator connects to the cluster as OperatorUser, who needs no rights at first. Required.
	Operator *rest.Config
	// Hub connects to the cluster as HubUser, who needs no rights at first. Required.
	Hub *rest.Config
	// Webhooks tells that the API server can call webhooks which this process serves on the loopback interface. Steps
	// that need it are left out otherwise.
	Webhooks bool
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

// World is the cluster that a story is told in, the directory beside it, and the operator once it runs.
type World struct {
	*storytelling.Cluster

	options   Options
	directory *directory.Memory
	operator  *operator
	warnings  *warnings
	// answers are what the API server has said to somebody, for a step to show.
	answers []string
	// before are objects as they were before something was done, by what they are to the step.
	before map[string]client.Object
	// parts are those of tenants as rememberParts has found them.
	parts map[string][]client.Object
	// runs is how often each tenant was reconciled before something was done.
	runs map[string]int
	// touches is how often all tenants were annotated.
	touches int
}

// Open makes a cluster ready for the story: it installs the definition of the Tenant, the roles of the operator, and
// the defaults of tenants. Nothing that is there already is changed; it is an error, since Close would take it away.
//
// The caller calls Close in the end, unless Open returns an error, in which case nothing is left behind.
func Open(ctx context.Context, options Options) (*World, error) {
	if options.Out == nil {
		options.Out = io.Discard
	}
	options.Patience = cmp.Or(options.Patience, storytelling.Patience)
	if options.Logger.GetSink() == nil {
		options.Logger = logr.Discard()
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	w := &World{
		Cluster:   &storytelling.Cluster{},
		operator:  &operator{},
		options:   options,
		directory: &directory.Memory{},
		warnings:  &warnings{},
		before:    map[string]client.Object{},
		parts:     map[string][]client.Object{},
	}
	admin := rest.CopyConfig(options.Admin)
	admin.WarningHandler = w.warnings
	if w.Client, err = client.New(admin, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("unable to connect to the cluster: %w", err)
	}
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
		Webhooks: w.options.Webhooks,
		AfterDo:  w.options.AfterDo,
		Failure:  w.operator.Failure,
	}.Tell(ctx, steps)
}

// Close stops the operator and takes away all that the story has brought into the cluster. It returns when that is
// gone.
func (w *World) Close(ctx context.Context) error {
	err := errors.Join(w.removeWebhooks(ctx), w.removeTenants(ctx))
	return errors.Join(err, w.operator.Stop(), w.RemoveCreated(ctx))
}

// Abandon stops the operator and leaves the cluster as it is, for somebody else to throw away.
func (w *World) Abandon() error {
	return w.operator.Stop()
}

package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Operator is the name of the actor whose requests are those of the operator's first process. The others are called
// "operator-2", "operator-3" and so on.
const Operator = "operator"

const (
	// cluster is the name of the actor whose requests are those of the controllers beside the API server.
	cluster = "cluster"
	// user is the name of the actor who is the user of the story.
	user = "user"
	// apiServer is what the API server is called where it writes by itself.
	apiServer = "kube-apiserver"
)

// Options say what a cluster and an operator are like. The zero value is a cluster with an operator that does nothing.
type Options struct {
	// Operator adds the operator's controllers and webhooks to a manager, as its main function does. It is called by
	// each process of the operator, which are one after the other if it dies, and beside each other if there are
	// several replicas. What it returns and what it closes over outlives the process: memory that a process loses has
	// to be made in Operator. The context ends with the process. A process in which it fails ends, and another one
	// begins after a second, which becomes up to five minutes if more processes fail. The story fails if it fails in
	// each of the first five processes. Nil adds nothing.
	Operator func(ctx context.Context, mgr ctrl.Manager) error
	// Prepare changes what the manager of a process is made of, as a main function does before it makes the manager,
	// and returns what takes the place of Operator. The user agent of the configuration is the name of the process as
	// an actor. Nil changes nothing.
	Prepare func(ctx context.Context, config *rest.Config, options *ctrl.Options) (
		operator func(ctx context.Context, mgr ctrl.Manager) error, err error)
	// Manager are the options of managers. Left empty, as it should be, a field has the default of controller-runtime.
	// Addresses to serve at and the webhook server are ignored: metrics and probes are not served, and webhooks are
	// called in process.
	Manager ctrl.Options
	// Replicas is how many processes of the operator there are at a time. With leader election in Manager, one of them
	// works. 0 is 1.
	Replicas int
	// Rules are what the operator may do in the whole cluster, see [ReadRules]. Its requests for anything else are
	// forbidden, unless a role in Objects is bound to its [ServiceAccount]. Leader election and events need rules, too.
	// Nil lets it do everything.
	Rules []rbacv1.PolicyRule

	// Scheme has the types of the clients of the story and of the operator. Nil is that of client-go with custom
	// resource definitions.
	Scheme *runtime.Scheme
	// Definitions are the custom resource definitions in the cluster, see [ReadDefinitions].
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// ChangingDefinitions says that custom resource definitions are created, changed or deleted in the simulation. Time
	// in which nothing happens costs six times as much then. A story in which somebody writes a definition without
	// it fails.
	ChangingDefinitions bool
	// Objects exist before the operator starts. Webhook configurations among them, and conversions in Definitions, are
	// trusted without the bundle of an authority, and so are those that cert-manager injects one into: which service
	// they name does not matter, the operator's processes are called by turns.
	Objects []client.Object

	// Pods says what becomes of a Pod. Nil has each run and be ready at once.
	Pods func(pod *corev1.Pod) PodBehavior

	// Always holds at each moment: the story fails at once if it does not. It is checked at each write from the start
	// of the operator on.
	Always []Invariant
	// AllowPanics says that the story goes on if the operator panics in a reconciler or a webhook, which
	// controller-runtime makes an error of.
	AllowPanics bool

	// Plan is what goes wrong. If it names no actors, its latency and chances concern the operator alone.
	Plan Plan
}

// actor returns the name of a replica.
func actor(replica int) string {
	if replica == 0 {
		return Operator
	}
	return fmt.Sprintf("%s-%d", Operator, replica+1)
}

// actors returns the names of all replicas.
func (o Options) actors() []string {
	var names []string
	for i := range max(o.Replicas, 1) {
		names = append(names, actor(i))
	}
	return names
}

// isOperator reports whether an actor is one of the operator's processes.
func (o Options) isOperator(actor string) bool { return slices.Contains(o.actors(), actor) }

// complete returns the options with defaults, or an error that names what cannot be meant.
func (o Options) complete() (Options, error) {
	if o.Replicas < 0 {
		return o, fmt.Errorf("options: Replicas is %d", o.Replicas)
	}
	if o.Scheme == nil {
		o.Scheme = runtime.NewScheme()
		err := errors.Join(clientgoscheme.AddToScheme(o.Scheme), apiextensionsv1.AddToScheme(o.Scheme))
		if err != nil {
			return o, err
		}
	}
	for _, invariant := range o.Always {
		if invariant.Check == nil {
			return o, fmt.Errorf("options: Always: %q has no Check", invariant.Name)
		}
	}
	if len(o.Plan.Actors) == 0 {
		o.Plan.Actors = o.actors()
	}
	if err := o.Plan.Validate(); err != nil {
		return o, fmt.Errorf("options: Plan: %w", err)
	}
	return o, nil
}

// leftovers is how long the libraries take to end what they have begun, see [server.Server.Stop].
const leftovers = 2 * time.Minute

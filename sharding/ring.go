package sharding

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/reconcilers"

	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Shard is one process of a ring. [Ring.Join] makes it. Its methods:
//
//	Ring() string                                     // the name of the ring
//	Name() string                                     // the name of the shard
//	Manager(mgr manager.Manager) manager.Manager      // mgr, which refuses what needs a leader and is not sharded
type Shard = shard.Shard

// ErrNotHeld is wrapped by the error of what a process does not do because it does not hold its Lease: a request of a
// resource does not begin, and a write is not sent. It may be done later, or by another process.
var ErrNotHeld = shard.ErrNotHeld

// Ring is a ring of processes that share the resources of an operator.
type Ring struct {
	// Name is the name of the ControllerRing. Required.
	Name string

	// Shard is the name of the process in the ring, and of its Lease. Two processes with one name do not share
	// resources: the second waits until the first has gone. Default: the host name, which is the name of the Pod.
	Shard string
}

// renewDeadline is the default of controller-runtime.
const renewDeadline = 10 * time.Second

// Join makes the process with config and options a shard of the ring. Roots are all roots of the operator; only what
// they describe counts, so they need no config.
//
//   - The manager runs its controllers while it holds the Lease of the shard, which is in LeaderElectionNamespace of
//     options or, by default, in the namespace of the Pod. Leader election is configured for that, with the durations
//     of options. The Lease is released when all requests have ended; if they do not end in time, it expires. The
//     metrics of leader election have the LeaderElectionID of options as their name or, by default, that of the ring.
//   - The cache of the manager has only the shard's objects of the types that the roots reconcile and own. A type that
//     a node also reads otherwise stays as it is.
//   - Clients that are made of config from then on refuse to write while the shard does not hold its Lease, with an
//     error that wraps [ErrNotHeld].
//
// It returns an error that names what cannot be sharded, and why: a root that reconciles one object, two roots that
// reconcile the same type, a type that one root reconciles and another owns or reads. When the manager is made, it
// returns an error for a cluster-scoped type that a root reconciles: a ring does not assign its objects. The set-up of
// a root returns an error if its tree owns or reads other types than the one that was given here.
func (r Ring) Join(config *rest.Config, options *manager.Options, roots ...reconcilers.Describer) (*Shard, error) {
	s, err := r.join(config, options, roots)
	if err != nil {
		return nil, fmt.Errorf("unable to join the ring %q: %w", r.Name, err)
	}
	return s, nil
}

func (r Ring) join(config *rest.Config, options *manager.Options, roots []reconcilers.Describer) (*Shard, error) {
	name := r.Shard
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("the shard has no name: %w", err)
		}
		name = host
	}
	s, err := shard.New(r.Name, name, ptr.Deref(options.RenewDeadline, renewDeadline))
	if err != nil {
		return nil, err
	}
	if options.LeaderElectionResourceLockInterface != nil {
		return nil, errors.New("the options of the manager have a LeaderElectionResourceLockInterface already")
	}
	namespace := options.LeaderElectionNamespace
	if namespace == "" {
		if namespace, err = podNamespace(); err != nil {
			return nil, err
		}
	}
	selected, err := selectTypes(s, options, roots)
	if err != nil {
		return nil, err
	}
	leases, err := coordinationclient.NewForConfig(leaseConfig(config, options))
	if err != nil {
		return nil, fmt.Errorf("unable to make a client for its Lease: %w", err)
	}
	options.NewCache = selected.newCache(options.NewCache)
	options.LeaderElection = true
	options.LeaderElectionNamespace = namespace
	options.LeaderElectionID = cmp.Or(options.LeaderElectionID, r.Name)
	options.LeaderElectionReleaseOnCancel = true
	options.LeaderElectionResourceLockInterface = shard.NewLock(s, leases, namespace)
	shard.Guard(s, config)
	return s, nil
}

// leaseConfig returns the config of the client that writes the Lease. A request is given up in time for another.
func leaseConfig(config *rest.Config, options *manager.Options) *rest.Config {
	if options.LeaderElectionConfig != nil {
		config = options.LeaderElectionConfig
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "shard-lease")
	config.Timeout = ptr.Deref(options.RenewDeadline, renewDeadline) / 2
	return config
}

// namespaceFile has the namespace of the Pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func podNamespace() (string, error) {
	content, err := os.ReadFile(namespaceFile)
	if namespace := string(bytes.TrimSpace(content)); err == nil && namespace != "" {
		return namespace, nil
	}
	return "", errors.New("the namespace of the Lease is not known outside of a cluster: " +
		"set LeaderElectionNamespace in the options of the manager")
}

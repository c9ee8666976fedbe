package shard

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Manager returns mgr as a manager to which nothing can be added that needs a leader and is not sharded: each process
// of the ring would run it. What runs in each process says so by its method NeedLeaderElection, see
// [manager.LeaderElectionRunnable].
func (s *Shard) Manager(mgr manager.Manager) manager.Manager {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.managed = true
	return &sharded{Manager: mgr, shard: s}
}

// Of returns the shard whose manager a cluster is, or nil.
func Of(c cluster.Cluster) *Shard {
	if mgr, ok := c.(*sharded); ok {
		return mgr.shard
	}
	return nil
}

// sharded is the manager of a shard. A pointer to it can be compared, as it names a cluster.
type sharded struct {
	manager.Manager
	shard *Shard
}

// Add implements [manager.Manager].
func (m *sharded) Add(runnable manager.Runnable) error {
	if needsLeader(runnable) && !m.shard.admitting() {
		return fmt.Errorf("unable to add %T to the manager of the ring %q: it needs a leader and is not sharded, "+
			"so each shard would run it: give the config of its root the option WithShard, "+
			"or let its method NeedLeaderElection return false", runnable, m.shard.ring)
	}
	return m.Manager.Add(runnable)
}

// needsLeader reports whether a manager runs something only while it is the leader.
func needsLeader(runnable manager.Runnable) bool {
	switch r := runnable.(type) {
	case *manager.Server:
		return r.NeedLeaderElection()
	case cluster.Cluster, webhook.Server:
		return false
	case manager.LeaderElectionRunnable:
		return r.NeedLeaderElection()
	}
	return true
}

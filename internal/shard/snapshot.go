package shard

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owned are the names of the objects of one type that an owner controls, by their UIDs.
type Owned map[types.UID]types.NamespacedName

// Snapshot has the objects of one type that owners control, by the UIDs of the owners, as the API server has had them.
type Snapshot map[types.UID]Owned

// snapshotKey identifies what a snapshot is taken of.
type snapshotKey struct {
	kind      schema.GroupVersionKind
	namespace string
}

// arrival identifies a resource that became the shard's.
type arrival struct {
	kind schema.GroupKind
	name types.NamespacedName
}

// snapshots are the last snapshots. Many resources become the shard's at the same time, when it starts and when others
// go. One snapshot is enough for all of them.
type snapshots struct {
	mu       sync.Mutex
	arrivals map[arrival]time.Time
	taken    map[snapshotKey]*snapshot
}

type snapshot struct {
	mu    sync.Mutex
	begun time.Time
	of    Snapshot
}

// snapshotLasts is how long a snapshot is kept.
const snapshotLasts = time.Minute

// Arrive notes that a resource became the shard's now.
func Arrive(s *Shard, kind schema.GroupKind, name types.NamespacedName) {
	s.snapshots.mu.Lock()
	defer s.snapshots.mu.Unlock()
	if s.snapshots.arrivals == nil {
		s.snapshots.arrivals = map[arrival]time.Time{}
	}
	s.snapshots.arrivals[arrival{kind, name}] = time.Now()
}

// Leave notes that a resource is the shard's no more.
func Leave(s *Shard, kind schema.GroupKind, name types.NamespacedName) {
	s.snapshots.mu.Lock()
	defer s.snapshots.mu.Unlock()
	delete(s.snapshots.arrivals, arrival{kind, name})
}

// ArrivedAt returns when a resource became the shard's. If that is not known, it returns the present time.
func ArrivedAt(s *Shard, kind schema.GroupKind, name types.NamespacedName) time.Time {
	s.snapshots.mu.Lock()
	defer s.snapshots.mu.Unlock()
	if at, ok := s.snapshots.arrivals[arrival{kind, name}]; ok {
		return at
	}
	return time.Now()
}

// SnapshotSince returns what is owned in a namespace, as the API server has had it at some time after since. It calls
// take if there is no such snapshot. Callers of one namespace and kind wait for each other.
func SnapshotSince(
	s *Shard, kind schema.GroupVersionKind, namespace string, since time.Time, take func() (Snapshot, error),
) (Snapshot, error) {
	key := snapshotKey{kind, namespace}
	s.snapshots.mu.Lock()
	if s.snapshots.taken == nil {
		s.snapshots.taken = map[snapshotKey]*snapshot{}
	}
	last, ok := s.snapshots.taken[key]
	if !ok {
		last = &snapshot{}
		s.snapshots.taken[key] = last
	}
	s.snapshots.mu.Unlock()

	last.mu.Lock()
	defer last.mu.Unlock()
	if last.begun.After(since) {
		return last.of, nil
	}
	begun := time.Now()
	of, err := take()
	if err != nil {
		return nil, err
	}
	last.begun, last.of = begun, of
	time.AfterFunc(snapshotLasts, func() { s.snapshots.drop(key, begun) })
	return of, nil
}

// drop drops a snapshot that was begun at that time.
func (s *snapshots) drop(key snapshotKey, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.taken[key]; last != nil {
		last.mu.Lock()
		defer last.mu.Unlock()
		if last.begun.Equal(begun) {
			delete(s.taken, key)
		}
	}
}

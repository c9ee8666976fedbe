package shard

import (
	"context"
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

// snapshots are the last snapshots. Many resources become the shard's at the same time, when it starts and when others
// go. One snapshot is enough for all of them.
type snapshots struct {
	mu       sync.Mutex
	arrivals map[Resource]time.Time
	taken    map[snapshotKey]*snapshot
}

type snapshot struct {
	// turn has one item while nobody takes the snapshot. No lock is held during a request: those who only say what
	// arrives would wait for it.
	turn chan struct{}

	// begun and of belong to the lock of the snapshots.
	begun time.Time
	of    Snapshot
}

// snapshotLasts is how long a snapshot is kept.
const snapshotLasts = time.Minute

// Arrive notes that a resource became the shard's now.
func Arrive(s *Shard, of Resource) {
	s.snapshots.mu.Lock()
	defer s.snapshots.mu.Unlock()
	if s.snapshots.arrivals == nil {
		s.snapshots.arrivals = map[Resource]time.Time{}
	}
	s.snapshots.arrivals[of] = time.Now()
	s.counters.arrived.Add(1)
}

// ForgetArrival forgets when a resource became the shard's, so that nothing that was read before is believed for it.
func ForgetArrival(s *Shard, of Resource) {
	s.snapshots.mu.Lock()
	defer s.snapshots.mu.Unlock()
	delete(s.snapshots.arrivals, of)
}

// ArrivedAt returns when a resource became the shard's. If that is not known, it returns the present time.
func ArrivedAt(s *Shard, of Resource) time.Time {
	s.snapshots.mu.Lock()
	defer s.snapshots.mu.Unlock()
	if at, ok := s.snapshots.arrivals[of]; ok {
		return at
	}
	return time.Now()
}

// SnapshotSince returns what is owned in a namespace, as the API server has had it at some time after since. It calls
// take if there is no such snapshot. Callers of one namespace and kind wait for each other, until their context ends.
func SnapshotSince(
	ctx context.Context, s *Shard, kind schema.GroupVersionKind, namespace string, since time.Time,
	take func() (Snapshot, error),
) (Snapshot, error) {
	key := snapshotKey{kind, namespace}
	last := s.snapshots.last(key)
	select {
	case <-last.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { last.turn <- struct{}{} }()
	if of, ok := s.snapshots.since(last, since); ok {
		return of, nil
	}
	begun := time.Now()
	of, err := take()
	if err != nil {
		s.snapshots.drop(key, last.begun)
		return nil, err
	}
	s.snapshots.keep(key, last, begun, of)
	return of, nil
}

// last returns the last snapshot of a key, which may be empty.
func (s *snapshots) last(key snapshotKey) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = map[snapshotKey]*snapshot{}
	}
	last, ok := s.taken[key]
	if !ok {
		last = &snapshot{turn: make(chan struct{}, 1)}
		last.turn <- struct{}{}
		s.taken[key] = last
	}
	return last
}

// since returns what a snapshot has. It reports whether that was taken after a time.
func (s *snapshots) since(last *snapshot, since time.Time) (Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return last.of, last.begun.After(since)
}

// keep keeps a snapshot for a while.
func (s *snapshots) keep(key snapshotKey, last *snapshot, begun time.Time, of Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last.begun, last.of = begun, of
	time.AfterFunc(snapshotLasts, func() { s.drop(key, begun) })
}

// drop drops a snapshot that was begun at that time.
func (s *snapshots) drop(key snapshotKey, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.taken[key]; last != nil && last.begun.Equal(begun) {
		delete(s.taken, key)
	}
}

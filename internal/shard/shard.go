// Package shard has what a process is to its ring of shards: its Lease, what it may write, and which objects are its
// own.
package shard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of labels, without the name of the ring.
const (
	// RingLabel is the key of the label that says to which ring the Lease of a shard belongs.
	RingLabel = "alpha.sharding.timebertt.dev/controllerring"

	shardPrefix = "shard.alpha.sharding.timebertt.dev/"
	drainPrefix = "drain.alpha.sharding.timebertt.dev/"
)

// Shard is one process of a ring. [New] makes it. It is safe for concurrent use.
type Shard struct {
	ring, name string
	guard      *guard
	snapshots  snapshots
	counters   *counters

	mu sync.Mutex
	// kinds are those of which the cache has the objects of the shard alone; true for the kinds of main resources.
	kinds map[schema.GroupVersionKind]bool
	// compare returns an error if a tree is not the one with which the shard joined the ring; nil if that is not known.
	compare func(tree any) error
	// taken are the kinds of the roots that were added to the manager.
	taken map[schema.GroupVersionKind]bool
	// adding is true while a root that is sharded adds its controller to the manager.
	adding sync.Mutex
	admits bool
	// managed is true once a manager refuses what is not sharded.
	managed bool
}

// New returns the shard of that name. It may write for as long as deadline after it has begun to renew its Lease. It
// returns an error if a name cannot be that of a ring, of a Lease, or the value of a label.
func New(ring, name string, deadline time.Duration) (*Shard, error) {
	if problems := content.IsLabelKey(shardPrefix + ring); ring == "" || len(problems) > 0 {
		return nil, fmt.Errorf("the ring cannot have the name %q: it has to be that of a ControllerRing, "+
			"of at most 63 characters: %s", ring, strings.Join(problems, ", "))
	}
	problems := slices.Concat(content.IsDNS1123Subdomain(name), content.IsLabelValue(name))
	if name == "" || len(problems) > 0 {
		return nil, fmt.Errorf("the shard cannot have the name %q, since it is that of a Lease and the value of a "+
			"label: %s", name, strings.Join(problems, ", "))
	}
	counters := &counters{}
	return &Shard{
		ring: ring, name: name, guard: &guard{shard: name, deadline: deadline, counters: counters}, counters: counters,
		kinds: map[schema.GroupVersionKind]bool{},
	}, nil
}

// Ring returns the name of the ring.
func (s *Shard) Ring() string { return s.ring }

// Name returns the name of the shard, which is that of its Lease.
func (s *Shard) Name() string { return s.name }

// Selector selects the objects of the shard.
func Selector(s *Shard) labels.Selector {
	return labels.SelectorFromSet(labels.Set{shardPrefix + s.ring: s.name})
}

// Duty says what a shard has to do with an object of a main resource.
type Duty int

const (
	// Ignore means that the object is not the shard's.
	Ignore Duty = iota
	// Reconcile means that the object is the shard's.
	Reconcile
	// GiveBack means that the object is the shard's, and is to become that of another.
	GiveBack
)

// DutyFor returns what the shard has to do with an object.
func DutyFor(s *Shard, obj client.Object) Duty {
	has := obj.GetLabels()
	if has[shardPrefix+s.ring] != s.name {
		return Ignore
	}
	if IsDraining(s, obj) {
		return GiveBack
	}
	return Reconcile
}

// IsDraining reports whether the ring asks for an object back.
func IsDraining(s *Shard, obj client.Object) bool {
	_, drains := obj.GetLabels()[drainPrefix+s.ring]
	return drains
}

// IsLabelled reports whether an object has labels of the ring.
func IsLabelled(s *Shard, obj client.Object) bool {
	_, assigned := obj.GetLabels()[shardPrefix+s.ring]
	return assigned || IsDraining(s, obj)
}

// Unassign takes the labels of the ring off an object in memory.
func Unassign(s *Shard, obj client.Object) {
	others := maps.Clone(obj.GetLabels())
	delete(others, shardPrefix+s.ring)
	delete(others, drainPrefix+s.ring)
	if len(others) == 0 {
		others = nil
	}
	obj.SetLabels(others)
}

// KeepLabels gives an object in memory the labels of the ring that actual has, and no others of the ring. They are the
// ring's to set, on what the shard writes too.
func KeepLabels(s *Shard, actual, obj client.Object) {
	has, wanted := obj.GetLabels(), actual.GetLabels()
	for _, key := range []string{shardPrefix + s.ring, drainPrefix + s.ring} {
		value, isWanted := wanted[key]
		if got, isThere := has[key]; isThere == isWanted && got == value {
			continue
		}
		// The author may use one map for several objects.
		if has = maps.Clone(has); has == nil {
			has = map[string]string{}
		}
		if isWanted {
			has[key] = value
		} else {
			delete(has, key)
		}
		obj.SetLabels(has)
	}
}

// Filter notes that the cache has the objects of the shard alone of a kind. Main is true for a main resource.
func Filter(s *Shard, kind schema.GroupVersionKind, main bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[kind] = main
}

// Unfilter notes that the cache has all objects of a kind.
func Unfilter(s *Shard, kind schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, kind)
}

// Filters reports whether the cache has the objects of the shard alone of a kind, and whether that is the kind of a
// main resource. A nil shard filters nothing.
func Filters(s *Shard, kind schema.GroupVersionKind) (filters, main bool) {
	if s == nil {
		return false, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	main, filters = s.kinds[kind]
	return filters, main
}

// Begin notes that a request of a resource begins. The caller calls end when it has ended. It returns an error if the
// shard does not hold its Lease.
func Begin(s *Shard) (end func(), err error) { return s.guard.begin() }

// Hold has the shard hold its Lease from now on for as long as the renew deadline. It is for tests.
func Hold(s *Shard) { s.guard.renewed(time.Now()) }

// CompareTrees has [Admit] call compare with the description of each tree. It returns an error if the cache is made for
// another tree.
func CompareTrees(s *Shard, compare func(tree any) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compare = compare
}

// Admit lets do add a controller whose root is sharded, and reconciles resources of a kind, to the manager. Tree is the
// description of the root. It returns an error if the manager is not that of the shard, or if the shard did not join
// the ring for that root, or with another tree.
func Admit(s *Shard, kind schema.GroupVersionKind, tree any, do func() error) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.mu.Lock()
	managed, joined, taken, compare := s.managed, s.kinds[kind], s.taken[kind], s.compare
	s.admits = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.admits = false
		s.mu.Unlock()
	}()
	switch {
	case !managed:
		return errUnmanaged
	case !joined || taken:
		return fmt.Errorf("the shard did not join the ring %q for this root of %s: give each root to Join",
			s.ring, kind.Kind)
	}
	if compare != nil {
		if err := compare(tree); err != nil {
			return fmt.Errorf("the shard joined the ring %q with another tree for %s: give the same one to Join: %w",
				s.ring, kind.Kind, err)
		}
	}
	if err := do(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = map[schema.GroupVersionKind]bool{}
	}
	s.taken[kind] = true
	return nil
}

var errUnmanaged = errors.New("the manager does not refuse what is not sharded: " +
	"set up with the manager that the method Manager of the shard returns")

// admitting reports whether what is added to the manager is sharded.
func (s *Shard) admitting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.admits
}

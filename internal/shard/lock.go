package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

// ProcessAnnotation is the key of the annotation of a Lease with the process that wrote it last. Two processes may have
// the name of one shard.
const ProcessAnnotation = "espalier.dev/process"

// Lock is the Lease of a shard, as the lock of a leader election. It writes what leader election does not, and keeps
// the labels and annotations of others. A Lease of the shard's own name that another process wrote counts as held by
// that process. A process that has lost its Lease does not get it again: another may have its objects, and what it
// remembers of them holds no more. It has to start anew.
type Lock struct {
	shard   *Shard
	client  coordinationclient.LeaseInterface
	at      string
	process string
	// lease is the Lease as it was read or written last. An election is one goroutine.
	lease *coordinationv1.Lease
	// held is true once this process has held the Lease.
	held bool
}

var _ resourcelock.Interface = (*Lock)(nil)

// NewLock returns the lock of a shard, in a namespace.
func NewLock(s *Shard, client coordinationclient.LeasesGetter, namespace string) *Lock {
	return &Lock{
		shard: s, client: client.Leases(namespace), at: namespace + "/" + s.name, process: string(uuid.NewUUID()),
	}
}

// Get implements [resourcelock.Interface].
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lease, err := l.client.Get(ctx, l.shard.name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	l.lease = lease
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	if record.HolderIdentity == l.shard.name && !l.isOurs(lease) {
		record.HolderIdentity += " (another process)"
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

// isOurs reports whether this process has written a Lease last, and holds it.
func (l *Lock) isOurs(lease *coordinationv1.Lease) bool {
	return ptr.Deref(lease.Spec.HolderIdentity, "") == l.shard.name && lease.Annotations[ProcessAnnotation] == l.process
}

// lost ends what the shard does, since it had a Lease that it has not any more.
func (l *Lock) lost() error {
	l.shard.guard.end(endedLost)
	return fmt.Errorf("the shard has lost its Lease %s, since %s: it is not taken again before the process has "+
		"started anew", l.at, endedLost)
}

// Create implements [resourcelock.Interface].
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.held {
		return l.lost()
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.shard.name}}
	return l.write(ctx, lease, record, func(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return l.client.Create(ctx, lease, metav1.CreateOptions{})
	})
}

var errNotRead = errors.New("the Lease was neither read nor created")

// Update implements [resourcelock.Interface]. A record without a holder releases the Lease.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.lease == nil {
		return errNotRead
	}
	switch ours := l.isOurs(l.lease); {
	case ours || !l.held && record.HolderIdentity != "":
	case record.HolderIdentity == "":
		return fmt.Errorf("the Lease %s is not released: another process holds it", l.at)
	default:
		return l.lost()
	}
	if record.HolderIdentity == "" {
		if err := l.shard.guard.giveBack(); err != nil {
			return err
		}
	}
	return l.write(ctx, l.lease.DeepCopy(), record, func(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return l.client.Update(ctx, lease, metav1.UpdateOptions{})
	})
}

// write has send write a Lease with the record.
func (l *Lock) write(
	_ context.Context, lease *coordinationv1.Lease, record resourcelock.LeaderElectionRecord,
	send func(*coordinationv1.Lease) (*coordinationv1.Lease, error),
) error {
	lease.Labels, lease.Annotations = maps.Clone(lease.Labels), maps.Clone(lease.Annotations)
	metav1.SetMetaDataLabel(&lease.ObjectMeta, RingLabel, l.shard.ring)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, ProcessAnnotation, l.process)
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	// The Lease may have been renewed at any time after that.
	begin := time.Now()
	written, err := send(lease)
	if err != nil {
		return fmt.Errorf("unable to write the Lease %s of the shard: %w", l.at, err)
	}
	l.lease = written
	if record.HolderIdentity == l.shard.name {
		l.held = true
		l.shard.guard.renewed(begin)
	}
	return nil
}

// RecordEvent implements [resourcelock.Interface]. The Lease itself says all.
func (l *Lock) RecordEvent(string) {}

// Identity implements [resourcelock.Interface].
func (l *Lock) Identity() string { return l.shard.name }

// Describe implements [resourcelock.Interface].
func (l *Lock) Describe() string { return l.at }

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HeldError says that another command runs for a release.
type HeldError struct{ Name, Holder string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("another command runs for the component %q: that of %s", e.Name, e.Holder)
}

// Lock is a Lease that is renewed until it is released.
type Lock struct {
	// Context ends when the lease is lost.
	Context context.Context

	client client.Client
	lease  *coordinationv1.Lease
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// Acquire takes the Lease of a release. If somebody holds it, it looks for as long as that holder has said whether the
// holder renews it: then the error is a [HeldError]. A holder that was killed does not, and loses it. It compares
// answers of the API server with each other, and not with a clock. wait is called before it waits. In a namespace that
// is being deleted no Lease can be made: there the lock keeps nobody away, and what is written is guarded by versions
// alone.
func (c *Cluster) Acquire(
	ctx context.Context, namespace, name string, duration time.Duration, wait func(holder string),
) (*Lock, error) {
	key := client.ObjectKey{Namespace: namespace, Name: secretName(name)}
	me := holder()
	for seen := (*coordinationv1.Lease)(nil); ; {
		lease := &coordinationv1.Lease{}
		err := c.Client.Get(ctx, key, lease)
		exists := err == nil
		switch {
		case apierrs.IsNotFound(err):
			lease.Namespace, lease.Name = key.Namespace, key.Name
		case err != nil:
			return nil, fmt.Errorf("unable to read the Lease %s: %w", key, err)
		case ptr.Deref(lease.Spec.HolderIdentity, "") == "":
		case seen == nil:
			wait(*lease.Spec.HolderIdentity)
			seen = lease
			if err := sleepUntilChange(ctx, c.Client, lease); err != nil {
				return nil, err
			}
			continue
		case seen.ResourceVersion != lease.ResourceVersion:
			return nil, &HeldError{Name: name, Holder: *lease.Spec.HolderIdentity}
		}
		lease.Spec.HolderIdentity = &me
		lease.Spec.LeaseDurationSeconds = ptr.To(int32((duration + time.Second - 1) / time.Second))
		lease.Spec.AcquireTime = ptr.To(metav1.NowMicro())
		lease.Spec.RenewTime = lease.Spec.AcquireTime
		if exists {
			err = c.Client.Update(ctx, lease)
		} else {
			err = c.Client.Create(ctx, lease)
		}
		switch {
		case apierrs.IsConflict(err), apierrs.IsAlreadyExists(err):
			seen = nil // somebody else was faster
		case apierrs.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return newLock(ctx, c.Client, nil, name, duration), nil
		case apierrs.IsNotFound(err) && !exists:
			return nil, fmt.Errorf("the namespace %s does not exist: create it first", namespace)
		case err != nil:
			return nil, fmt.Errorf("unable to take the Lease %s: %w", key, err)
		default:
			return newLock(ctx, c.Client, lease, name, duration), nil
		}
	}
}

// sleepUntilChange waits until a lease changes, or its holder has lost it.
func sleepUntilChange(ctx context.Context, c client.Client, lease *coordinationv1.Lease) error {
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 1)) * time.Second
	deadline := time.NewTimer(duration)
	defer deadline.Stop()
	poll := time.NewTicker(max(duration/20, 100*time.Millisecond))
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return nil
		case <-poll.C:
		}
		now := &coordinationv1.Lease{}
		err := c.Get(ctx, client.ObjectKeyFromObject(lease), now)
		if err != nil || now.ResourceVersion != lease.ResourceVersion {
			return client.IgnoreNotFound(err)
		}
	}
}

// holder names this command to people who wait for it.
func holder() string {
	host, _ := os.Hostname() // without one, the process is enough
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return fmt.Sprintf("%s at %s, process %d (%.8s)", name, host, os.Getpid(), uuid.NewString())
}

var errLeaseLost = errors.New("the Lease of the component was lost")

func newLock(
	ctx context.Context, c client.Client, lease *coordinationv1.Lease, name string, duration time.Duration,
) *Lock {
	l := &Lock{client: c, lease: lease, ended: make(chan struct{})}
	l.Context, l.cancel = context.WithCancelCause(ctx)
	if lease == nil {
		close(l.ended)
		return l
	}
	go l.renew(name, duration)
	return l
}

// renew renews the lease until the context ends. It gives up before others may take it.
func (l *Lock) renew(name string, duration time.Duration) {
	defer close(l.ended)
	tick := time.NewTicker(duration / 5)
	defer tick.Stop()
	renewed := time.Now()
	for {
		select {
		case <-l.Context.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(l.Context, duration/3)
		next := l.lease.DeepCopy()
		next.Spec.RenewTime = ptr.To(metav1.NowMicro())
		// Others count from the write, which may be long before the answer.
		started := time.Now()
		err := l.client.Update(ctx, next)
		if apierrs.IsConflict(err) {
			// The write of an earlier renewal may have come in without its answer.
			next, err = l.reread(ctx, err)
		}
		cancel()
		switch {
		case err == nil:
			l.lease, renewed = next, started
		case l.Context.Err() != nil:
		case apierrs.IsConflict(err), apierrs.IsNotFound(err), time.Since(renewed) > duration/2:
			l.cancel(fmt.Errorf("%w: component %q: %w", errLeaseLost, name, err))
		}
	}
}

// reread returns the lease as it is now, or an error if somebody else holds it: the conflict.
func (l *Lock) reread(ctx context.Context, conflict error) (*coordinationv1.Lease, error) {
	now := &coordinationv1.Lease{}
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(l.lease), now); err != nil {
		return nil, err
	}
	if ptr.Deref(now.Spec.HolderIdentity, "") != ptr.Deref(l.lease.Spec.HolderIdentity, "") {
		return nil, conflict
	}
	return now, nil
}

// Release lets others run for the release.
func (l *Lock) Release() {
	lost := errors.Is(context.Cause(l.Context), errLeaseLost)
	l.cancel(nil)
	<-l.ended
	if lost || l.lease == nil {
		return
	}
	// The context of the command may be over. Without an answer, the lease runs out by itself.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := l.client.Delete(ctx, l.lease, client.Preconditions{ResourceVersion: &l.lease.ResourceVersion})
	if !apierrs.IsConflict(err) {
		return
	}
	// The renewal that was interrupted has come in.
	if now, err := l.reread(ctx, err); err == nil {
		_ = l.client.Delete(ctx, now, client.Preconditions{ResourceVersion: &now.ResourceVersion})
	}
}

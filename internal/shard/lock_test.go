package shard_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/shard"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// record is what an election writes.
func record(holder string) resourcelock.LeaderElectionRecord {
	now := metav1.Now()
	return resourcelock.LeaderElectionRecord{
		HolderIdentity: holder, LeaseDurationSeconds: 15, AcquireTime: now, RenewTime: now,
	}
}

// A Lease of the shard's own name is that of the process that wrote it last.
func TestALeaseOfTheOwnNameIsNotShared(t *testing.T) {
	ctx, client := t.Context(), fake.NewClientset()
	first := shard.NewLock(newShard(t), client.CoordinationV1(), "ns")
	second := shard.NewLock(newShard(t), client.CoordinationV1(), "ns")
	holder := func(l *shard.Lock) string {
		t.Helper()
		got, _, err := l.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return got.HolderIdentity
	}
	if err := first.Create(ctx, record("one")); err != nil {
		t.Fatal(err)
	}
	if got := holder(first); got != first.Identity() {
		t.Errorf("the process that wrote the Lease finds the holder %q, want %q", got, first.Identity())
	}
	if got := holder(second); got == second.Identity() || !strings.Contains(got, "another process") {
		t.Errorf("another process of the name finds the holder %q, want that another has it", got)
	}
	if err := second.Update(ctx, record("one")); err != nil {
		t.Fatal(err)
	}
	if got := holder(first); got == first.Identity() {
		t.Errorf("the process that lost the Lease finds the holder %q, want that another has it", got)
	}
}

// A process that has lost its Lease does not get it again, and does nothing more.
func TestALostLeaseIsNotTakenAgain(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, leases coordinationclient.LeaseInterface){
		"it was deleted": func(t *testing.T, leases coordinationclient.LeaseInterface) {
			if err := leases.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"it was deleted, and another process has it": func(t *testing.T, leases coordinationclient.LeaseInterface) {
			if err := leases.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			setHolder(t, nil, leases, "one")
		},
		"the sharder has it": func(t *testing.T, leases coordinationclient.LeaseInterface) {
			setHolder(t, get(t, leases), leases, "sharder")
		},
		"nobody has it": func(t *testing.T, leases coordinationclient.LeaseInterface) {
			setHolder(t, get(t, leases), leases, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, client, s := t.Context(), fake.NewClientset(), newShard(t)
			lock := shard.NewLock(s, client.CoordinationV1(), "ns")
			if err := lock.Create(ctx, record("one")); err != nil {
				t.Fatal(err)
			}
			lose(t, client.CoordinationV1().Leases("ns"))
			// This is what an election does that finds its Lease expired, or gone.
			take := lock.Update
			if _, _, err := lock.Get(ctx); err != nil {
				take = lock.Create
			}
			if err := take(ctx, record("one")); err == nil || !strings.Contains(err.Error(), "started anew") {
				t.Errorf("to take the Lease again gives the error %v, want that the process has to start anew", err)
			}
			if _, err := shard.Begin(s); !errors.Is(err, shard.ErrNotHeld) {
				t.Errorf("a request after that gives the error %v, want ErrNotHeld", err)
			}
		})
	}
}

func get(t *testing.T, leases coordinationclient.LeaseInterface) *coordinationv1.Lease {
	t.Helper()
	lease, err := leases.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// setHolder writes the Lease as another process does. It creates the Lease if that is nil.
func setHolder(t *testing.T, lease *coordinationv1.Lease, leases coordinationclient.LeaseInterface, holder string) {
	t.Helper()
	write := func(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return leases.Update(t.Context(), lease, metav1.UpdateOptions{})
	}
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one"}}
		write = func(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
			return leases.Create(t.Context(), lease, metav1.CreateOptions{})
		}
	}
	lease.Spec.HolderIdentity = &holder
	if _, err := write(lease); err != nil {
		t.Fatal(err)
	}
}

// A process does not release the Lease that another process of its name has taken. An election reads it just before.
func TestALeaseOfAnotherIsNotReleased(t *testing.T) {
	ctx, client := t.Context(), fake.NewClientset()
	first := shard.NewLock(newShard(t), client.CoordinationV1(), "ns")
	second := shard.NewLock(newShard(t), client.CoordinationV1(), "ns")
	if err := first.Create(ctx, record("one")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := second.Get(ctx); err != nil {
		t.Fatal(err)
	}
	if err := second.Update(ctx, record("one")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := first.Get(ctx); err != nil {
		t.Fatal(err)
	}
	if err := first.Update(ctx, record("")); err == nil {
		t.Error("the release of the Lease of another process gives no error, want one")
	}
	if got := *get(t, client.CoordinationV1().Leases("ns")).Spec.HolderIdentity; got != "one" {
		t.Errorf("the holder is %q after that, want that it is still %q", got, "one")
	}
}

// What others set on the Lease stays, and what the ring needs comes back.
func TestAnUpdateKeepsWhatOthersSet(t *testing.T) {
	ctx, client := t.Context(), fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "one", Labels: map[string]string{"state": "dead"},
		Annotations: map[string]string{"theirs": "too"},
	}})
	lock := shard.NewLock(newShard(t), client.CoordinationV1(), "ns")
	if _, _, err := lock.Get(ctx); err != nil {
		t.Fatal(err)
	}
	if err := lock.Update(ctx, record("one")); err != nil {
		t.Fatal(err)
	}
	got, err := client.CoordinationV1().Leases("ns").Get(ctx, "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Labels["state"] != "dead" || got.Labels[shard.RingLabel] != "ring" || got.Annotations["theirs"] != "too" {
		t.Errorf("the Lease has the labels %v and the annotations %v, want those of others and the ring",
			got.Labels, got.Annotations)
	}
}

// The Lease is released when nothing runs any more. After that nothing begins.
func TestTheLeaseIsReleasedWhenNothingRuns(t *testing.T) {
	for name, test := range map[string]struct {
		request, write, lost bool
		want                 string
	}{
		"nothing runs":    {},
		"a request runs":  {request: true, want: "1 requests and 0 writes"},
		"a write is sent": {write: true, want: "0 requests and 1 writes"},
		"a write is lost": {lost: true, want: "writes for 1 resources were not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, client, s := t.Context(), fake.NewClientset(), newShard(t)
				lock := shard.NewLock(s, client.CoordinationV1(), "ns")
				if err := lock.Create(ctx, record("one")); err != nil {
					t.Fatal(err)
				}
				to := &server{block: make(chan struct{})}
				transport := guarded(t, s, to)
				if test.request {
					end, err := shard.Begin(s)
					if err != nil {
						t.Fatal(err)
					}
					defer end()
				}
				if test.write {
					req, _ := request(t, http.MethodPost, "/api/v1/namespaces")
					go func() { _, _ = transport.RoundTrip(req) }()
				}
				if test.lost {
					to.status = -1
					close(to.block)
					req, _ := request(t, http.MethodPost, "/api/v1/namespaces")
					_, _ = transport.RoundTrip(req)
					to.block = make(chan struct{})
				}
				synctest.Wait()
				err := lock.Update(ctx, record(""))
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("the release gives the error %v, want %q", err, test.want)
				}
				got, err := client.CoordinationV1().Leases("ns").Get(ctx, "one", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if released := *got.Spec.HolderIdentity == ""; released != (test.want == "") {
					t.Errorf("the holder is %q, want that the Lease is released: %t", *got.Spec.HolderIdentity, !released)
				}
				if _, err := shard.Begin(s); !errors.Is(err, shard.ErrNotHeld) {
					t.Errorf("a request after the release gives %v, want ErrNotHeld", err)
				}
				close(to.block)
				synctest.Wait()
			})
		})
	}
}

// A write of somebody else's record renews nothing.
func TestOnlyAnOwnRecordRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, s := fake.NewClientset(), newShard(t)
		lock := shard.NewLock(s, client.CoordinationV1(), "ns")
		if err := lock.Create(t.Context(), record("one")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(deadline - time.Second)
		if err := lock.Update(t.Context(), record("another")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := shard.Begin(s); !errors.Is(err, shard.ErrNotHeld) {
			t.Errorf("a request at the deadline gives %v, want ErrNotHeld: only an own record renews", err)
		}
	})
}

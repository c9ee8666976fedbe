package inventory_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/testing/fake"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var plane controlplanetest.Shared

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

// large returns how many records a large inventory has, or a smaller one that takes as many requests.
func large(smaller bool) int {
	if smaller {
		return 1_000
	}
	return 10_000
}

// record is one of many, as it is before its object exists.
func record(i int) apis.InventoryRecord {
	r := apis.InventoryRecord{
		Namespace: fmt.Sprintf("team-%d", i%7),
		Digest:    digest("digest", i),
		Phase:     apis.PhaseScheduledForApplication,
		Status:    apis.ObjectInProgress,
	}
	switch i % 10 {
	case 0, 1, 2, 3:
		r.Version, r.Kind, r.Name = "v1", "ConfigMap", fmt.Sprintf("settings-of-service-%d", i)
	case 4, 5:
		r.Group, r.Version, r.Kind, r.Name = "apps", "v1", "Deployment", fmt.Sprintf("service-%d", i)
		r.ApplyOrder = 1
	case 6, 7:
		r.Group, r.Version, r.Kind, r.Name = "rbac.authorization.k8s.io", "v1", "RoleBinding", fmt.Sprintf("service-%d-reads", i)
	case 8:
		r.Group, r.Version, r.Kind, r.Name = "rbac.authorization.k8s.io", "v1", "Role", fmt.Sprintf("service-%d-reads", i)
	case 9:
		r.Version, r.Kind, r.Name = "v1", "ServiceAccount", fmt.Sprintf("service-%d", i)
		r.DeletePolicy, r.DeleteOrder = apis.DeleteOrphanOnDelete, -5
	}
	return r
}

// ready is the record once its object is ready.
func ready(i int) apis.InventoryRecord {
	r := record(i)
	r.UID = uid(i)
	r.Fields = digest("fields", i)
	r.Generation = 1
	r.Phase, r.Status = apis.PhaseReady, apis.ObjectCurrent
	return r
}

func records(n int, of func(i int) apis.InventoryRecord) []apis.InventoryRecord {
	all := make([]apis.InventoryRecord, n)
	for i := range all {
		all[i] = of(i)
	}
	return all
}

func digest(what string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", what, i))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:26]
}

func uid(i int) types.UID {
	sum := sha256.Sum256(fmt.Appendf(nil, "uid %d", i))
	h := hex.EncodeToString(sum[:16])
	return types.UID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}

// noise is a message that no compression gets much smaller.
func noise(i, length int) string {
	var text strings.Builder
	for n := 0; text.Len() < length; n++ {
		text.WriteString(digest("noise", i*1000+n))
	}
	return text.String()[:length]
}

func byKey(all []apis.InventoryRecord) map[plan.Key]apis.InventoryRecord {
	m := make(map[plan.Key]apis.InventoryRecord, len(all))
	for _, r := range all {
		m[plan.KeyOf(r)] = r
	}
	return m
}

func sorted(all []apis.InventoryRecord) []apis.InventoryRecord {
	return slices.SortedFunc(slices.Values(all), func(a, b apis.InventoryRecord) int {
		return cmp.Compare(plan.KeyOf(a).String(), plan.KeyOf(b).String())
	})
}

// world is an API server in memory.
type world struct {
	inner client.WithWatch
	made  atomic.Int64
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{inner: fake.NewClientBuilder().Build()}
}

// link is a way to the server, with requests counted, that may break.
type link struct {
	client.Client

	mu sync.Mutex
	// writes and reads are how many were answered, or lost.
	writes, reads int
	// breaksAfter is how many writes are let through; negative for all.
	breaksAfter int
	// swallows: the write that breaks the link takes effect, and only its answer is lost.
	swallows bool
	// stutters: each write is sent twice, as a transport may that got no answer.
	stutters bool
	// fails is asked before each write.
	fails func(object client.Object) error
	// deletes is called before each delete.
	deletes func(object client.Object)
}

var errBroken = errors.New("the link is broken")

func (w *world) link(t testing.TB) *link {
	t.Helper()
	l := &link{breaksAfter: -1}
	l.Client = interceptor.NewClient(w.inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			return l.write(object, func() error {
				object.SetUID(types.UID(fmt.Sprintf("uid-%d", w.made.Add(1))))
				return c.Create(ctx, object, opts...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			return l.write(object, func() error { return c.Update(ctx, object, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return l.write(object, func() error { return c.Patch(ctx, object, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if l.deletes != nil {
				l.deletes(object)
			}
			return l.write(object, func() error { return c.Delete(ctx, object, opts...) })
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			return l.read(func() error { return c.Get(ctx, key, object, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return l.read(func() error { return c.List(ctx, list, opts...) })
		},
	})
	return l
}

func (l *link) write(object client.Object, send func() error) error {
	l.mu.Lock()
	l.writes++
	broken := l.breaksAfter >= 0 && l.writes > l.breaksAfter
	lost := broken && l.swallows && l.writes == l.breaksAfter+1
	stutters := l.stutters
	fails := l.fails
	l.mu.Unlock()
	if broken && !lost {
		return errBroken
	}
	if fails != nil {
		if err := fails(object); err != nil {
			return err
		}
	}
	if stutters {
		first := object.DeepCopyObject().(client.Object)
		if err := send(); err != nil {
			return err
		}
		object.SetResourceVersion(first.GetResourceVersion())
		object.SetUID(first.GetUID())
	}
	err := send()
	if lost {
		return errBroken
	}
	return err
}

func (l *link) read(send func() error) error {
	l.mu.Lock()
	l.reads++
	broken := l.breaksAfter >= 0 && l.writes > l.breaksAfter
	l.mu.Unlock()
	if broken {
		return errBroken
	}
	return send()
}

// requests returns how many there were since the last call.
func (l *link) requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.writes + l.reads
	l.writes, l.reads = 0, 0
	return n
}

func optionsFor(c client.Client, kind string) inventory.Options {
	return inventory.Options{
		Client: c, Reader: c, Kind: kind, Namespace: "default", Name: "shop-inventory",
		Labels:     map[string]string{"test.example.com/inventory": "shop"},
		CountLabel: "test.example.com/inventory-buckets",
		OwnerUID:   "the-owner",
		Finalizer:  "test.example.com/inventory",
	}
}

func open(t testing.TB, options inventory.Options) *inventory.Objects {
	t.Helper()
	store, err := inventory.NewObjects(options)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func mustLoad(t testing.TB, store inventory.Store) []apis.InventoryRecord {
	t.Helper()
	loaded, err := store.Load(t.Context())
	if err != nil {
		t.Fatalf("could not load: %v", err)
	}
	return loaded
}

func mustSave(t testing.TB, store inventory.Store, all []apis.InventoryRecord) {
	t.Helper()
	durable, err := store.Save(t.Context(), all)
	if err != nil || !durable {
		t.Fatalf("the save is durable: %v, with the error %v, want true and none", durable, err)
	}
}

// secrets returns the buckets by name.
func (w *world) secrets(t testing.TB) map[string]*corev1.Secret {
	t.Helper()
	var list corev1.SecretList
	if err := w.inner.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	byName := map[string]*corev1.Secret{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return byName
}

package storage_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	apistorage "k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/espalier-dev/espalier/simulation/internal/storage"
)

var podCodec = func() runtime.Codec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{example.AddToScheme, examplev1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
}()

// No goroutine is left at the end of the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a storage for pods whose transformer and codec tests can change.
type fixture struct {
	apistorage.Interface
	storage *storage.Storage
	values  *values
	codec   *failingCodec
}

// newFixture returns an empty storage, whose watches end with the test.
func newFixture(t testing.TB, options storage.Options) *fixture {
	t.Helper()
	f := &fixture{
		storage: storage.New(options),
		values:  &values{written: map[string][]byte{}},
		codec:   &failingCodec{Codec: podCodec},
	}
	f.values.set(storagetesting.NewPrefixTransformer([]byte("test!"), false))
	f.Interface = boundWatches{f.storage.For(f.resource("/pods/")), t.Context()}
	t.Cleanup(f.storage.Close)
	return f
}

func (f *fixture) resource(prefix string) storage.Resource {
	return storage.Resource{
		Prefix:      prefix,
		Codec:       f.codec,
		New:         func() runtime.Object { return &example.Pod{} },
		Transformer: f.values,
	}
}

// increase makes a write to another resource of the storage and returns its revision.
func (f *fixture) increase(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	others := f.storage.For(f.resource("/others/"))
	key := fmt.Sprintf("/others/%d", f.storage.Revision())
	if err := others.Create(ctx, key, &example.Pod{}, nil, 0); err != nil {
		t.Fatal(err)
	}
	return f.storage.Revision()
}

// compact compacts to a resource version. It makes a write, as kube-apiserver does to agree on a compaction.
func (f *fixture) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	revision, err := f.Versioner().ParseResourceVersion(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	f.increase(ctx, t)
	f.storage.Compact(int64(revision))
}

// validate checks that what is stored under a key can be decoded and has no resource version and no self link.
func (f *fixture) validate(_ context.Context, t *testing.T, key string) {
	t.Helper()
	obj, err := runtime.Decode(podCodec, f.values.lastWritten(key))
	if err != nil {
		t.Fatalf("cannot decode what is stored under %s: %v", key, err)
	}
	if pod := obj.(*example.Pod); pod.ResourceVersion != "" || pod.SelfLink != "" {
		t.Errorf("stored with resource version %q and self link %q, want none", pod.ResourceVersion, pod.SelfLink)
	}
}

// UpdatePrefixTransformer implements [storagetesting.InterfaceWithPrefixTransformer].
func (f *fixture) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	return f.UpdateTransformer(func(current value.Transformer) value.Transformer {
		modified := *current.(*storagetesting.PrefixTransformer)
		return modify(&modified)
	})
}

// UpdateTransformer implements [storagetesting.InterfaceWithTransformerOverride].
func (f *fixture) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	original := *f.values.transformer.Load()
	f.values.set(modify(original))
	return func() { f.values.set(original) }
}

// values is a transformer that can be exchanged, and that remembers what was written.
type values struct {
	transformer atomic.Pointer[value.Transformer]

	mutex   sync.Mutex
	written map[string][]byte
}

func (v *values) set(t value.Transformer) { v.transformer.Store(&t) }

func (v *values) TransformFromStorage(
	ctx context.Context, data []byte, dataCtx value.Context,
) (out []byte, stale bool, err error) {
	return (*v.transformer.Load()).TransformFromStorage(ctx, data, dataCtx)
}

func (v *values) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	v.mutex.Lock()
	v.written[string(dataCtx.AuthenticatedData())] = data
	v.mutex.Unlock()
	return (*v.transformer.Load()).TransformToStorage(ctx, data, dataCtx)
}

func (v *values) lastWritten(key string) []byte {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.written[key]
}

// failingCodec fails to decode while it is told so.
type failingCodec struct {
	runtime.Codec
	failing atomic.Bool
}

func (c *failingCodec) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.failing.Load() {
		return nil, nil, fmt.Errorf("cannot decode, as the test wants it")
	}
	return c.Codec.Decode(data, defaults, into)
}

// boundWatches ends the watches that the tests of k8s.io/apiserver leave behind.
type boundWatches struct {
	apistorage.Interface
	end context.Context
}

func (b boundWatches) Watch(
	ctx context.Context, key string, opts apistorage.ListOptions,
) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(b.end, cancel)
	return b.Interface.Watch(ctx, key, opts)
}

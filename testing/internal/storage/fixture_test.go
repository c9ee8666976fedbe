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
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	apistorage "k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

var (
	podScheme = newPodScheme()
	podCodec  = apitesting.TestCodec(serializer.NewCodecFactory(podScheme), examplev1.SchemeGroupVersion)
)

func newPodScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	return scheme
}

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

// untransformed returns the fixture with a store that has no transformer, and so keeps what it has decoded.
func (f *fixture) untransformed(t testing.TB) *fixture {
	t.Helper()
	resource := f.resource("/pods/")
	resource.Transformer = nil
	f.Interface = boundWatches{f.storage.For(resource), t.Context()}
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
	if rv, link := obj.(metav1.Object).GetResourceVersion(), obj.(metav1.Object).GetSelfLink(); rv != "" || link != "" {
		t.Errorf("stored with resource version %q and self link %q, want none", rv, link)
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

func newPod(name string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func podKey(name string) string { return "/pods/ns/" + name }

// create stores a pod and returns it. A time to live of 0 is for ever.
func (f *fixture) create(t testing.TB, name string, ttl uint64) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	if err := f.Create(t.Context(), podKey(name), newPod(name), out, ttl); err != nil {
		t.Fatal(err)
	}
	return out
}

// label updates a pod and returns it. A nil time to live keeps that of the pod.
func (f *fixture) label(t testing.TB, name, value string, ttl *uint64) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	update := func(obj runtime.Object, _ apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
		obj.(*example.Pod).Labels = map[string]string{"label": value}
		return obj, ttl, nil
	}
	if err := f.GuaranteedUpdate(t.Context(), podKey(name), out, false, nil, update, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

func (f *fixture) delete(t testing.TB, name string) {
	t.Helper()
	err := f.Delete(t.Context(), podKey(name), &example.Pod{}, nil, apistorage.ValidateAllObjectFunc, nil,
		apistorage.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// exists says whether a pod is stored.
func (f *fixture) exists(t testing.TB, name string) bool {
	t.Helper()
	err := f.Get(t.Context(), podKey(name), apistorage.GetOptions{}, &example.Pod{})
	if err != nil && !apistorage.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// list returns the pods of all namespaces at a resource version, or an error. "" is the current one.
func (f *fixture) list(ctx context.Context, resourceVersion string) (*example.PodList, error) {
	list := &example.PodList{}
	opts := apistorage.ListOptions{Predicate: apistorage.Everything, Recursive: true}
	if resourceVersion != "" {
		opts.ResourceVersion, opts.ResourceVersionMatch = resourceVersion, metav1.ResourceVersionMatchExact
	}
	err := f.GetList(ctx, "/pods/", opts, list)
	return list, err
}

// watch watches the pods of all namespaces from a resource version on.
func (f *fixture) watch(t testing.TB, opts apistorage.ListOptions) watch.Interface {
	t.Helper()
	opts.Recursive = true
	w, err := f.Watch(t.Context(), "/pods/", opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// from are the options for a watch of everything after a resource version.
func from(resourceVersion string) apistorage.ListOptions {
	return apistorage.ListOptions{ResourceVersion: resourceVersion, Predicate: apistorage.Everything}
}

// pending returns what a watch has sent, without waiting. An event is written as its type and the name of the object,
// an error as its reason, and the end of the watch as "end".
func pending(w watch.Interface) []string {
	var got []string
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return append(got, "end")
			}
			got = append(got, describe(event))
		default:
			return got
		}
	}
}

func describe(event watch.Event) string {
	switch obj := event.Object.(type) {
	case *metav1.Status:
		return fmt.Sprintf("%s %s %d", event.Type, obj.Reason, obj.Code)
	case *example.Pod:
		if event.Type == watch.Bookmark {
			return fmt.Sprintf("%s %s", event.Type, obj.ResourceVersion)
		}
		return fmt.Sprintf("%s %s", event.Type, obj.Name)
	}
	return fmt.Sprintf("%s %T", event.Type, event.Object)
}

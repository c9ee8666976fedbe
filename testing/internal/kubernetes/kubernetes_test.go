package kubernetes_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/capabilities"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/testing/internal/random"
	"github.com/espalier-dev/espalier/testing/internal/registry/registrytest"
)

var (
	seed    = flag.Uint64("seed", 1, "what objects are drawn")
	objects = flag.Int("objects", 5000, "how many objects are drawn")
	only    = flag.String("kind", "", "of which kind objects are drawn, such as Service; of all by default")
)

func TestMain(m *testing.M) {
	// Pods of clusters may be privileged.
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	// Kubernetes logs where its two ways to validate differ.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	m.Run()
}

// TestKubernetesAgrees draws objects of all kinds, and changes of them, and compares what package registry and
// Kubernetes itself accept.
func TestKubernetesAgrees(t *testing.T) {
	t.Parallel()
	samples := samplesByKind(t)
	kinds := slices.SortedFunc(maps.Keys(samples), func(a, b schema.GroupVersionKind) int {
		return cmp.Compare(a.String(), b.String())
	})
	w := newWords(t, slices.Concat(slices.Collect(maps.Values(samples))...))
	if *only != "" {
		kinds = slices.DeleteFunc(kinds, func(k schema.GroupVersionKind) bool { return k.Kind != *only })
	}
	found := classes{}
	accepted := 0
	for i := range *objects {
		kind := kinds[i%len(kinds)]
		j, _ := newJudge(kind)
		d := drawer{random.Source(*seed, kind.String(), strconv.Itoa(i)), w}
		obj := d.object(t, pick(d, samples[kind]))
		old, diff := j.create(obj)
		if found.add(diff, obj, nil) || old == nil {
			continue
		}
		accepted++
		old.SetResourceVersion("1")
		old = decoded(t, old)
		obj = old.DeepCopyObject().(client.Object)
		d.change(obj, 1+d.IntN(3))
		obj.SetName(old.GetName())
		obj = decoded(t, obj)
		found.add(j.update(obj, old), obj, old)
	}
	found.report(t)
	t.Logf("%d objects of %d kinds were drawn with -seed=%d, %d of them were accepted and updated", *objects,
		len(kinds), *seed, accepted)
}

// TestKinds shows that each kind that package registry serves is judged, or says why it is not.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, sample := range registrytest.Samples(t, registrytest.Namespace) {
		kind := sample.GetObjectKind().GroupVersionKind()
		if _, judged := newJudge(kind); judged == (unjudged[kind.GroupKind()] != "") {
			t.Errorf("%s is judged: %t, and has the reason %q why it is not, want one of both", kind, judged,
				unjudged[kind.GroupKind()])
		}
	}
}

func samplesByKind(t testing.TB) map[schema.GroupVersionKind][]client.Object {
	t.Helper()
	samples := map[schema.GroupVersionKind][]client.Object{}
	for _, sample := range registrytest.Samples(t, registrytest.Namespace) {
		kind := sample.GetObjectKind().GroupVersionKind()
		if _, ok := newJudge(kind); ok {
			samples[kind] = append(samples[kind], sample)
		}
	}
	return samples
}

// object draws an object that differs from a sample.
func (d drawer) object(t testing.TB, sample client.Object) client.Object {
	t.Helper()
	obj := sample.DeepCopyObject().(client.Object)
	obj.SetUID("3c4a8a1e-0000-0000-0000-000000000001")
	obj.SetCreationTimestamp(metav1.Unix(1_700_000_000, 0))
	d.change(obj, d.IntN(5))
	return decoded(t, obj)
}

// decoded returns an object as it is read from a request.
func decoded(t testing.TB, obj client.Object) client.Object {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return registrytest.Decode(t, data)
}

// class are the differences of the same kind, field and error.
type class struct {
	count int
	// obj is the smallest object, old what it updates.
	obj, old client.Object
}

type classes map[string]*class

// add reports whether there is a difference.
func (c classes) add(d *difference, obj, old client.Object) bool {
	if d == nil {
		return false
	}
	found, ok := c[d.key()]
	if !ok {
		found = &class{}
		c[d.key()] = found
	}
	found.count++
	if found.obj == nil || size(obj) < size(found.obj) {
		found.obj, found.old = obj, old
	}
	return true
}

func size(obj client.Object) int {
	data, _ := json.Marshal(obj)
	return len(data)
}

// report fails the test for each class, the largest first.
func (c classes) report(t *testing.T) {
	t.Helper()
	for _, key := range slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		return cmp.Or(c[b].count-c[a].count, cmp.Compare(a, b))
	}) {
		text, err := yaml.Marshal(smaller(t, key, c[key]))
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%d differences: %s, want none. The smallest one of -seed=%d:\n%s", c[key].count, key, *seed, text)
	}
}

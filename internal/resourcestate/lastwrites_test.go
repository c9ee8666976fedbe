package resourcestate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDesired(t *testing.T) {
	actual := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "a-uid", ResourceVersion: "7", Generation: 3,
		CreationTimestamp: metav1.NewTime(time.UnixMilli(1000)),
		ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "test"}},
		Labels:            map[string]string{"a": "1"},
	}}
	plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	hash := func(changes ...func(*corev1.ConfigMap)) Desired {
		desired := actual.DeepCopy()
		for _, change := range changes {
			change(desired)
		}
		return DesiredFor(desired, actual)
	}
	repeated := hash()
	if !repeated.Known {
		t.Fatal("the hash is not known, want it to be")
	}
	for name, change := range map[string]func(*corev1.ConfigMap){
		"version":        func(c *corev1.ConfigMap) { c.ResourceVersion = "8" },
		"generation":     func(c *corev1.ConfigMap) { c.Generation++ },
		"creation time":  func(c *corev1.ConfigMap) { c.CreationTimestamp = metav1.Now() },
		"managed fields": func(c *corev1.ConfigMap) { c.ManagedFields = nil },
	} {
		if hash(change) != repeated {
			t.Errorf("the %s, which the server sets, changes the hash, want the same", name)
		}
	}
	for name, change := range map[string]func(*corev1.ConfigMap){
		"other data":              func(c *corev1.ConfigMap) { c.Data = map[string]string{"a": "1"} },
		"no labels":               func(c *corev1.ConfigMap) { c.Labels = nil },
		"the UID of another":      func(c *corev1.ConfigMap) { c.UID = "b-uid" },
		"no version":              func(c *corev1.ConfigMap) { c.ResourceVersion = "" },
		"annotations, being none": func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"a": "1"} },
	} {
		if hash(change) == repeated {
			t.Errorf("%s does not change the hash, want another", name)
		}
	}
	if DesiredFor(plain, actual) != DesiredOf(plain) {
		t.Error("an object that was not made from a copy has another hash, want the same")
	}
	bare := actual.DeepCopy()
	bare.Labels = nil
	if DesiredFor(bare, bare) != DesiredFor(bare, actual) {
		t.Error("an object without labels has another hash when others add labels, want the same")
	}
	recreated := actual.DeepCopy()
	recreated.UID = "c-uid"
	if DesiredFor(recreated, recreated) != repeated {
		t.Error("an object that was created anew has another hash, want the same")
	}
	if hash := DesiredOf(func() {}); hash.Known {
		t.Error("a function has a hash, want none")
	}
}

func TestLastWrites(t *testing.T) {
	object := func(uid, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
	}
	blue, red, unknown := Desired{digest: 1, Known: true}, Desired{digest: 2, Known: true}, Desired{}
	writes := &LastWrites{Limit: 2}
	writes.Record(object("a", "7"), blue, nil)
	if last := writes.Get("a", blue); !last.Agreed(object("a", "7")) || last.Agreed(object("a", "8")) {
		t.Errorf("the last write is %+v, want it agreed to at version 7 alone", last)
	}
	for name, last := range map[string]LastWrite{
		"something else is desired":    writes.Get("a", red),
		"what is desired has no hash":  writes.Get("a", unknown),
		"another object":               writes.Get("b", blue),
		"nothing, without any version": {},
	} {
		if last.Agreed(object("a", "7")) || last.Agreed(object("a", "")) {
			t.Errorf("%s: the last write is agreed to, want it not to be", name)
		}
	}
	if a, b := object("a", ""), object("a", ""); SameVersion(a, b) || !SameVersion(object("a", "7"), object("a", "7")) {
		t.Error("versions are compared wrongly, want 7 the same as 7, and none the same as none not")
	}

	writes.Record(object("", "7"), blue, nil)
	writes.Record(object("b", "7"), unknown, nil)
	if n := writes.Len(); n != 1 {
		t.Errorf("%d writes are recorded, want 1", n)
	}
	writes.Record(object("b", "7"), blue, nil)
	writes.Record(object("c", "7"), blue, nil)
	if n := writes.Len(); !writes.Get("c", blue).Agreed(object("c", "7")) || n != 1 {
		t.Errorf("%d writes are recorded, want the last, of c, alone", n)
	}
	writes.Forget("c")
	if n := writes.Len(); n != 0 {
		t.Errorf("%d writes are not forgotten, want none left", n)
	}
}

// What is known of each of several objects stays apart, also when the first of them is forgotten and comes again.
func TestLastWritesOfSeveralObjects(t *testing.T) {
	writes, blue := &LastWrites{}, Desired{digest: 1, Known: true}
	expect := func(when string, versions map[types.UID]string) {
		t.Helper()
		for _, uid := range []types.UID{"a", "b", "c"} {
			if got := writes.Get(uid, blue).Version; got != versions[uid] {
				t.Errorf("%s: %s has the version %q, want %q", when, uid, got, versions[uid])
			}
		}
		if n := writes.Len(); n != len(versions) {
			t.Errorf("%s: %d writes are known, want %d", when, n, len(versions))
		}
	}
	record := func(uid types.UID, version string) {
		writes.Record(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}, blue, nil)
	}
	record("a", "1")
	record("b", "2")
	expect("two objects", map[types.UID]string{"a": "1", "b": "2"})
	writes.Forget("a")
	record("b", "3")
	expect("one is forgotten", map[types.UID]string{"b": "3"})
	record("a", "4")
	record("c", "5")
	expect("it comes again", map[types.UID]string{"a": "4", "b": "3", "c": "5"})
	for range maxIdleRequests + 2 {
		writes.Get("b", blue)
		writes.Evict(time.Time{})
	}
	expect("one is used", map[types.UID]string{"b": "3"})
}

func TestLastWritesThatAreNotUsedAreEvicted(t *testing.T) {
	writes := &LastWrites{}
	blue := Desired{digest: 1, Known: true}
	writes.Record(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "a"}}, blue, nil)
	for range 2 {
		for request := range maxIdleRequests + 1 {
			if writes.Evict(time.Time{}) {
				t.Fatalf("evicted after %d requests, want it kept for %d", request, maxIdleRequests+1)
			}
		}
		writes.Get("a", blue)
	}
	for range maxIdleRequests {
		if writes.Evict(time.Time{}) {
			t.Fatal("evicted although it was used, want it kept")
		}
	}
	if writes.Evict(time.Time{}); !writes.Evict(time.Time{}) {
		t.Error("not evicted after more idle requests, want it to be")
	}
}

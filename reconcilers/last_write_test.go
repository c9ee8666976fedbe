package reconcilers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestHashOfDesired(t *testing.T) {
	actual := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "a-uid", ResourceVersion: "7", Generation: 3,
		CreationTimestamp: metav1.NewTime(time.UnixMilli(1000)),
		ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "test"}},
		Labels:            map[string]string{"a": "1"},
	}}
	plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	hash := func(changes ...func(*corev1.ConfigMap)) desiredHash {
		desired := actual.DeepCopy()
		for _, change := range changes {
			change(desired)
		}
		return hashOfDesiredFor(desired, actual)
	}
	repeated := hash()
	if !repeated.known {
		t.Fatal("the hash is not known")
	}
	for name, change := range map[string]func(*corev1.ConfigMap){
		"version":        func(c *corev1.ConfigMap) { c.ResourceVersion = "8" },
		"generation":     func(c *corev1.ConfigMap) { c.Generation++ },
		"creation time":  func(c *corev1.ConfigMap) { c.CreationTimestamp = metav1.Now() },
		"managed fields": func(c *corev1.ConfigMap) { c.ManagedFields = nil },
	} {
		if hash(change) != repeated {
			t.Errorf("the %s, which the server sets, changes the hash", name)
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
			t.Errorf("%s does not change the hash", name)
		}
	}
	if hashOfDesiredFor(plain, actual) != hashOfDesired(plain) {
		t.Error("an object that was not made from a copy has another hash")
	}
	bare := actual.DeepCopy()
	bare.Labels = nil
	if hashOfDesiredFor(bare, bare) != hashOfDesiredFor(bare, actual) {
		t.Error("an object without labels has another hash when others add labels")
	}
	recreated := actual.DeepCopy()
	recreated.UID = "c-uid"
	if hashOfDesiredFor(recreated, recreated) != repeated {
		t.Error("an object that was created anew has another hash")
	}
	if hash := hashOfDesired(func() {}); hash.known {
		t.Error("a function has a hash")
	}
}

// Additions are applied to what is desired, which has no generation as a rule.
func TestAdditionsAreForWhatIsDesired(t *testing.T) {
	written := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 3}, Data: map[string]string{"desired": "true", "added": "true"},
	}
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"desired": "true"}}
	manager := &UpdatingObjectManager[*corev1.ConfigMap]{
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
	}
	additions, err := manager.additions(t.Context(), written, desired)
	if err != nil {
		t.Fatal(err)
	}
	if none, err := manager.additions(t.Context(), desired, desired); none != nil || err != nil {
		t.Errorf("the additions of nothing are %v, %v", none, err)
	}
	if err := additions.Apply(desired); err != nil || desired.Data["added"] != "true" {
		t.Errorf("applied to %v, %v", desired.Data, err)
	}
}

func TestLastWrites(t *testing.T) {
	object := func(uid, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
	}
	blue, red, unknown := desiredHash{digest: 1, known: true}, desiredHash{digest: 2, known: true}, desiredHash{}
	writes := &lastWrites{limit: 2}
	writes.record(object("a", "7"), blue, lastWrite{})
	if last := writes.get("a", blue); !last.agreed(object("a", "7")) || last.agreed(object("a", "8")) {
		t.Errorf("the last write is %+v", last)
	}
	for name, last := range map[string]lastWrite{
		"something else is desired":    writes.get("a", red),
		"what is desired has no hash":  writes.get("a", unknown),
		"another object":               writes.get("b", blue),
		"nothing, without any version": {},
	} {
		if last.agreed(object("a", "7")) || last.agreed(object("a", "")) {
			t.Errorf("%s: agreed", name)
		}
	}
	if a, b := object("a", ""), object("a", ""); sameVersion(a, b) || !sameVersion(object("a", "7"), object("a", "7")) {
		t.Error("versions are compared wrongly")
	}

	writes.record(object("", "7"), blue, lastWrite{})
	writes.record(object("b", "7"), unknown, lastWrite{})
	if len(writes.byUID) != 1 {
		t.Errorf("recorded %v", writes.byUID)
	}
	writes.record(object("b", "7"), blue, lastWrite{})
	writes.record(object("c", "7"), blue, lastWrite{})
	if _, ok := writes.byUID["c"]; !ok || len(writes.byUID) != 1 {
		t.Errorf("the limit of two is exceeded, or the last is not there: %v", writes.byUID)
	}
	writes.forget("c")
	if len(writes.byUID) != 0 {
		t.Error("a write is not forgotten")
	}
}

func TestLastWritesThatAreNotUsedAreEvicted(t *testing.T) {
	writes := &lastWrites{}
	blue := desiredHash{digest: 1, known: true}
	writes.record(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "a"}}, blue, lastWrite{})
	for range 2 {
		for request := range maxIdleRequests + 1 {
			if writes.Evict(time.Time{}) {
				t.Fatalf("evicted after %d requests", request)
			}
		}
		writes.get("a", blue)
	}
	for range maxIdleRequests {
		if writes.Evict(time.Time{}) {
			t.Fatal("evicted although it was used")
		}
	}
	if writes.Evict(time.Time{}); !writes.Evict(time.Time{}) {
		t.Error("not evicted")
	}
}

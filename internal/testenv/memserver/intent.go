package memserver

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const statusSubresource = "status"

// intent is what one manager applies, as a real server would see it.
type intent struct {
	object      client.Object
	manager     string
	subresource string
	force       bool
}

// applying is the apply call that is under way. What the fake client hands to its tracker is no longer what the caller
// sent: it has gone through the Go type, which adds its zero values, and through the status rules, which add what is
// stored; nor is it said whether the call was for the status. So the front keeps what was sent, for the tracker to use.
// One apply at a time passes the front.
type applying struct {
	calls sync.Mutex

	// mu guards what follows.
	mu          sync.Mutex
	sent        *unstructured.Unstructured
	subresource string
}

// during makes call with raw as what is being applied.
func (a *applying) during(raw []byte, subresource string, call func() error) error {
	sent := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &sent.Object); err != nil {
		return fmt.Errorf("the apply configuration is not an object: %w", err)
	}
	a.calls.Lock()
	defer a.calls.Unlock()
	a.set(sent, subresource)
	defer a.set(nil, "")
	return call()
}

func (a *applying) set(sent *unstructured.Unstructured, subresource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent, a.subresource = sent, subresource
}

// intent returns what is applied by the call that reached the tracker with given.
func (a *applying) intent(given client.Object, opts metav1.PatchOptions) intent {
	a.mu.Lock()
	defer a.mu.Unlock()
	in := intent{object: copyOf(given), manager: opts.FieldManager, force: opts.Force != nil && *opts.Force}
	if a.sent != nil && a.sent.GetName() == given.GetName() && a.sent.GetNamespace() == given.GetNamespace() {
		in.object, in.subresource = restore(a.sent, given, a.subresource), a.subresource
	}
	return in
}

// restore returns what of sent a server looks at, with the resource version that the fake client has decided on.
func restore(sent *unstructured.Unstructured, given client.Object, subresource string) client.Object {
	restored := sent.DeepCopy()
	if subresource == statusSubresource {
		restored = identityOf(sent)
		if status, ok := sent.Object["status"]; ok {
			restored.Object["status"] = runtime.DeepCopyJSONValue(status)
		}
	} else if !sameStatus(sent, given) {
		// The fake client put another status in its place: the kind has a status subresource.
		delete(restored.Object, "status")
	}
	restored.SetResourceVersion(given.GetResourceVersion())
	return restored
}

func identityOf(obj *unstructured.Unstructured) *unstructured.Unstructured {
	identity := &unstructured.Unstructured{Object: map[string]any{}}
	identity.SetGroupVersionKind(obj.GroupVersionKind())
	identity.SetNamespace(obj.GetNamespace())
	identity.SetName(obj.GetName())
	return identity
}

// sameStatus tells whether both objects have the same status, whatever their Go types. A status that cannot be read is
// not the same.
func sameStatus(sent *unstructured.Unstructured, given client.Object) bool {
	want, err := json.Marshal(sent.Object["status"])
	if err != nil {
		return false
	}
	raw, err := json.Marshal(given)
	if err != nil {
		return false
	}
	var got struct {
		Status any `json:"status"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return false
	}
	var wanted any
	if err := json.Unmarshal(want, &wanted); err != nil {
		return false
	}
	return equality.Semantic.DeepEqual(wanted, got.Status)
}

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

// applyRequest is what one manager applies, as a real server would see it.
type applyRequest struct {
	object      client.Object
	manager     string
	subresource string
	force       bool
}

// currentApply is the apply call that is being made; there is one at a time. The fake client does not pass to its
// tracker what the caller sent. It decodes the object into its Go type, which adds zero values, and follows the rules
// for the status, which adds stored values. The tracker also does not learn whether the call was for the status. So the
// client of a [Server] keeps the sent object for the tracker.
type currentApply struct {
	calls sync.Mutex

	// mu guards the fields below.
	mu          sync.Mutex
	sent        *unstructured.Unstructured
	subresource string
}

// during makes an apply call that sends an object, and fills answer, a pointer, if the call was a dry run.
func (a *currentApply) during(sent any, subresource string, answer any, call func() error) error {
	raw, err := json.Marshal(sent)
	if err != nil {
		return fmt.Errorf("cannot marshal the apply configuration: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &object.Object); err != nil {
		return fmt.Errorf("the apply configuration is not an object: %w", err)
	}
	a.calls.Lock()
	defer a.calls.Unlock()
	a.set(object, subresource)
	defer a.set(nil, "")
	return answerDryRun(answer, call())
}

func (a *currentApply) set(sent *unstructured.Unstructured, subresource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent, a.subresource = sent, subresource
}

// request returns the request of the call that reached the tracker with given.
func (a *currentApply) request(given client.Object, opts metav1.PatchOptions) applyRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	request := applyRequest{object: copyOf(given), manager: opts.FieldManager, force: opts.Force != nil && *opts.Force}
	if a.sent != nil && a.sent.GetName() == given.GetName() && a.sent.GetNamespace() == given.GetNamespace() {
		request.object, request.subresource = restore(a.sent, given, a.subresource), a.subresource
	}
	return request
}

// restore returns the part of sent that a server reads, with the resource version that the fake client chose.
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

// sameStatus reports whether two objects of any Go types have the same status. A status that cannot be read is not the
// same.
func sameStatus(a, b client.Object) bool {
	var statuses [2]struct {
		Status any `json:"status"`
	}
	for i, obj := range []client.Object{a, b} {
		raw, err := json.Marshal(obj)
		if err != nil || json.Unmarshal(raw, &statuses[i]) != nil {
			return false
		}
	}
	return equality.Semantic.DeepEqual(statuses[0], statuses[1])
}

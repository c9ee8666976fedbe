package store

import (
	"encoding/json"
	"fmt"
	"maps"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// refuseDropped returns an error if a call changed nothing but a status that is a subresource. Before is the entry of
// the object before the call, which has not written it then.
func (c *Client) refuseDropped(r request, w write, before *storage.Entry) error {
	if w.status == nil || r.kind == nil || before == nil || c.entry(r) != before {
		return nil
	}
	v := r.kind.Version(r.Kind.Version)
	if v == nil || !v.HasStatus {
		return nil
	}
	live := map[string]any{}
	if err := json.Unmarshal(before.Value, &live); err != nil {
		return nil
	}
	sent, err := w.status(live)
	if err != nil || sameJSON(statusIn(sent, v), statusIn(live["status"], v)) {
		return nil
	}
	return errDropped(newKey(r.kind.GroupKind, r.Namespace, r.Name))
}

// statusIn returns a status in the form that it has in the Go type of a version, which may leave out what is zero.
func statusIn(status any, v *server.Version) any {
	obj := v.New()
	encoded, err := json.Marshal(map[string]any{"status": status})
	if _, ok := obj.(runtime.Unstructured); ok || err != nil || json.Unmarshal(encoded, obj) != nil {
		return status
	}
	return statusOf(obj)
}

// errDropped is the error for a request that has no effect, which is most likely a mistake.
func errDropped(key Key) error {
	return fmt.Errorf("%s: nothing but its status was changed, and an API server drops the status from this request, "+
		"because it is a subresource: use Status().Update or Status().Patch, "+
		"or build the client AsAPIServer() if the test is about that", key)
}

// statusOf returns the status of an object as JSON, nil if it has none.
func statusOf(obj client.Object) any {
	content, err := contentOf(obj)
	if err != nil {
		return nil
	}
	return content["status"]
}

// sameJSON reports whether two values have the same JSON. Nothing is the same as an empty object.
func sameJSON(a, b any) bool {
	normal := func(value any) any {
		encoded, _ := json.Marshal(value)
		var decoded any
		_ = json.Unmarshal(encoded, &decoded)
		if fields, ok := decoded.(map[string]any); ok && len(fields) == 0 {
			return nil
		}
		return decoded
	}
	return equality.Semantic.DeepEqual(normal(a), normal(b))
}

// status returns the status after a patch of the live object. A strategic merge patch is taken for a merge patch: of
// interest is whether it changes something.
func (p patch) status(live map[string]any) (any, error) {
	document, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	if p.kind == types.JSONPatchType {
		decoded, err := jsonpatch.DecodePatch(p.data)
		if err != nil {
			return nil, err
		}
		document, err = decoded.Apply(document)
		if err != nil {
			return nil, err
		}
	} else if document, err = jsonpatch.MergePatch(document, p.data); err != nil {
		return nil, err
	}
	patched := map[string]any{}
	err = json.Unmarshal(document, &patched)
	return patched["status"], err
}

// contentOf returns the JSON of an object. It may share parts with the object.
func contentOf(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return maps.Clone(u.UnstructuredContent()), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %T %q: %w", obj, obj.GetName(), err)
	}
	if metadata, ok := content["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	return content, nil
}

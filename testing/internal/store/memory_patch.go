package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// patchRequest is the body of a patch.
type patchRequest struct {
	patchType types.PatchType
	data      []byte
	// force is for an apply.
	force bool
}

func (p patchRequest) isApply() bool { return p.patchType == types.ApplyPatchType }

// patch changes an object, or applies to it.
func (s *memory) patch(
	gvk schema.GroupVersionKind, key client.ObjectKey, p patchRequest, w memoryWrite,
) (*record, error) {
	if err := checkRequest(len(p.data)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.resource(gvk)
	if err != nil {
		return nil, err
	}
	live, err := s.writable(r, key.Namespace, key.Name, w.subresource)
	if err != nil {
		return nil, err
	}
	if p.isApply() && w.subresource != scaleSubresource {
		return s.apply(r, live, key, p, w)
	}
	if live == nil {
		return nil, apierrors.NewNotFound(r.resource, key.Name)
	}
	if w.subresource == scaleSubresource {
		return s.patchScale(r, live, p, w)
	}
	content, err := live.content(gvk.GroupVersion())
	if err == nil && bytes.Contains(p.data, []byte("managedFields")) {
		content, err = live.withEntries(content)
	}
	if err != nil {
		return nil, err
	}
	patched, err := r.patched(content, p)
	if err != nil {
		return nil, err
	}
	next, sent, err := r.decodePatched(patched, p, w)
	if err != nil {
		return nil, err
	}
	if err := sameName(live, next); err != nil {
		return nil, err
	}
	return s.updateRecord(r, live, next, w, sent)
}

// withEntries returns the content of an object with its managed fields.
func (r *record) withEntries(content map[string]any) (map[string]any, error) {
	entries := []any{}
	for _, entry := range r.fields.Entries() {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entry)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		entries = append(entries, fields)
	}
	content = maps.Clone(content)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["managedFields"] = entries
	content["metadata"] = metadata
	return content, nil
}

// decodePatched is decode for the content after a patch.
func (r *resource) decodePatched(
	content map[string]any, p patchRequest, w memoryWrite,
) (client.Object, []metav1.ManagedFieldsEntry, error) {
	u := &unstructured.Unstructured{Object: content}
	if gvk := u.GroupVersionKind(); gvk != r.gvk {
		return nil, nil, invalidPatch(p, fmt.Errorf("the object is of kind %v, not %v", gvk, r.gvk))
	}
	if w.strict {
		if err := r.CheckFields(content); err != nil {
			return nil, nil, invalidPatch(p, err)
		}
	}
	obj, err := r.fromJSON(content)
	if err != nil {
		return nil, nil, invalidPatch(p, err)
	}
	return r.received(obj)
}

// sameName refuses a body with another name than the request.
func sameName(live *record, next client.Object) error {
	if next.GetName() != live.name {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", next.GetName(), live.name))
	}
	if next.GetNamespace() != live.namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace of the provided object does not match the namespace "+
			"sent on the request (%s != %s)", next.GetNamespace(), live.namespace))
	}
	return nil
}

// patched returns the content after a patch. It does not change the content, but may share parts with it.
func (r *resource) patched(content map[string]any, p patchRequest) (map[string]any, error) {
	switch p.patchType {
	case types.JSONPatchType:
		return jsonPatched(content, p.data)
	case types.MergePatchType:
		var patch map[string]any
		if err := utiljson.Unmarshal(p.data, &patch); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return mergePatched(content, patch), nil
	case types.StrategicMergePatchType:
		return r.strategicallyPatched(content, p.data)
	}
	return nil, r.unsupportedPatch(p.patchType)
}

// unsupportedPatch is the error for a type of patch that the kind does not know.
func (r *resource) unsupportedPatch(patchType types.PatchType) error {
	err := apierrors.NewGenericServerResponse(
		http.StatusUnsupportedMediaType, "PATCH", r.resource, "", "", 0, false)
	err.ErrStatus.Message = fmt.Sprintf("the body of the request was in an unknown format - accepted media types "+
		"include: %s, %s, %s", types.JSONPatchType, types.MergePatchType, types.ApplyPatchType)
	return err
}

func jsonPatched(content map[string]any, data []byte) (map[string]any, error) {
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	document, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	document, err = patch.Apply(document)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	var patched map[string]any
	if err := utiljson.Unmarshal(document, &patched); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return patched, nil
}

// mergePatched follows RFC 7396.
func mergePatched(content, patch map[string]any) map[string]any {
	merged := maps.Clone(content)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(merged, name)
		case map[string]any:
			below, _ := merged[name].(map[string]any)
			merged[name] = mergePatched(below, value)
		default:
			merged[name] = value
		}
	}
	return merged
}

// The errors of a strategic merge patch for which an API server has a status.
var (
	malformedPatch = []error{
		mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList,
		mergepatch.ErrBadPatchFormatForRetainKeys, mergepatch.ErrBadPatchFormatForSetElementOrderList,
		mergepatch.ErrUnsupportedStrategicMergePatchFormat,
	}
	unprocessablePatch = []error{mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys}
)

func (r *resource) strategicallyPatched(content map[string]any, data []byte) (map[string]any, error) {
	if _, builtIn := registry.BuiltIn(r.gvk); !builtIn || r.definition != nil {
		return nil, r.unsupportedPatch(types.StrategicMergePatchType)
	}
	var patch map[string]any
	if err := utiljson.Unmarshal(data, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(content), patch, r.New())
	switch {
	case err == nil:
		return merged, nil
	case slices.Contains(malformedPatch, err):
		return nil, apierrors.NewBadRequest(err.Error())
	case slices.Contains(unprocessablePatch, err):
		return nil, apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return nil, unknown(err)
}

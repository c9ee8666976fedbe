package store

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply implements [client.Client].
func (c *memoryClient) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	options := (&client.ApplyOptions{}).ApplyOptions(opts)
	return c.apply(ctx, config, nil, "", options)
}

// apply applies a body, which is config if it is nil, to the object that config names, and fills config with the
// answer.
func (c *memoryClient) apply(
	ctx context.Context, config, body runtime.ApplyConfiguration, subresource string, options *client.ApplyOptions,
) error {
	data, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("cannot marshal %T: %w", config, err)
	}
	named, err := identified(data)
	if err != nil {
		return fmt.Errorf("cannot identify %T: %w", config, err)
	}
	if body != nil {
		if data, err = json.Marshal(body); err != nil {
			return fmt.Errorf("cannot marshal %T: %w", body, err)
		}
	}
	patch := client.RawPatch("application/apply-patch+yaml", data)
	if err := c.patch(ctx, named, named, patch, options.AsPatchOptions(), subresource); err != nil {
		return err
	}
	if u, ok := config.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(named.Object)
		return nil
	}
	answer, err := json.Marshal(named.Object)
	if err != nil {
		return fmt.Errorf("cannot marshal %s %q: %w", named.GetKind(), named.GetName(), err)
	}
	return json.Unmarshal(answer, config)
}

// identified returns an object with the kind and name of an apply configuration.
func identified(data []byte) (*unstructured.Unstructured, error) {
	var named struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(data, &named); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(named.GroupVersionKind())
	u.SetNamespace(named.Metadata.Namespace)
	u.SetName(named.Metadata.Name)
	return u, nil
}

// apply merges what is applied into an object, or creates it. The caller holds the lock.
func (s *memory) apply(
	r *resource, live *record, key client.ObjectKey, p patchRequest, w memoryWrite,
) (*record, error) {
	config, err := r.decodeConfig(key, p.data)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return s.applyNew(r, config, p.force, w)
	}
	before, err := live.as(form{r.goType, r.gvk.GroupVersion()})
	if err != nil {
		return nil, err
	}
	next, fields, err := r.fields.Applied(before, live.fields, config, p.force, s.fieldWrite(w, nil))
	if err != nil {
		return nil, asStatus(err)
	}
	v, err := live.decideUpdate(r, before, next, w.subresource)
	if err != nil {
		return nil, err
	}
	if v == unchanged && fields.SameOwners(live.fields) {
		return live.withFields(), nil
	}
	after, err := s.newStoredRecord(r, next, fields, true)
	if err != nil {
		return nil, err
	}
	return after, s.commitUpdate(live, after, max(v, stored), w)
}

// applyNew creates the object that is applied.
func (s *memory) applyNew(r *resource, config *unstructured.Unstructured, force bool, w memoryWrite) (*record, error) {
	if w.subresource != "" {
		return nil, apierrors.NewNotFound(r.resource, config.GetName())
	}
	if uid := config.GetUID(); uid != "" {
		return nil, conflict(r, config.GetName(), "uid mismatch: the provided object specified uid %s, and no "+
			"existing object was found", uid)
	}
	next, fields, err := r.fields.Applied(nil, nil, config, force, s.fieldWrite(w, nil))
	if err != nil {
		return nil, asStatus(err)
	}
	next.SetResourceVersion("")
	return s.createRecord(r, next, w, nil, fields)
}

// decodeConfig returns what is applied, with the name of the request.
func (r *resource) decodeConfig(key client.ObjectKey, data []byte) (*unstructured.Unstructured, error) {
	config := &unstructured.Unstructured{}
	document, err := yaml.ToJSON(data)
	if err == nil {
		err = utiljson.Unmarshal(document, &config.Object)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	namespace := r.namespace(key.Namespace)
	if given := config.GetNamespace(); given != "" && r.namespace(given) != namespace {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the namespace of the provided object does not match the "+
			"namespace sent on the request (%s != %s)", given, namespace))
	}
	config.SetNamespace(namespace)
	if given := config.GetName(); given != "" && given != key.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", given, key.Name))
	}
	config.SetName(key.Name)
	if metadata, ok := config.Object["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	return config, nil
}

// withFields returns the record as one that is answered with its managed fields.
func (r *record) withFields() *record {
	if r.showFields {
		return r
	}
	return &record{
		gvk: r.gvk, namespace: r.namespace, name: r.name, object: r.object, fields: r.fields, showFields: true,
	}
}

package reconcilers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configuration is what is applied to an object: what its manager wants of it, and nothing else.
type configuration map[string]any

// serverMetadata is what of the metadata is the API server's to say.
var serverMetadata = []string{
	"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds",
}

// configurationOf returns what is to be applied for desired: of a Go type what its author set, of unstructured content all. The
// status, and what the API server says, is left out. It shares nothing with desired.
func configurationOf(desired client.Object, kind schema.GroupVersionKind) (configuration, error) {
	var content map[string]any
	var err error
	if u, ok := desired.(runtime.Unstructured); ok {
		content, err = normalized(u.UnstructuredContent())
		content = runtime.DeepCopyJSON(content)
	} else {
		content, err = sparseOf(desired.DeepCopyObject())
	}
	if err != nil {
		return nil, fmt.Errorf("the content of %s cannot be sent: %w", describeObject(desired), err)
	}
	return newConfiguration(content, kind), nil
}

func newConfiguration(content map[string]any, kind schema.GroupVersionKind) configuration {
	if content == nil {
		content = map[string]any{}
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, name := range serverMetadata {
			delete(metadata, name)
		}
	}
	content["apiVersion"], content["kind"] = kind.ToAPIVersionAndKind()
	return configuration(content)
}

// givenConfiguration returns what is to be applied where the author says so, for desired: its name, namespace, kind and owners
// stand where given does not say.
func givenConfiguration(given runtime.ApplyConfiguration, desired client.Object, kind schema.GroupVersionKind) (configuration, error) {
	data, err := json.Marshal(given)
	if err != nil {
		return nil, fmt.Errorf("the apply configuration for %s cannot be sent: %w", describeObject(desired), err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("the apply configuration for %s cannot be sent: %w", describeObject(desired), err)
	}
	u := unstructured.Unstructured{Object: content}
	if own := u.GroupVersionKind(); !own.Empty() && own != kind {
		return nil, fmt.Errorf("the apply configuration for %s is for a %s", describeObject(desired), own)
	}
	c := newConfiguration(content, kind)
	u = unstructured.Unstructured{Object: c}
	if other := u.GetNamespace(); other != "" && other != desired.GetNamespace() {
		return nil, fmt.Errorf("the apply configuration for %s has another namespace: %s", describeObject(desired), other)
	}
	if other := u.GetName(); other != "" && other != desired.GetName() {
		return nil, fmt.Errorf("the apply configuration for %s has another name: %s", describeObject(desired), other)
	}
	c.identify(desired)
	if prefix := desired.GetGenerateName(); prefix != "" {
		c.metadata()["generateName"] = prefix
	}
	return c, c.adopt(desired)
}

// metadata returns the metadata of the configuration, to be changed.
func (c configuration) metadata() map[string]any {
	metadata, ok := c["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		c["metadata"] = metadata
	}
	return metadata
}

// identify names obj as what the configuration is for.
func (c configuration) identify(obj client.Object) {
	if name := obj.GetName(); name != "" {
		c.metadata()["name"] = name
	}
	if namespace := obj.GetNamespace(); namespace != "" {
		c.metadata()["namespace"] = namespace
	}
}

// adopt adds the owners of desired that are missing.
func (c configuration) adopt(desired client.Object) error {
	owners, _ := c.metadata()["ownerReferences"].([]any)
	for _, ref := range desired.GetOwnerReferences() {
		if slices.ContainsFunc(owners, func(owner any) bool {
			known, ok := owner.(map[string]any)
			return ok && known["uid"] == string(ref.UID)
		}) {
			continue
		}
		owner, err := sparseOf(ref)
		if err != nil {
			return err
		}
		owners = append(owners, owner)
	}
	if len(owners) > 0 {
		c.metadata()["ownerReferences"] = owners
	}
	return nil
}

// object returns the configuration as an object of its own.
func (c configuration) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c)}
}

// body returns what field managers can own of the configuration.
func (c configuration) body() map[string]any {
	body := maps.Clone(map[string]any(c))
	delete(body, "apiVersion")
	delete(body, "kind")
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		return body
	}
	metadata = maps.Clone(metadata)
	delete(metadata, "name")
	delete(metadata, "namespace")
	body["metadata"] = metadata
	if len(metadata) == 0 {
		delete(body, "metadata")
	}
	return body
}

// shape returns a text that is the same for configurations of the same fields, whatever the values of these, and as good as never
// for others.
func (c configuration) shape() string {
	hash := sha256.New()
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(path+"/"+strconv.Quote(name), v[name])
			}
			path += "{}"
		case []any:
			for i, item := range v {
				walk(path+"/"+strconv.Itoa(i), item)
			}
			path += "[]"
		}
		_, _ = hash.Write([]byte(path + "\n"))
	}
	walk("", c.body())
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// Package managedfields reads and changes the managed fields of objects, in which the API server keeps the owner of
// each field, for a manager that applies:
//
//   - a [Configuration] is what the manager wants of an object, and nothing else;
//   - [Compare] says whether the object agrees with it, so that it need not be applied;
//   - a [Migration] makes fields of other writes part of what was applied, so that an apply removes them if they are
//     not wanted;
//   - a [Digest] identifies the set of fields that a manager owns.
//
// Objects of any type are compared without a schema: what kind of list or map there is shows in the paths of the
// fields.
package managedfields

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsonmerge"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Configuration is an apply configuration: what its manager wants of an object, and nothing else.
type Configuration map[string]any

// ServerMetadata are the metadata fields that only the API server sets.
var ServerMetadata = []string{
	"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink",
	"deletionTimestamp", "deletionGracePeriodSeconds",
}

// FromObject returns what is to be applied for desired: of a Go type the fields that its author set, of unstructured
// content all. The status, and the metadata that the API server sets, are left out. It shares nothing with desired.
func FromObject(desired client.Object, kind schema.GroupVersionKind) (Configuration, error) {
	var content map[string]any
	var err error
	if u, ok := desired.(runtime.Unstructured); ok {
		content, err = jsonmerge.Normalize(u.UnstructuredContent())
		content = runtime.DeepCopyJSON(content)
	} else {
		content, err = nonZeroMembers(desired.DeepCopyObject())
	}
	if err != nil {
		return nil, err
	}
	return newConfiguration(content, kind), nil
}

func newConfiguration(content map[string]any, kind schema.GroupVersionKind) Configuration {
	if content == nil {
		content = map[string]any{}
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, name := range ServerMetadata {
			delete(metadata, name)
		}
	}
	content["apiVersion"], content["kind"] = kind.ToAPIVersionAndKind()
	if kind.Group == "" && kind.Kind == "Secret" {
		MoveStringData(content)
	}
	return Configuration(content)
}

// MoveStringData moves the stringData of a Secret to its data, where the API server keeps it. Nobody can read it from
// the Secret otherwise, and a key that is not applied any more would stay.
func MoveStringData(secret map[string]any) {
	texts, _ := secret["stringData"].(map[string]any)
	data := map[string]any{}
	if old, ok := secret["data"].(map[string]any); ok {
		data = old
	}
	for name, text := range texts {
		if text, ok := text.(string); ok {
			data[name] = base64.StdEncoding.EncodeToString([]byte(text))
			secret["data"] = data
			delete(texts, name)
		}
	}
	if len(texts) == 0 {
		delete(secret, "stringData")
	}
}

// FromApply returns what is to be applied for desired if an author gave an apply configuration. The name, namespace,
// kind and owner references of desired are added where it does not have them. An error says what given does: it "is for
// another kind".
func FromApply(
	given runtime.ApplyConfiguration, desired client.Object, kind schema.GroupVersionKind,
) (Configuration, error) {
	data, err := json.Marshal(given)
	if err != nil {
		return nil, fmt.Errorf("cannot be sent: %w", err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("cannot be sent: %w", err)
	}
	u := unstructured.Unstructured{Object: content}
	if own := u.GroupVersionKind(); !own.Empty() && own != kind {
		return nil, fmt.Errorf("is for a %s", own)
	}
	c := newConfiguration(content, kind)
	u.Object = c
	if other := u.GetNamespace(); other != "" && other != desired.GetNamespace() {
		return nil, errors.New("has another namespace: " + other)
	}
	if other := u.GetName(); other != "" && other != desired.GetName() {
		return nil, errors.New("has another name: " + other)
	}
	c.Identify(desired)
	if prefix := desired.GetGenerateName(); prefix != "" {
		u.SetGenerateName(prefix)
	}
	owners := u.GetOwnerReferences()
	for _, ref := range desired.GetOwnerReferences() {
		if !slices.ContainsFunc(owners, func(known metav1.OwnerReference) bool { return known.UID == ref.UID }) {
			owners = append(owners, ref)
		}
	}
	if len(owners) > 0 {
		u.SetOwnerReferences(owners)
	}
	return c, nil
}

// Identify names obj as the object that the configuration is for.
func (c Configuration) Identify(obj client.Object) {
	u := unstructured.Unstructured{Object: c}
	if name := obj.GetName(); name != "" {
		u.SetName(name)
	}
	if namespace := obj.GetNamespace(); namespace != "" {
		u.SetNamespace(namespace)
	}
}

// Object returns a copy of the configuration as an object.
func (c Configuration) Object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c)}
}

// body returns the part of the configuration that field managers can own.
func (c Configuration) body() map[string]any {
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

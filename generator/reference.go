package generator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reference is a part of a spec that refers to something outside of the resource. The reconciler finds references
// anywhere in the field Spec of the resource, and loads them before it calls hooks and the generator, with the identity
// of the component. [ConfigMapReference], [ConfigMapKeyReference], [SecretReference], [SecretKeyReference] and
// [ValuesReference] need no implementation of this interface.
//
// References are found in exported fields, in structs, pointers, slices, arrays and values of maps, but not in
// interfaces. A field with the tag `reference:"-"` is left out with all that it contains.
//
// Give a field that keeps what was loaded the tag `json:"-"`, also if it is not exported: a converter of Kubernetes
// does not tell these apart.
type Reference interface {
	// Load loads what the reference refers to, and keeps it in the receiver. It is called once in each request. local
	// is the client for the cluster of the resource, with the identity of the component. Load decides itself what is
	// tracked. Return a [RetriableError] if something does not exist yet.
	//
	// While the resource is being deleted, Load is called only if there are hooks, and its error is ignored.
	Load(ctx context.Context, local client.Client, resource client.Object) error
	// Identity returns what identifies the state of what was loaded. It is called once after Load. Another identity
	// starts another revision. It must not be confidential, and no secret may be guessed from it.
	Identity() string
}

// ConfigMapReference refers to a ConfigMap in the namespace of the resource. A reference without a name is not loaded.
//
// +kubebuilder:object:generate=true
type ConfigMapReference struct {
	// Name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// The tag is for converters that look at fields that are not exported.
	loaded *loaded `json:"-"`
}

// Data returns a copy of the field data of the ConfigMap. It is an error if the reference was not loaded.
func (r *ConfigMapReference) Data() (map[string]string, error) {
	if r == nil {
		return nil, errNoReference
	}
	content, err := r.loaded.content()
	if err != nil {
		return nil, err
	}
	return maps.Clone(content.texts), nil
}

// Equal reports whether both references refer to the same. What was loaded does not count.
func (r ConfigMapReference) Equal(other ConfigMapReference) bool { return r.Name == other.Name }

// ConfigMapKeyReference refers to a value in a ConfigMap in the namespace of the resource. A reference without a name
// is not loaded.
//
// +kubebuilder:object:generate=true
type ConfigMapKeyReference struct {
	// Name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key of the value. Default: the first of value, value.yaml and value.yml that the ConfigMap has.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// The tag is for converters that look at fields that are not exported.
	loaded *loaded `json:"-"`
}

// Value returns the value. It is an error if the reference was not loaded.
func (r *ConfigMapKeyReference) Value() (string, error) {
	if r == nil {
		return "", errNoReference
	}
	value, err := r.loaded.value()
	return string(value), err
}

// Equal reports whether both references refer to the same. What was loaded does not count.
func (r ConfigMapKeyReference) Equal(other ConfigMapKeyReference) bool {
	return r.Name == other.Name && r.Key == other.Key
}

// SecretReference refers to a Secret in the namespace of the resource. A reference without a name is not loaded.
//
// +kubebuilder:object:generate=true
type SecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// The tag is for converters that look at fields that are not exported.
	loaded *loaded `json:"-"`
}

// Data returns a copy of the data of the Secret. It is an error if the reference was not loaded.
func (r *SecretReference) Data() (map[string][]byte, error) {
	if r == nil {
		return nil, errNoReference
	}
	content, err := r.loaded.content()
	if err != nil {
		return nil, err
	}
	data := make(map[string][]byte, len(content.secrets))
	for key, value := range content.secrets {
		data[key] = bytes.Clone(value)
	}
	return data, nil
}

// Equal reports whether both references refer to the same. What was loaded does not count.
func (r SecretReference) Equal(other SecretReference) bool { return r.Name == other.Name }

// SecretKeyReference refers to a value in a Secret in the namespace of the resource. A reference without a name is not
// loaded.
//
// +kubebuilder:object:generate=true
type SecretKeyReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key of the value. Default: the first of value, value.yaml and value.yml that the Secret has.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// The tag is for converters that look at fields that are not exported.
	loaded *loaded `json:"-"`
}

// Value returns a copy of the value. It is an error if the reference was not loaded.
func (r *SecretKeyReference) Value() ([]byte, error) {
	if r == nil {
		return nil, errNoReference
	}
	value, err := r.loaded.value()
	return bytes.Clone(value), err
}

// Equal reports whether both references refer to the same. What was loaded does not count.
func (r SecretKeyReference) Equal(other SecretKeyReference) bool {
	return r.Name == other.Name && r.Key == other.Key
}

// ValueIn returns the value that r refers to in the data of the Secret, for a caller that reads the Secret itself. An
// error names the keys that could have had it, and nothing of the data.
func (r *SecretKeyReference) ValueIn(data map[string][]byte) ([]byte, error) {
	if r == nil {
		return nil, errNoReference
	}
	content := Referenced{kind: kindSecret, name: r.Name, secrets: data}
	_, value, err := content.find(keysOf(r.Key, ""))
	return value, err
}

// Validate returns an error if no Secret or key can have this name.
func (r *SecretKeyReference) Validate() error {
	if r == nil {
		return nil
	}
	return validateReference(kindSecret, r.Name, r.Key)
}

var (
	errNoReference = errors.New("there is no reference")
	errNotLoaded   = errors.New("the reference is not loaded")
)

const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
)

// Referenced is what a ConfigMap or a Secret had when it was read. It does not change. No text that is made of it shows
// the content.
type Referenced struct {
	kind, name string
	texts      map[string]string
	secrets    map[string][]byte
	// identity is that of all content, identities those of the values of a ConfigMap.
	identity   string
	identities map[string]string
}

// NewReferenced returns what object has, a [corev1.ConfigMap] or a [corev1.Secret] that was read. The result shares the
// content with object, which must not be changed any more. It is an error if object is something else.
//
// The identity of a ConfigMap is a digest of its data. That of a Secret are its UID and its resourceVersion: it is part
// of the component digest, which others may read, and who knows a digest of a short secret could guess the secret. A
// digest with a key in memory would start another revision when the operator starts.
func NewReferenced(object client.Object) (*Referenced, error) {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		content := &Referenced{kind: kindConfigMap, name: o.Name, texts: o.Data, identities: map[string]string{}}
		if content.texts == nil {
			content.texts = map[string]string{}
		}
		for key, value := range content.texts {
			content.identities[key] = digestOf(value)
		}
		content.identity = digestOf(content.texts)
		return content, nil
	case *corev1.Secret:
		identity := fmt.Sprintf("%s/%s", o.UID, o.ResourceVersion)
		return &Referenced{kind: kindSecret, name: o.Name, secrets: o.Data, identity: identity}, nil
	}
	return nil, fmt.Errorf("it is neither a ConfigMap nor a Secret: %T", object)
}

// digestOf returns a digest of the canonical JSON of a text or a map of texts, for which Marshal never fails.
func digestOf(value any) string {
	text, _ := json.Marshal(value)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// String names the object.
func (c *Referenced) String() string {
	if c == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s %q", c.kind, c.name)
}

// GoString returns the same as String, so that the verb %#v does not show the content either.
func (c *Referenced) GoString() string { return c.String() }

// find returns the first of keys that is there, with its value.
func (c *Referenced) find(keys []string) (string, []byte, error) {
	for _, key := range keys {
		if value, ok := c.secrets[key]; ok {
			return key, value, nil
		}
		if value, ok := c.texts[key]; ok {
			return key, []byte(value), nil
		}
	}
	if len(keys) == 1 {
		return "", nil, fmt.Errorf("the %s has no key %q", c, keys[0])
	}
	return "", nil, fmt.Errorf("the %s has none of the keys %s", c, strings.Join(keys, ", "))
}

var fallbackKeys = []string{"value", "value.yaml", "value.yml"}

// keysOf returns the keys that may have a value: the given one, else those of the list, separated by commas.
func keysOf(key, fallback string) []string {
	switch {
	case key != "":
		return []string{key}
	case fallback != "":
		return strings.Split(fallback, ",")
	}
	return fallbackKeys
}

// loaded is what a reference was loaded with. It does not change, so copies of the reference share it. The content is
// behind a function, because libraries that print or compare values follow pointers.
type loaded struct {
	get func() (*Referenced, error)
	// keys are those that may have the value; nil for a reference to all.
	keys []string
}

// DeepCopy returns l, because it does not change.
func (l *loaded) DeepCopy() *loaded { return l }

func (l *loaded) content() (*Referenced, error) {
	if l == nil {
		return nil, errNotLoaded
	}
	return l.get()
}

func (l *loaded) value() ([]byte, error) {
	content, err := l.content()
	if err != nil {
		return nil, err
	}
	_, value, err := content.find(l.keys)
	return value, err
}

// validateReference returns an error if no object of the kind, or none of its keys, can have this name.
func validateReference(kind, name, key string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("name: is not a name of a %s: %s", kind, quote(name))
	}
	if key != "" && len(validation.IsConfigMapKey(key)) > 0 {
		return fmt.Errorf("key: is not a key of a %s: %s", kind, quote(key))
	}
	return nil
}

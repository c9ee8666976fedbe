package manifest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/plan"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var secretKind = schema.GroupKind{Kind: "Secret"}

// item is one object on its way to be prepared. Its first part depends on what was generated, and on the options but for the
// digest of the component. The second part depends on the scope of the kind, too.
type item struct {
	// index and ordinal are the position of the generated object, and that of this one, lists unfolded. They are set in each
	// request anew.
	index, ordinal int
	// place is where it is in a list, "" if it is not in one.
	place string

	kind schema.GroupVersionKind
	// namespace as it was generated.
	namespace, name string
	content         map[string]any
	definition      *definition
	// fault says why it cannot be prepared.
	fault error

	// scope for which it was completed last; 0 if it is not complete.
	scope scope
	// base is its digest without that of the component, which is, or would be, appended.
	base, component string
	object          Object
}

// describe names the object by its position and, as far as it is known, its key: one that has no name, by its kind.
func (i *item) describe() string {
	position := fmt.Sprintf("objects[%d]%s", i.index, i.place)
	if i.kind.Kind == "" {
		return position
	}
	if i.name == "" {
		return fmt.Sprintf("%s (%s)", position, i.kind.Kind)
	}
	namespace := i.namespace
	if i.scope != 0 {
		namespace = i.object.Desired.Namespace
	}
	key := plan.Key{Group: i.kind.Group, Kind: i.kind.Kind, Namespace: namespace, Name: i.name}
	return fmt.Sprintf("%s (%s)", position, key)
}

// newItems makes items of what a generator returned as one object: one, or those of a list.
func newItems(content map[string]any, options *Options) []*item {
	var items []*item
	var add func(content map[string]any, place string)
	add = func(content map[string]any, place string) {
		elements, ok, err := unfold(content)
		if err != nil {
			items = append(items, &item{place: place, fault: err})
			return
		}
		if !ok {
			items = append(items, newItem(content, place, options))
			return
		}
		for n, element := range elements {
			at := fmt.Sprintf("%s.items[%d]", place, n)
			if m, ok := element.(map[string]any); ok {
				add(m, at)
			} else {
				items = append(items, &item{place: at, fault: errors.New("it is not an object")})
			}
		}
	}
	add(content, "")
	return items
}

// unfold returns the elements of a list: of the kind List, or of a kind that ends so, without a name, and with items. The
// elements of the latter may leave out their kind.
func unfold(content map[string]any) (elements []any, isList bool, err error) {
	kind, _ := content["kind"].(string)
	version, _ := content["apiVersion"].(string)
	items, hasItems := content["items"]
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	plain := kind == "List" && version == "v1"
	if !plain && (!strings.HasSuffix(kind, "List") || !hasItems || name != "") {
		return nil, false, nil
	}
	elements, ok := items.([]any)
	if !ok && items != nil {
		return nil, true, errors.New("it is a list whose items are not an array")
	}
	if plain {
		return elements, true, nil
	}
	for _, element := range elements {
		object, ok := element.(map[string]any)
		if ok && object["kind"] == nil && object["apiVersion"] == nil {
			object["kind"], object["apiVersion"] = strings.TrimSuffix(kind, "List"), version
		}
	}
	return elements, true, nil
}

// newItem checks content, which it takes over, and strips it.
func newItem(content map[string]any, place string, options *Options) *item {
	i := &item{place: place, content: content}
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var err error
	i.kind, err = readKind(content)
	note(err)
	meta, err := readMetadata(content, options.Prefix)
	i.namespace, i.name = meta.namespace, meta.name
	note(err)
	delete(content, "status")
	confidential := i.kind.GroupKind() == secretKind
	if confidential {
		note(mergeSecret(content))
	}
	settings, err := component.ReadSettings(options.Prefix, meta.annotations)
	note(err)
	note(checkReadyWhen(settings))
	i.definition, err = readDefinition(i.kind.GroupKind(), content)
	note(err)
	note(checkPurge(i.kind.GroupKind(), settings))
	if i.fault = errors.Join(errs...); i.fault != nil {
		return i
	}
	i.object = Object{Settings: settings, Confidential: confidential, Desired: desired(settings, options)}
	if i.definition != nil {
		i.object.Desired.ManagedTypes = []apis.ManagedType{i.definition.managed}
	}
	return i
}

// complete does what depends on the scope, if that is not the one for which it was done already, and tells whether it was not.
func (i *item) complete(s scope, options *Options) (changed bool, err error) {
	changed = i.scope != s
	if changed {
		if err := i.settle(s, options); err != nil {
			return true, err
		}
	}
	if changed || i.component != options.ComponentDigest {
		i.component = options.ComponentDigest
		i.object.Desired.Digest = i.digest()
	}
	return changed, nil
}

// settle puts the object into its namespace.
func (i *item) settle(s scope, options *Options) error {
	i.scope = 0
	namespace := i.namespace
	switch {
	case s == scopeCluster:
		namespace = ""
	case s == scopeNamespaced && namespace == "":
		namespace = options.Namespace
		if namespace == "" {
			return errors.New("it is namespaced, and no namespace is known for it")
		}
	}
	content := inNamespace(i.content, i.namespace, namespace)
	d := &i.object.Desired
	d.Key = plan.Key{Group: i.kind.Group, Kind: i.kind.Kind, Namespace: namespace, Name: i.name}
	d.Version = i.kind.Version
	i.object.Manifest = &unstructured.Unstructured{Object: content}
	i.base = digestOf(content, i.object.Confidential)
	i.scope = s
	return nil
}

func (i *item) digest() string {
	switch i.object.Desired.ReconcilePolicy {
	case apis.ReconcileOnce:
		return plan.DigestOnce
	case apis.ReconcileOnObjectOrComponentChange:
		return i.base + "@" + i.component
	default:
		return i.base
	}
}

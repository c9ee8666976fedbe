package manifest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var secretKind = schema.GroupKind{Kind: "Secret"}

// item is one object on its way to be prepared, and what is kept of it from request to request: not its content, unless it is
// in a list. All but the last part depends on what was generated, and on the options but for the digest of the component.
type item struct {
	*class
	name       string
	definition *definition
	// place is where it is in a list, "" if it is not in one.
	place string
	// content is nil if it can be made again.
	content map[string]any
	// fault says why it cannot be prepared.
	fault error

	// digest is that of what is desired, once it is complete.
	digest string
	// index and ordinal are the position of the generated object, and that of this one, lists unfolded. They are set in each
	// request anew.
	index, ordinal int
	// scope for which it was completed last; 0 if it is not complete.
	scope scope
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
	return fmt.Sprintf("%s (%s)", position, i.key())
}

func (i *item) key() plan.Key {
	return plan.Key{Group: i.kind.Group, Kind: i.kind.Kind, Namespace: i.within(), Name: i.name}
}

// within is the namespace that the object is in: the one that was generated, as long as the scope is not known.
func (i *item) within() string {
	switch i.scope {
	case scopeCluster:
		return ""
	case scopeNamespaced:
		return i.home
	default:
		return i.namespace
	}
}

// prepared returns the object of an item that is complete.
func (i *item) prepared(s *source) Object {
	o := Object{Settings: i.settings, Desired: i.desired, Confidential: i.confidential(), source: s}
	o.Desired.Key, o.Desired.Digest = i.key(), i.digest
	if i.definition != nil {
		o.Desired.ManagedTypes = i.definition.types
	}
	return o
}

func (i *item) confidential() bool { return i.kind.GroupKind() == secretKind }

// newItems makes items of what a generator returned as one object: one, or those of a list.
func newItems(content map[string]any, options *Options, known classes) []*item {
	var items []*item
	var add func(content map[string]any, place string)
	add = func(content map[string]any, place string) {
		elements, ok, err := unfold(content)
		if err != nil {
			items = append(items, faulty(place, err))
			return
		}
		if !ok {
			items = append(items, newItem(content, place, options, known))
			return
		}
		for n, element := range elements {
			at := fmt.Sprintf("%s.items[%d]", place, n)
			if m, ok := element.(map[string]any); ok {
				add(m, at)
			} else {
				items = append(items, faulty(at, errors.New("it is not an object")))
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

// faulty returns an item of which nothing is known but what is wrong with it.
func faulty(place string, err error) *item {
	return &item{class: &class{}, place: place, fault: err}
}

// identity is what an object says it is.
type identity struct {
	metadata
	kind schema.GroupVersionKind
}

// strip checks what all objects have, and takes away what is not to be written.
func strip(content map[string]any, prefix string) (identity, []error) {
	var is identity
	var err error
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	is.kind, err = readKind(content)
	note(err)
	is.metadata, err = readMetadata(content, prefix)
	note(err)
	delete(content, "status")
	if is.kind.GroupKind() == secretKind {
		note(mergeSecret(content))
	}
	return is, errs
}

// newItem checks content, which it takes over, and strips it.
func newItem(content map[string]any, place string, options *Options, known classes) *item {
	is, errs := strip(content, options.Prefix)
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	settings, err := component.ReadSettings(options.Prefix, is.annotations)
	note(err)
	note(checkReadyWhen(settings))
	definition, err := readDefinition(is.kind.GroupKind(), content)
	note(err)
	note(checkPurge(is.kind.GroupKind(), settings))
	i := &item{place: place, content: content, name: strings.Clone(is.name), definition: definition}
	t := traits{kind: is.kind, namespace: is.namespace, settings: settings}
	if i.fault = errors.Join(errs...); i.fault != nil {
		i.class = &class{traits: t}
		return i
	}
	i.class = known.of(t, options)
	return i
}

// complete does what depends on the scope, if that is not the one for which it was done already, and tells whether it was not.
func (i *item) complete(s scope, from *source, componentDigest string) (changed bool, err error) {
	changed = i.scope != s
	if changed {
		if err := i.settle(s, from); err != nil {
			return true, err
		}
	}
	if i.desired.ReconcilePolicy == apis.ReconcileOnObjectOrComponentChange {
		base, suffix, ok := strings.Cut(i.digest, "@")
		if !ok || suffix != componentDigest {
			i.digest = base + "@" + componentDigest
		}
	}
	return changed, nil
}

// settle puts the object into its namespace, and takes the digest, without that of the component.
func (i *item) settle(s scope, from *source) error {
	i.scope = 0
	if s == scopeNamespaced && i.home == "" {
		return errors.New("it is namespaced, and no namespace is known for it")
	}
	content, err := from.stripped()
	if err != nil {
		return err
	}
	i.scope = s
	i.digest = plan.DigestOnce
	if i.desired.ReconcilePolicy != apis.ReconcileOnce {
		i.digest = digestOf(inNamespace(content, i.within()), i.confidential())
	}
	return nil
}

package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/internal/component/secretdata"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// item is one object that is being prepared, and what is kept of it from request to request. The content is kept only
// if it is in a list. All but the last part depends on what was generated, and on the options except for the digest of
// the component.
type item struct {
	*common
	name       string
	definition *definition
	// place is where it is in a list, "" if it is not in one.
	place string
	// content is nil if it can be made again.
	content map[string]any
	// fault says why it cannot be prepared.
	fault error

	// digest is the digest of the desired content, once the item is complete.
	digest string
	// data has the fingerprints of the data of a Secret, once the item is complete.
	data map[string]secretdata.Fingerprint
	// index and ordinal are the position of the generated object, and the position of this one once lists are expanded.
	// They are set in each request.
	index, ordinal int
	// scope for which it was completed last; 0 if it is not complete.
	scope scope
	// expires reports whether it is a Job that is deleted some time after it finished.
	expires bool
	// owners names its owner references.
	owners string
	// static reports whether it is ready as soon as it exists.
	static bool
}

// describe names the object by its position and, as far as it is known, its key or its kind.
func (i *item) describe() string {
	position := fmt.Sprintf("objects[%d]%s", i.index, i.place)
	if i.kind.Kind == "" && i.name == "" {
		return position
	}
	if i.kind.Kind == "" {
		return fmt.Sprintf("%s (%s)", position, i.name)
	}
	if i.name == "" {
		return fmt.Sprintf("%s (%s)", position, i.kind.Kind)
	}
	return fmt.Sprintf("%s (%s)", position, i.key())
}

func (i *item) key() plan.Key {
	return plan.Key{Group: i.kind.Group, Kind: i.kind.Kind, Namespace: i.within(), Name: i.name}
}

// within is the namespace of the object. As long as the scope is not known, it is the one that was generated.
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
	o := Object{
		Settings: i.settings, Desired: i.desired, Confidential: i.confidential(), Data: i.data, Static: i.static,
		source: s,
	}
	o.Desired.Key, o.Desired.Digest = i.key(), i.digest
	o.Desired.Expires, o.Desired.Owners = i.expires, i.owners
	if i.definition != nil {
		o.Desired.ManagedTypes = i.definition.managed
	}
	return o
}

// fingerprints returns those of the data of a Secret, nil for any other kind.
func (i *item) fingerprints(content map[string]any) map[string]secretdata.Fingerprint {
	if !i.confidential() {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(content, "data")
	prints := make(map[string]secretdata.Fingerprint, len(data))
	for key, text := range data {
		prints[strings.Clone(key)] = secretdata.OfBase64(key, text)
	}
	return prints
}

func (i *item) confidential() bool { return i.kind.GroupKind() == kinds.Secret }

// newItems makes the item of an object, or the items of a list.
func newItems(content map[string]any, options *Options, known commonByHash) []*item {
	var items []*item
	var add func(content map[string]any, place string)
	add = func(content map[string]any, place string) {
		elements, ok, err := expandList(content)
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

// expandList returns the elements of a list. A list is of the kind List, or of a kind that ends so and has items and no
// name. The elements of the latter may leave out their kind.
func expandList(content map[string]any) (elements []any, isList bool, err error) {
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

// faulty returns an item that is not known except for what is wrong with it.
func faulty(place string, err error) *item {
	return &item{common: &common{}, place: place, fault: err}
}

// newItem checks and sanitizes content, which it takes over.
func newItem(content map[string]any, place string, options *Options, known commonByHash) *item {
	is, errs := sanitize(content, options.Prefix)
	settings, err := generator.ReadSettings(options.Prefix, is.annotations)
	definition, definitionErr := readDefinition(is.kind.GroupKind(), content)
	// An object with an expression that can never be evaluated would be written and never become ready.
	readyWhenErr := readiness.Validate(settings)
	if readyWhenErr != nil {
		readyWhenErr = fmt.Errorf("annotation %w", readyWhenErr)
	}
	errs = append(errs, err, readyWhenErr, definitionErr, checkPurge(is.kind.GroupKind(), settings))
	i := &item{place: place, content: content, name: strings.Clone(is.name), definition: definition}
	i.expires, i.owners = expires(is.kind.GroupKind(), content), ownersOf(content)
	i.static = readiness.Static(&unstructured.Unstructured{Object: content}, settings)
	t := traits{kind: is.kind, namespace: is.namespace, settings: settings}
	if i.fault = errors.Join(errs...); i.fault != nil {
		i.common = &common{traits: t}
		return i
	}
	i.common = known.of(t, options)
	return i
}

// desired returns what applies to an object with settings.
func desired(settings generator.Settings, options *Options) plan.Desired {
	interval := options.ReapplyInterval
	if settings.ReapplyInterval != nil {
		interval = *settings.ReapplyInterval
	}
	return plan.Desired{
		AdoptionPolicy:  cmp.Or(settings.AdoptionPolicy, options.AdoptionPolicy, apis.AdoptNever),
		ReconcilePolicy: cmp.Or(settings.ReconcilePolicy, options.ReconcilePolicy, apis.ReconcileOnObjectChange),
		UpdatePolicy:    cmp.Or(settings.UpdatePolicy, options.UpdatePolicy, apis.UpdateApply),
		// The defaults of the next two depend on the object.
		DeletePolicy:    cmp.Or(settings.DeletePolicy, options.DeletePolicy),
		PrunePolicy:     cmp.Or(settings.PrunePolicy, options.PrunePolicy),
		ApplyOrder:      settings.ApplyOrder,
		DeleteOrder:     settings.DeleteOrder,
		PurgeOrder:      settings.PurgeOrder,
		ReapplyInterval: max(interval, time.Duration(0)),

		IgnoreForeignInstances: settings.IgnoreForeignInstances,

		Auxiliary:     settings.Participation == generator.ParticipationAuxiliary,
		Unchecked:     settings.Participation == generator.ParticipationUnchecked,
		ReadOnly:      settings.Presence == generator.PresenceReadOnly,
		IgnoreAbsence: settings.IgnoreAbsence,
	}
}

// checkPurge keeps namespaces and types, which contain other objects, from being removed during a roll-out.
func checkPurge(kind schema.GroupKind, settings generator.Settings) error {
	if settings.PurgeOrder == nil || !kinds.IsContainer(kind) {
		return nil
	}
	return fmt.Errorf("an object of the kind %s cannot have a purge order", kind.Kind)
}

func expires(kind schema.GroupKind, content map[string]any) bool {
	if kind != kinds.Job {
		return false
	}
	spec, _ := content["spec"].(map[string]any)
	return spec["ttlSecondsAfterFinished"] != nil
}

// ownersOf names the first owner references.
func ownersOf(content map[string]any) string {
	metadata, _ := content["metadata"].(map[string]any)
	references, _ := metadata["ownerReferences"].([]any)
	names := make([]string, len(references))
	for i := range references {
		reference, _ := references[i].(map[string]any)
		kind, name, uid := reference["kind"], reference["name"], reference["uid"]
		names[i] = fmt.Sprintf("ownerReferences[%d] (%v %v, UID %v)", i, kind, name, uid)
	}
	return message.List(names, 3)
}

// complete does what depends on the scope: it takes the digest of the object in its namespace. If it did so for the
// same scope before, only the digest of the component may change. changed reports whether it did not.
func (i *item) complete(s scope, from *source, componentDigest string) (changed bool, err error) {
	if changed = i.scope != s; changed {
		i.scope = 0
		if s == scopeNamespaced && i.home == "" {
			return true, errors.New("it is namespaced, and no namespace is known for it")
		}
		content, err := from.sanitized()
		if err != nil {
			return true, err
		}
		i.setScope(s, content)
	}
	if i.desired.ReconcilePolicy == apis.ReconcileOnObjectOrComponentChange {
		base, suffix, ok := strings.Cut(i.digest, "@")
		if !ok || suffix != componentDigest {
			i.digest = base + "@" + componentDigest
		}
	}
	return changed, nil
}

// setScope takes what depends on the scope from the content.
func (i *item) setScope(s scope, content map[string]any) {
	i.scope = s
	i.data = i.fingerprints(content)
	i.digest = plan.DigestOnce
	if i.desired.ReconcilePolicy != apis.ReconcileOnce {
		i.digest = digestOf(inNamespace(content, i.within()), i.confidential())
	}
}

// release drops the content, which is made again if it is needed. All contents together would be the most that a
// roll-out keeps in memory. So that few are made again, the item is completed before, for the scope that it most likely
// has.
func (i *item) release() {
	likely := scopeNamespaced
	if i.home == "" || i.definition != nil || i.kind.GroupKind() == kinds.Namespace {
		likely = scopeCluster
	}
	i.setScope(likely, i.content)
	i.content = nil
}

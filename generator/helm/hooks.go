package helm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/generator"
)

// release is what objects are translated for.
type release struct {
	// prefix is the name of the reconciler, which is the prefix of its annotations.
	prefix string
	// install is true for the first revision of the component.
	install bool
}

// translate adds to each object the annotations of a component that say what the annotations of Helm ask for: hooks
// become waves, and helm.sh/resource-policy a delete policy. The annotations of Helm stay. An annotation of a component
// that the chart has set stays as it is. What a list has counts for its items too. It returns the objects that remain,
// in the same order; they are changed in place. It is pure: no client, no clock. The error joins the problems of all
// objects, and names the object and the annotation of each.
//
// A hook that runs before others is applied in the waves -201 to -1, and one that runs after them in the waves 1 to
// 201, by weight. A hook of an installation is written once; one of an upgrade is recreated by each revision:
//
//	kinds for this revision   waves        removed if hook-succeeded
//	pre                       weight - 101  after wave -1
//	post                      weight + 101  after wave 201
//	pre and post              weight - 101  after wave 201
//	none, and it installs     the object is left out
//	none, and it upgrades     as for an installation: the object stays as it is
//	never any                 the object is left out: tests, rollbacks, and kinds that are dropped
func translate(
	objects []*unstructured.Unstructured, r release, options *Options,
) ([]*unstructured.Unstructured, error) {
	remaining := make([]*unstructured.Unstructured, 0, len(objects))
	var errs []error
	for _, object := range objects {
		stays, err := translateObject(object, nil, r, options)
		errs = append(errs, err)
		if stays {
			remaining = append(remaining, object)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return remaining, nil
}

// translateObject reports whether the object remains. inherited are annotations of Helm that count if the object does
// not have them.
func translateObject(
	object *unstructured.Unstructured, inherited map[string]string, r release, options *Options,
) (stays bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", nameOf(object), err)
		}
	}()
	a, err := readAnnotations(object, inherited, r.prefix)
	if err != nil {
		return false, err
	}
	if items, ok := itemsOf(object); ok {
		return true, translateItems(object, items, a.ofHelm(), r, options)
	}
	if text, ok := a.texts[v1.HookAnnotation]; ok {
		h, err := a.readHook(text, options)
		if err != nil || !h.runs(r.install) {
			return false, err
		}
		if err := a.setHook(h, r.install); err != nil {
			return false, err
		}
	}
	if err := a.setKeep(); err != nil {
		return false, err
	}
	if options.TakeOver {
		a.setTakeOver()
	}
	a.write(object)
	return true, nil
}

// translateDefinition translates an object of the folders crds. It comes before all hooks. Helm takes no such object
// for a hook.
func translateDefinition(object *unstructured.Unstructured, r release, options *Options) error {
	a, err := readAnnotations(object, nil, r.prefix)
	if err == nil && options.Definitions == DefinitionsManaged {
		err = a.setKeep()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", nameOf(object), err)
	}
	a.setDefault(generator.AnnotationApplyOrder, strconv.Itoa(definitionOrder))
	if options.TakeOver && options.Definitions == DefinitionsManaged {
		a.setTakeOver()
	}
	a.write(object)
	return nil
}

// itemsOf returns the items of a list, which a component takes for objects of their own.
func itemsOf(object *unstructured.Unstructured) ([]any, bool) {
	items, ok := object.Object["items"].([]any)
	return items, ok && strings.HasSuffix(object.GetKind(), "List") && object.GetName() == ""
}

// translateItems translates the items of a list. What is no object is left to the component, which refuses it.
func translateItems(
	list *unstructured.Unstructured, items []any, inherited map[string]string, r release, options *Options,
) error {
	remaining := make([]any, 0, len(items))
	var errs []error
	for i, item := range items {
		stays := true
		if content, ok := item.(map[string]any); ok {
			var err error
			object := &unstructured.Unstructured{Object: content}
			if stays, err = translateObject(object, inherited, r, options); err != nil {
				errs = append(errs, fmt.Errorf("items[%d]: %w", i, err))
			}
		}
		if stays {
			remaining = append(remaining, item)
		}
	}
	list.Object["items"] = remaining
	return errors.Join(errs...)
}

// hook is what the annotations of a hook say.
type hook struct {
	// kinds are those that a component runs.
	kinds  []v1.HookEvent
	weight int
	// purged is true if the hook is deleted once it has succeeded.
	purged bool
}

// Kinds of hooks that run when a component is installed, and when it is upgraded, and kinds that never run.
var (
	installKinds  = []v1.HookEvent{v1.HookPreInstall, v1.HookPostInstall}
	upgradeKinds  = []v1.HookEvent{v1.HookPreUpgrade, v1.HookPostUpgrade}
	deleteKinds   = []v1.HookEvent{v1.HookPreDelete, v1.HookPostDelete}
	rollbackKinds = []v1.HookEvent{v1.HookPreRollback, v1.HookPostRollback}
	testKinds     = []v1.HookEvent{v1.HookTest, testSuccess}
)

const (
	// testSuccess is an older name of the kind test.
	testSuccess v1.HookEvent = "test-success"
	// crdInstall is a kind that Helm 2 had.
	crdInstall v1.HookEvent = "crd-install"
)

// checkDropHooks refuses a kind that does not exist.
func checkDropHooks(options *Options) error {
	known := slices.Concat(installKinds, upgradeKinds, deleteKinds, rollbackKinds, testKinds)
	for i, kind := range options.DropHooks {
		if !slices.Contains(known, v1.HookEvent(kind)) {
			return fmt.Errorf("option DropHooks[%d]: %s is not a kind of hook; kinds are %s",
				i, quote(kind), words(known))
		}
	}
	return nil
}

// readHook reads the annotations of a hook of these kinds.
func (a *annotations) readHook(kinds string, options *Options) (hook, error) {
	h := hook{}
	for _, word := range split(kinds) {
		kind := v1.HookEvent(word)
		switch {
		case slices.Contains(options.DropHooks, word):
		case slices.Contains(installKinds, kind) || slices.Contains(upgradeKinds, kind):
			h.kinds = append(h.kinds, kind)
		case slices.Contains(rollbackKinds, kind) || slices.Contains(testKinds, kind):
		case slices.Contains(deleteKinds, kind):
			return h, a.refuse(v1.HookAnnotation, "a component runs no hook of the kind %s; "+
				"to leave it out, list the kind in Options.DropHooks", kind)
		case kind == crdInstall:
			return h, a.refuse(v1.HookAnnotation,
				"the kind crd-install is of Helm 2; move the definition into the folder crds of the chart")
		default:
			return h, a.refuse(v1.HookAnnotation, "%s is not a kind of hook", quote(word))
		}
	}
	if len(h.kinds) == 0 {
		return h, nil // the rest does not matter
	}
	if text, ok := a.texts[v1.HookWeightAnnotation]; ok {
		weight, err := strconv.Atoi(text)
		if err != nil || weight < -maxWeight || weight > maxWeight {
			return h, a.refuse(v1.HookWeightAnnotation, "must be a number from -100 to 100: %s", quote(text))
		}
		h.weight = weight
	}
	return h, a.readHookDeletePolicy(&h, options)
}

func (a *annotations) readHookDeletePolicy(h *hook, options *Options) error {
	text, ok := a.texts[v1.HookDeleteAnnotation]
	if !ok {
		return nil
	}
	for _, word := range split(text) {
		switch v1.HookDeletePolicy(word) {
		case v1.HookSucceeded:
			h.purged = true
		case v1.HookBeforeHookCreation:
		case v1.HookFailed:
			if !options.DropHookFailed {
				return a.refuse(v1.HookDeleteAnnotation, "a component does not delete a hook that has failed; "+
					"to ignore hook-failed, set Options.DropHookFailed")
			}
		default:
			return a.refuse(v1.HookDeleteAnnotation, "%s is not a policy", quote(word))
		}
	}
	return nil
}

// runs reports whether the hook is an object of this revision. A hook of the installation is one of each later revision
// too: it would be deleted otherwise.
func (h hook) runs(install bool) bool {
	return len(h.kinds) > 0 && (!install || h.hasAny(installKinds))
}

func (h hook) hasAny(kinds []v1.HookEvent) bool {
	return slices.ContainsFunc(h.kinds, func(kind v1.HookEvent) bool { return slices.Contains(kinds, kind) })
}

const (
	maxWeight = 100
	// orderOffset separates the waves of hooks from wave 0, which has the other objects.
	orderOffset = maxWeight + 1
	lastPre     = maxWeight - orderOffset
	lastPost    = maxWeight + orderOffset
	// definitionOrder is the wave of the folders crds.
	definitionOrder = -maxWeight - orderOffset - 1
)

// setHook says in annotations of a component when the hook runs.
func (a *annotations) setHook(h hook, install bool) error {
	kinds, reconcile := installKinds, "once"
	if !install && h.hasAny(upgradeKinds) {
		kinds, reconcile = upgradeKinds, "on-object-or-component-change"
	}
	order, last := h.weight+orderOffset, lastPost
	if h.hasAny(kinds[:1]) {
		order = h.weight - orderOffset
		if !h.hasAny(kinds[1:]) {
			last = lastPre
		}
	}
	if a.settings.Presence == generator.PresenceReadOnly {
		return a.contradiction(v1.HookAnnotation, generator.AnnotationPresence)
	}
	a.setDefault(generator.AnnotationReconcilePolicy, reconcile)
	a.setDefault(generator.AnnotationUpdatePolicy, "recreate")
	a.setDefault(generator.AnnotationApplyOrder, strconv.Itoa(order))
	if !h.purged {
		return nil
	}
	if a.container {
		return a.refuse(v1.HookDeleteAnnotation, "hook-succeeded is not possible: deleting a Namespace, "+
			"a CustomResourceDefinition or an APIService deletes other objects")
	}
	a.setDefault(generator.AnnotationPurgeOrder, strconv.Itoa(last))
	return nil
}

// split returns the words of a list, in lower case as Helm reads them.
func split(list string) []string {
	parts := strings.Split(list, ",")
	for i, part := range parts {
		parts[i] = strings.ToLower(strings.TrimSpace(part))
	}
	return parts
}

func words(kinds []v1.HookEvent) string {
	texts := make([]string, len(kinds))
	for i, kind := range kinds {
		texts[i] = string(kind)
	}
	return strings.Join(texts, ", ")
}

package helm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
)

// annotations are those of one object.
type annotations struct {
	prefix string
	// texts are the annotations that the chart has set.
	texts map[string]string
	// settings are what those among texts ask for that are of a component.
	settings generator.Settings
	// container is true for an object whose deletion deletes others.
	container bool
	// added are annotations to add.
	added map[string]string
}

// readAnnotations refuses annotations that are not texts, and those of a component that are not valid. An annotation
// without a value is an empty text, as for Helm.
func readAnnotations(
	object *unstructured.Unstructured, inherited map[string]string, prefix string,
) (*annotations, error) {
	a := &annotations{prefix: prefix, texts: map[string]string{}, container: isContainer(object)}
	maps.Copy(a.texts, inherited)
	metadata, err := mapOf(object.Object["metadata"], "metadata")
	if err != nil {
		return nil, err
	}
	raw, err := mapOf(metadata["annotations"], "metadata.annotations")
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		text, ok := raw[key].(string)
		if !ok && raw[key] != nil {
			return nil, a.refuse(key, "must be a string")
		}
		a.texts[key] = text
	}
	a.settings, err = generator.ReadSettings(prefix, a.texts)
	return a, err
}

// ofHelm returns the annotations of Helm.
func (a *annotations) ofHelm() map[string]string {
	texts := maps.Clone(a.texts)
	maps.DeleteFunc(texts, func(key, _ string) bool { return !strings.HasPrefix(key, "helm.sh/") })
	return texts
}

// mapOf returns value as a map. No value is an empty one.
func mapOf(value any, field string) (map[string]any, error) {
	m, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, fmt.Errorf("%s must be an object", field)
	}
	return m, nil
}

// setKeep reads the annotation helm.sh/resource-policy. An object that is kept stays when the chart drops it, and when
// the component is deleted.
func (a *annotations) setKeep() error {
	text, ok := a.texts[kube.ResourcePolicyAnno]
	if !ok {
		return nil
	}
	if strings.ToLower(strings.TrimSpace(text)) != kube.KeepPolicy {
		return a.refuse(kube.ResourcePolicyAnno, "must be keep: %s", quote(text))
	}
	if a.chartKey(generator.AnnotationDeletePolicy) != "" &&
		(a.settings.DeletePolicy == "" || a.settings.DeletePolicy == apis.DeleteDelete) {
		return a.contradiction(kube.ResourcePolicyAnno, generator.AnnotationDeletePolicy)
	}
	a.setDefault(generator.AnnotationDeletePolicy, "orphan")
	return nil
}

// setTakeOver lets the object be adopted from a Helm release, and be deleted as if the component had created it.
func (a *annotations) setTakeOver() {
	if a.settings.Presence == generator.PresenceReadOnly {
		return // it is never adopted
	}
	a.setDefault(generator.AnnotationAdoptionPolicy, "always")
	a.setDefault(generator.AnnotationDeletePolicy, "delete")
}

// chartKey returns the key under which the chart has set an annotation of a component. It is empty if it has not.
func (a *annotations) chartKey(name string) string {
	for _, prefix := range []string{a.prefix, generator.SharedPrefix} {
		if _, ok := a.texts[prefix+"/"+name]; ok && prefix != "" {
			return prefix + "/" + name
		}
	}
	return ""
}

// setDefault adds an annotation of a component, unless there is one.
func (a *annotations) setDefault(name, text string) {
	key := cmp.Or(a.prefix, generator.SharedPrefix) + "/" + name
	if _, ok := a.added[key]; ok || a.chartKey(name) != "" {
		return
	}
	if a.added == nil {
		a.added = map[string]string{}
	}
	a.added[key] = text
}

// write adds the annotations to the object.
func (a *annotations) write(object *unstructured.Unstructured) {
	if len(a.added) == 0 {
		return
	}
	metadata := child(object.Object, "metadata")
	all := child(metadata, "annotations")
	for key, text := range a.added {
		all[key] = text
	}
}

// child returns the map in a field of m, and creates it if there is none.
func child(m map[string]any, field string) map[string]any {
	c, ok := m[field].(map[string]any)
	if !ok || c == nil {
		c = map[string]any{}
		m[field] = c
	}
	return c
}

func (a *annotations) refuse(key, format string, args ...any) error {
	return fmt.Errorf("annotation %s: "+format, append([]any{key}, args...)...)
}

// contradiction refuses an annotation of Helm, since the chart has also set one of a component that says otherwise.
func (a *annotations) contradiction(key, name string) error {
	other := a.chartKey(name)
	return a.refuse(key, "it contradicts %s: %s", other, quote(a.texts[other]))
}

// isContainer reports whether the deletion of the object deletes others.
func isContainer(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind().GroupKind().String()
	return slices.Contains([]string{
		"Namespace", "CustomResourceDefinition.apiextensions.k8s.io", "APIService.apiregistration.k8s.io",
	}, kind)
}

// nameOf names an object in errors: kind, namespace and name.
func nameOf(object *unstructured.Unstructured) string {
	kind := cmp.Or(object.GetKind(), "object")
	if namespace := object.GetNamespace(); namespace != "" {
		return kind + " " + namespace + "/" + object.GetName()
	}
	return strings.TrimSuffix(kind+" "+object.GetName(), " ")
}

// quote quotes what a chart has written. A long text is cut.
func quote(text string) string {
	const limit = 100
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return strconv.Quote(text)
}

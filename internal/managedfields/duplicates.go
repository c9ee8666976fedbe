package managedfields

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// keyedList is a list whose elements differ in their keys.
type keyedList struct {
	// path leads to the list, from the object or from an element of the list around it.
	path []string
	// keys are fields of an element. Without keys, the elements themselves differ.
	keys []string
	// within are the lists in an element.
	within []keyedList
}

// keyedLists has the lists of the built-in kinds that server-side apply refuses if two elements have the same keys. A
// create accepts some of them, and the object could never be written again. The lists are those of the OpenAPI schemas,
// without metadata and status. Lists of custom resources are not among them: the API server checks these in a create,
// too.
var keyedLists = map[schema.GroupKind][]keyedList{
	{Kind: "Pod"}:                        {fieldsOfPods("spec")},
	{Kind: "PodTemplate"}:                {fieldsOfPods("template", "spec")},
	{Kind: "ReplicationController"}:      {fieldsOfPods("spec", "template", "spec")},
	{Group: "apps", Kind: "DaemonSet"}:   {fieldsOfPods("spec", "template", "spec")},
	{Group: "apps", Kind: "Deployment"}:  {fieldsOfPods("spec", "template", "spec")},
	{Group: "apps", Kind: "ReplicaSet"}:  {fieldsOfPods("spec", "template", "spec")},
	{Group: "apps", Kind: "StatefulSet"}: {fieldsOfPods("spec", "template", "spec")},
	{Group: "batch", Kind: "CronJob"}: {
		fieldsOfPods("spec", "jobTemplate", "spec", "template", "spec"),
		keyed("name", "spec", "jobTemplate", "spec", "scheduling", "resourceClaims"),
	},
	kinds.Job: {
		fieldsOfPods("spec", "template", "spec"),
		keyed("name", "spec", "scheduling", "resourceClaims"),
	},
	kinds.Service:                                {keyed("port protocol", "spec", "ports")},
	{Kind: "ServiceAccount"}:                     {keyed("name", "secrets")},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}: {keyed("", "spec", "volumeLifecycleModes")},

	{Group: groupAdmission, Kind: "MutatingAdmissionPolicy"}: {keyed("name", "spec", "matchConditions")},
	{Group: groupAdmission, Kind: "ValidatingAdmissionPolicy"}: {
		keyed("name", "spec", "matchConditions"), keyed("name", "spec", "variables"),
	},
	{Group: groupAdmission, Kind: "ValidatingAdmissionPolicyBinding"}: {keyed("", "spec", "validationActions")},
	{Group: groupAdmission, Kind: "MutatingWebhookConfiguration"}:     {webhooks},
	{Group: groupAdmission, Kind: "ValidatingWebhookConfiguration"}:   {webhooks},
}

const groupAdmission = "admissionregistration.k8s.io"

var webhooks = keyed("name", "webhooks").with(keyed("name", "matchConditions"))

// fieldsOfPods returns the lists of a pod template, as those of one value.
func fieldsOfPods(path ...string) keyedList {
	inContainer := []keyedList{
		keyed("name", "env"),
		keyed("containerPort protocol", "ports"),
		keyed("name", "resources", "claims"),
		keyed("devicePath", "volumeDevices"),
		keyed("mountPath", "volumeMounts").with(keyed("", "bindMountOptions")),
	}
	return keyedList{path: path, within: []keyedList{
		keyed("name", "containers").with(inContainer...),
		keyed("name", "initContainers").with(inContainer...),
		keyed("name", "ephemeralContainers").with(inContainer...),
		keyed("name", "evictionResponders"),
		keyed("ip", "hostAliases"),
		keyed("name", "imagePullSecrets"),
		keyed("name", "resourceClaims"),
		keyed("name", "resources", "claims"),
		keyed("name", "schedulingGates"),
		keyed("topologyKey whenUnsatisfiable", "topologySpreadConstraints"),
		keyed("name", "volumes"),
	}}
}

func keyed(keys string, path ...string) keyedList {
	return keyedList{path: path, keys: strings.Fields(keys)}
}

func (l keyedList) with(lists ...keyedList) keyedList {
	l.within = lists
	return l
}

// defaultKeys are the values of keys that an element need not have.
var defaultKeys = map[string]any{"protocol": "TCP"}

// Duplicate is a list with two elements of the same keys.
type Duplicate struct {
	// List is the path of the list, such as spec.ports.
	List string
	// Keys are the keys of both elements with their values.
	Keys string
}

// DuplicateIn returns the first list of the content with two elements of the same keys, or nil.
func DuplicateIn(kind schema.GroupKind, content map[string]any) *Duplicate {
	for i := range keyedLists[kind] {
		if found := keyedLists[kind][i].find(content, ""); found != nil {
			return found
		}
	}
	return nil
}

// find looks for duplicates in the list in value, which is at a place.
func (l *keyedList) find(value any, place string) *Duplicate {
	for _, field := range l.path {
		object, _ := value.(map[string]any)
		value = object[field]
	}
	place = strings.TrimPrefix(place+"."+strings.Join(l.path, "."), ".")
	elements, isList := value.([]any)
	if !isList {
		return l.findWithin(value, place)
	}
	seen := make(map[string]bool, len(elements))
	for i, element := range elements {
		key, complete := l.keyOf(element)
		if complete && seen[key] {
			return &Duplicate{List: place, Keys: key}
		}
		seen[key] = true
		if found := l.findWithin(element, fmt.Sprintf("%s[%d]", place, i)); found != nil {
			return found
		}
	}
	return nil
}

func (l *keyedList) findWithin(value any, place string) *Duplicate {
	for i := range l.within {
		if found := l.within[i].find(value, place); found != nil {
			return found
		}
	}
	return nil
}

// keyOf returns the keys of an element as text. The API server refuses an element that is not complete.
func (l *keyedList) keyOf(element any) (text string, complete bool) {
	if len(l.keys) == 0 {
		return fmt.Sprintf("the value %v", element), true
	}
	object, _ := element.(map[string]any)
	words := make([]string, 0, len(l.keys))
	for _, key := range l.keys {
		value := object[key]
		if value == nil {
			value = defaultKeys[key]
		}
		if value == nil {
			return "", false
		}
		words = append(words, fmt.Sprintf("%s %v", key, value))
	}
	slices.Sort(words)
	return strings.Join(words, " and "), true
}

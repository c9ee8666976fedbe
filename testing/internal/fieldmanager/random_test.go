package fieldmanager_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

// testKind is a kind with values for some of its fields, by path. A path through a list has the key of the item.
type testKind struct {
	schema.GroupVersionKind
	converter func() managedfields.TypeConverter
	create    func() client.Object
	values    map[string][]any
}

type object = map[string]any

func list(items ...any) []any { return append([]any{}, items...) }

var testKinds = map[string]testKind{
	"ConfigMap": {
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		converter:        fieldmanager.BuiltIn,
		create:           func() client.Object { return &corev1.ConfigMap{} },
		values: map[string][]any{
			"data.a": {"1", "2"}, "data.b": {"1", "2"}, "data.c": {""}, "immutable": {false},
			"metadata.labels.a": {"1", "2"}, "metadata.annotations.a": {"1"},
			"metadata.finalizers": {list("x/a"), list("x/a", "x/b")},
		},
	},
	"Deployment": {
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		converter:        fieldmanager.BuiltIn,
		create:           func() client.Object { return &appsv1.Deployment{} },
		values: map[string][]any{
			"spec.replicas": {int64(1), int64(2)}, "spec.selector.matchLabels.a": {"1", "2"},
			"spec.template.metadata.labels.a":                         {"1", "2"},
			"spec.template.spec.nodeSelector.a":                       {"1", "2"},
			"spec.template.spec.containers.web.image":                 {"web:1", "web:2"},
			"spec.template.spec.containers.web.args":                  {list("a", "b"), list("b")},
			"spec.template.spec.containers.side.image":                {"side:1", "side:2"},
			"spec.template.spec.containers.side.resources.limits.cpu": {"1", "1000m", "2"},
			"spec.template.spec.containers.side.env": {
				list(object{"name": "A", "value": "1"}), list(object{"name": "B"}),
				list(object{"name": "A", "value": "1"}, object{"name": "A", "value": "2"}), // Duplicates cannot be applied.
			},
			"spec.template.spec.containers.web.ports": {
				list(object{"containerPort": int64(80)}),
				list(object{"containerPort": int64(80), "protocol": "TCP"}, object{"containerPort": int64(81)}),
			},
			"status.replicas": {int64(1), int64(2)}, "status.conditions.Available.status": {"True", "False"},
			"metadata.labels.a": {"1", "2"},
		},
	},
	"Gadget": {
		GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"},
		converter:        managedfields.NewDeducedTypeConverter,
		create:           func() client.Object { return &unstructured.Unstructured{Object: object{}} },
		values: map[string][]any{
			"spec.a": {"1", int64(2), true}, "spec.b.c": {"1", "2"}, "spec.empty": {object{}, list()},
			"spec.list":    {list("a"), list("a", "b"), list(object{"k": "v"})},
			"status.ready": {true, false}, "status.phase": {"Up"}, "metadata.labels.a": {"1", "2"},
		},
	},
}

// itemKeys are the fields that identify the items of lists, by the name of the list.
var itemKeys = map[string]string{"containers": "name", "conditions": "type"}

// set sets a value in an object, and makes what is on the way.
func set(content object, path string, value any) {
	name, rest, more := strings.Cut(path, ".")
	if !more {
		content[name] = runtime.DeepCopyJSONValue(value)
		return
	}
	key, isList := itemKeys[name]
	if !isList {
		inner, ok := content[name].(object)
		if !ok {
			inner = object{}
			content[name] = inner
		}
		set(inner, rest, value)
		return
	}
	id, rest, _ := strings.Cut(rest, ".")
	items, _ := content[name].([]any)
	for _, item := range items {
		if item.(object)[key] == id {
			set(item.(object), rest, value)
			return
		}
	}
	item := object{key: id}
	set(item, rest, value)
	content[name] = append(items, item)
}

// randomValues sets about a share of the fields that a subresource writes.
func (k testKind) randomValues(random *rand.Rand, into object, subresource string, share float64) {
	for _, path := range slices.Sorted(maps.Keys(k.values)) {
		isStatus := strings.HasPrefix(path, "status.")
		if random.Float64() < share && (isStatus || subresource == "") {
			set(into, path, k.values[path][random.IntN(len(k.values[path]))])
		}
	}
}

func (k testKind) identity() object {
	return object{
		"apiVersion": k.GroupVersion().String(), "kind": k.Kind,
		"metadata": object{"namespace": "default", "name": "one"},
	}
}

// asObject returns content in the Go type of the kind.
func (k testKind) asObject(content object) client.Object {
	obj := k.create()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = runtime.DeepCopyJSON(content)
		return u
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
		panic(err)
	}
	return obj
}

// step is one write. Either config or next is set.
type step struct {
	write  fieldmanager.Write
	config *unstructured.Unstructured
	force  bool
	next   client.Object
}

// randomStep returns a write to an object, nil if it does not exist.
func (k testKind) randomStep(random *rand.Rand, live client.Object, managers int) step {
	s := step{write: fieldmanager.Write{Manager: string(rune('a' + random.IntN(managers))), Time: time.Now()}}
	if live != nil && random.IntN(3) == 0 {
		s.write.Subresource = "status"
	}
	if random.IntN(20) == 0 {
		s.write.Manager = ""
	}
	content, share := k.identity(), min(0.5, 5/float64(len(k.values)))
	if random.IntN(2) == 0 {
		k.randomValues(random, content, s.write.Subresource, share)
		if random.IntN(5) == 0 {
			set(content, "metadata.uid", "given")
			set(content, "metadata.resourceVersion", "1")
		}
		if random.IntN(30) == 0 {
			// In most schemas there is no such field. Which one of several errors is found is up to chance.
			content = k.identity()
			content["typo"] = "1"
		}
		s.config, s.force = &unstructured.Unstructured{Object: content}, random.IntN(3) == 0
		return s
	}
	if live != nil && (s.write.Subresource != "" || random.IntN(4) > 0) {
		var err error
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(live.DeepCopyObject()); err != nil {
			panic(err)
		}
		content["apiVersion"], content["kind"] = k.GroupVersion().String(), k.Kind
		delete(content["metadata"].(object), "managedFields")
	}
	k.randomValues(random, content, s.write.Subresource, share/2)
	s.next = k.asObject(content)
	if live != nil {
		s.next.SetUID(live.GetUID())
		s.write.Sent = randomSent(random, live.GetManagedFields())
	} else if random.IntN(4) > 0 {
		s.next.SetUID("created")
	}
	return s
}

// randomSent returns the managed fields of an update request to an object that has some.
func randomSent(random *rand.Rand, entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	switch sent := slices.Clone(entries); random.IntN(20) {
	case 0:
		return []metav1.ManagedFieldsEntry{}
	case 1:
		return []metav1.ManagedFieldsEntry{{}}
	case 2:
		return []metav1.ManagedFieldsEntry{{Manager: "invalid", FieldsType: "FieldsV2"}}
	case 3, 4:
		if len(sent) > 0 {
			sent[0].Manager, sent[0].Operation = "a", metav1.ManagedFieldsOperationApply
		}
		return sent
	case 5, 6, 7, 8, 9:
		return sent
	}
	return nil
}

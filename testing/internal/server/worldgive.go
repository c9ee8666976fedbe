package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// Give stores objects as if they had always been there, see [storage.Storage.Give]. Neither are they validated, nor do
// they get defaults, nor is anything taken from them: clients read what was given, with the status, the managed fields,
// and the times. An update that changes the contents of an object completes them, as that of an API server; one of
// anything but the contents leaves those of a built-in kind as they are.
//
// They get what they lack of the metadata that a server sets: UID, resource version, generation and creation time. An
// owner reference without a UID gets that of the object with its kind and name, which is in the same call or in the
// world. Namespaces that they are in are made. Kinds that are not in the scheme are those that objects have themselves.
//
// The error names the object; nothing is stored then. It is one if no kind of the world is that of the object, if the
// object lacks a name or a namespace, if it is there already (except one of the namespaces that each world has), if
// another object of the call has its UID, or if its resource version is no number.
//
// Give does not change the objects. It must not be called while others write to the world.
func (w World) Give(scheme *runtime.Scheme, objs ...client.Object) error {
	g := giving{world: w, byKey: map[string]*given{}, byUID: map[types.UID]*given{}}
	for _, definitions := range []bool{true, false} {
		for _, obj := range objs {
			gvk, err := apiutil.GVKForObject(obj, scheme)
			if err != nil {
				gvk = obj.GetObjectKind().GroupVersionKind()
			}
			if (gvk.GroupKind() == DefinitionKind) != definitions {
				continue
			}
			if err := g.add(gvk, obj); err != nil {
				return fmt.Errorf("%s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
			}
		}
	}
	for _, next := range slices.Clone(g.all) {
		g.completeOwners(next.object)
		if err := g.addNamespace(next.object.GetNamespace()); err != nil {
			return err
		}
	}
	entries := make([]*storage.Entry, len(g.all))
	for i, next := range g.all {
		var err error
		if entries[i], err = next.entry(); err != nil {
			return fmt.Errorf("%s %s: %w", next.gvk.Kind, client.ObjectKeyFromObject(next.object), err)
		}
	}
	return w.Storage.Give(entries...)
}

// giving is one call of [World.Give].
type giving struct {
	world World
	all   []*given
	byKey map[string]*given
	byUID map[types.UID]*given
	// defined are the kinds of definitions that are given.
	defined []Kind
}

// given is an object that is given, in the form in which it is stored.
type given struct {
	kind     Kind
	gvk      schema.GroupVersionKind
	revision int64
	object   client.Object
}

func (g *giving) kind(gvk schema.GroupVersionKind) (Kind, error) {
	k, ok := g.world.Kind(gvk.GroupKind())
	for _, defined := range g.defined {
		if defined.GroupKind == gvk.GroupKind() {
			k, ok = defined, true
		}
	}
	if !ok || k.Version(gvk.Version) == nil {
		return Kind{}, noMatch(gvk)
	}
	return k, nil
}

// add adds an object that is to be given.
func (g *giving) add(gvk schema.GroupVersionKind, obj client.Object) error {
	k, err := g.kind(gvk)
	if err != nil {
		return err
	}
	next := &given{kind: k, gvk: gvk}
	if next.object, err = stored(k, gvk, obj); err != nil {
		return err
	}
	if k.Scope == registry.Cluster {
		next.object.SetNamespace("")
	}
	if err := next.checkName(); err != nil {
		return err
	}
	key := k.Key(next.object.GetNamespace(), next.object.GetName())
	initial := k.GroupKind == schema.GroupKind{Kind: "Namespace"} && slices.Contains(initialNamespaces, obj.GetName())
	if g.byKey[key] != nil || g.world.Storage.Entry(key) != nil && !initial {
		return fmt.Errorf("it is already there")
	}
	if err := next.completeMetadata(g.world.Storage, key); err != nil {
		return err
	}
	if other := g.byUID[next.object.GetUID()]; other != nil {
		return fmt.Errorf("its UID %q is that of %s %s too", next.object.GetUID(), other.gvk.Kind,
			client.ObjectKeyFromObject(other.object))
	}
	g.all = append(g.all, next)
	g.byKey[key], g.byUID[next.object.GetUID()] = next, next
	return g.define(next)
}

// define has objects of the kind of a definition be given in the same call.
func (g *giving) define(next *given) error {
	d, ok := next.object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil
	}
	defined := kindOfDefinition(d)
	if len(defined.Versions) == 0 {
		return nil
	}
	for _, other := range definitionsIn(g.world.Storage) {
		if other.kind.GroupKind == defined.GroupKind && len(other.kind.Versions) > 0 {
			return fmt.Errorf("CustomResourceDefinition %s has the kind already", other.Name)
		}
	}
	for _, other := range g.defined {
		if other.GroupKind == defined.GroupKind {
			return fmt.Errorf("another CustomResourceDefinition has the kind already")
		}
	}
	g.defined = append(g.defined, defined)
	return nil
}

func (g *given) checkName() error {
	switch {
	case g.object.GetName() == "":
		return fmt.Errorf("it has no name")
	case g.object.GetNamespace() == "" && g.kind.Scope == registry.Namespaced:
		return fmt.Errorf("it has no namespace")
	}
	return nil
}

// completeMetadata gives an object what it lacks of the metadata that a server sets.
func (g *given) completeMetadata(kept *storage.Storage, key string) error {
	if g.object.GetUID() == "" {
		g.object.SetUID(uidOf(g.kind.GroupKind, g.object, kept.Ended(key)))
	}
	if g.object.GetGeneration() == 0 && !g.kind.WithoutGeneration {
		g.object.SetGeneration(1)
	}
	if created := g.object.GetCreationTimestamp(); created.IsZero() {
		g.object.SetCreationTimestamp(timeIn(kept))
	}
	version := g.object.GetResourceVersion()
	if version == "" {
		return nil
	}
	var err error
	if g.revision, err = strconv.ParseInt(version, 10, 64); err != nil || g.revision <= 0 {
		return fmt.Errorf("the resource version %q is no number, as those of an API server are", version)
	}
	return nil
}

// completeOwners gives owner references their UIDs.
func (g *giving) completeOwners(obj client.Object) {
	references := obj.GetOwnerReferences()
	changed := false
	for i, reference := range references {
		if reference.UID != "" {
			continue
		}
		k, err := g.kind(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind))
		if err != nil {
			continue
		}
		key := k.Key(obj.GetNamespace(), reference.Name)
		if references[i].UID = g.uid(key); references[i].UID == "" && k.Scope == registry.AnyScope {
			references[i].UID = g.uid(k.Key("", reference.Name))
		}
		changed = changed || references[i].UID != ""
	}
	if changed {
		obj.SetOwnerReferences(references)
	}
}

// uid returns the UID of an object that is given or there, "" if there is none.
func (g *giving) uid(key string) types.UID {
	if next, ok := g.byKey[key]; ok {
		return next.object.GetUID()
	}
	e := g.world.Storage.Entry(key)
	if e == nil {
		return ""
	}
	var partial metav1.PartialObjectMetadata
	_ = json.Unmarshal(e.Value, &partial) // Nobody has a UID that cannot be read.
	return partial.UID
}

// addNamespace adds a namespace unless it is given or there, or its name is empty.
func (g *giving) addNamespace(name string) error {
	gvk := corev1.SchemeGroupVersion.WithKind("Namespace")
	k, _ := BuiltIn(gvk.GroupKind())
	key := k.Key("", name)
	if name == "" || g.byKey[key] != nil || g.world.Storage.Entry(key) != nil {
		return nil
	}
	if err := g.add(gvk, namespace(name)); err != nil {
		return fmt.Errorf("make the namespace %s: %w", name, err)
	}
	return nil
}

// namespace returns a namespace as an API server completes it.
func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
}

// stored returns a copy of an object in the form in which the server has it: a Go type for a built-in kind, and else
// unstructured.
func stored(k Kind, gvk schema.GroupVersionKind, obj client.Object) (client.Object, error) {
	if k.GroupKind == DefinitionKind {
		return definitionOf(obj)
	}
	if b, ok := builtInKind(k); ok {
		return builtInObject(b, gvk, obj)
	}
	content, err := contentOf(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, coerceMetadata(content)
}

// builtInObject returns a copy of an object in the Go type that the kind has in the server.
func builtInObject(k kind, gvk schema.GroupVersionKind, obj client.Object) (client.Object, error) {
	if copied := obj.DeepCopyObject(); reflect.TypeOf(copied) == reflect.TypeOf(k.object()) {
		return copied.(client.Object), nil
	}
	content, err := contentOf(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	encoded, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	sent, _, err := codecs().UniversalDeserializer().Decode(encoded, nil, nil)
	if err != nil {
		return nil, err
	}
	hub := k.object()
	if reflect.TypeOf(sent) == reflect.TypeOf(hub) {
		return sent.(client.Object), nil
	}
	return hub.(client.Object), scheme().Convert(sent, hub, nil)
}

// entry encodes an object.
func (g *given) entry() (*storage.Entry, error) {
	e := &storage.Entry{Key: g.kind.Key(g.object.GetNamespace(), g.object.GetName()), Revision: g.revision}
	g.object.SetResourceVersion("")
	var err error
	switch obj := g.object.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		e.Show = showDefinition
		obj.SetGroupVersionKind(g.gvk)
		e.Value, err = json.Marshal(obj)
	case *unstructured.Unstructured:
		e.Show = showCustomResource
		e.Value, err = runtime.Encode(unstructured.UnstructuredJSONScheme, obj)
	default:
		k, _ := builtInKind(g.kind)
		e.Value, err = runtime.Encode(codecs().LegacyCodec(k.hub().GroupVersion()), obj)
	}
	return e, err
}

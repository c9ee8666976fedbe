package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// Give stores objects as if they had always been there, without completing or validating what they have. It gives them
// what they lack of the metadata that a server sets: UID, resource version (not higher than Revision), generation and
// creation time. An owner reference without a UID gets that of the object with its kind and name in the same call or in
// the store. Namespaces that they are in are made. Each of the objects must have a UID of its own. The error names the
// object; nothing is stored then.
func (s *Store) Give(objs ...client.Object) error {
	if s.memory != nil {
		return s.memory.Give(objs...)
	}
	definitions, others := s.inOrder(objs)
	before := s.Fork()
	g := &giving{store: s, byUID: map[types.UID]Key{}, pending: map[Key]*unstructured.Unstructured{},
		defined: map[schema.GroupKind]string{}}
	if err := g.give(definitions); err != nil {
		s.restore(before)
		return err
	}
	if err := g.give(others); err != nil {
		s.restore(before)
		return err
	}
	return nil
}

// restore has the store be as it was.
func (s *Store) restore(before *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = before.kept.Fork(s.time)
	s.served, s.servedAt, s.shown, s.given, s.taken = before.served, before.servedAt, before.shown, before.given, before.taken
}

// inOrder returns definitions and other objects.
func (s *Store) inOrder(objs []client.Object) (definitions, others []givenObject) {
	for _, obj := range objs {
		gvk, err := apiutil.GVKForObject(obj, s.options.Scheme)
		if err != nil {
			gvk = obj.GetObjectKind().GroupVersionKind()
		}
		if gvk.GroupKind() == definitionKind {
			definitions = append(definitions, givenObject{obj, gvk})
		} else {
			others = append(others, givenObject{obj, gvk})
		}
	}
	return definitions, others
}

// givenObject is an object that is given.
type givenObject struct {
	client.Object
	gvk schema.GroupVersionKind
}

// giving is one call of Give.
type giving struct {
	store *Store
	byUID map[types.UID]Key
	// pending are the objects that will be stored.
	pending map[Key]*unstructured.Unstructured
	order   []Key
	// defined are the names of the definitions, by the kinds that they define.
	defined map[schema.GroupKind]string
	// revision is the highest resource version that was given to an object which has none.
	revision int64
}

// give stores objects.
func (g *giving) give(objs []givenObject) error {
	served := g.store.kinds()
	g.order = nil
	for _, obj := range objs {
		if err := g.prepare(served, obj); err != nil {
			return fmt.Errorf("%s %s: %w", obj.gvk.Kind, client.ObjectKeyFromObject(obj.Object), err)
		}
	}
	for _, key := range slices.Clone(g.order) {
		g.completeOwners(served, g.pending[key])
		if err := g.makeNamespace(served, key.Namespace); err != nil {
			return err
		}
	}
	var entries []*storage.Entry
	defines := false
	for _, key := range g.order {
		e, err := encode(served.find(key.Kind), g.pending[key])
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if err := g.define(served, e); err != nil {
			return err
		}
		entries = append(entries, e)
		defines = defines || key.Kind == definitionKind
	}
	g.store.put(entries, defines)
	return nil
}

// define refuses a definition of a kind that has one.
func (g *giving) define(served *kinds, e *storage.Entry) error {
	defined := definedIn(e)
	if !isDefinitionKey(e.Key) || defined == nil {
		return nil
	}
	other, ok := g.defined[defined.GroupKind]
	if before := served.defined[defined.GroupKind]; before != nil {
		other, ok = before.definition, true
	}
	if ok {
		return fmt.Errorf("CustomResourceDefinition %s has the kind already", other)
	}
	g.defined[defined.GroupKind] = defined.definition
	return nil
}

// put stores entries.
func (s *Store) put(entries []*storage.Entry, defines bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	atRest := s.servedAt == s.kept.Revision()
	s.kept.Put(entries...)
	s.collected = 0
	if defines {
		s.served = s.served.with(s.kept)
	}
	if atRest {
		s.servedAt = s.kept.Revision()
	}
}

// prepare gives an object what it lacks of the metadata that a server sets.
func (g *giving) prepare(served *kinds, obj givenObject) error {
	k := served.find(obj.gvk.GroupKind())
	v := k.version(obj.gvk.Version)
	if v == nil {
		return noMatch(obj.gvk.GroupKind(), obj.gvk.Version)
	}
	u, err := inForm(obj.Object, v, obj.gvk)
	if err != nil {
		return err
	}
	u.SetNamespace(k.namespace(u.GetNamespace()))
	switch {
	case u.GetName() == "":
		return errNoName
	case u.GetNamespace() == "" && k.isNamespaced():
		return errNoNamespace
	}
	key := newKey(k.GroupKind, u.GetNamespace(), u.GetName())
	// A given namespace takes the place of the one that the control plane has made.
	initial := key.Kind == namespaceKind && slices.Contains(initialNamespaces, key.Name)
	kept := g.store.storage()
	storedAs := k.key(key.Namespace, key.Name)
	if _, twice := g.pending[key]; twice || kept.Entry(storedAs) != nil && !initial {
		return fmt.Errorf("it is already there")
	}
	if u.GetUID() == "" {
		u.SetUID(registry.UID(key, kept.Ended(storedAs)))
	}
	if t, builtIn := registry.BuiltIn(obj.gvk); u.GetGeneration() == 0 && !(builtIn && t.WithoutGeneration) {
		u.SetGeneration(1)
	}
	if created := u.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(g.store.time().Truncate(time.Second)))
	}
	if err := g.setVersion(u); err != nil {
		return err
	}
	if entries := u.GetManagedFields(); len(entries) > 0 {
		if err := managedfields.ValidateManagedFields(entries); err != nil {
			return err
		}
		g.store.show(u.GetUID())
	}
	if other, ok := g.byUID[u.GetUID()]; ok {
		return fmt.Errorf("its UID %q is that of %s too", u.GetUID(), other)
	}
	g.byUID[u.GetUID()] = key
	g.pending[key], g.order = u, append(g.order, key)
	return nil
}

// inForm returns a copy of an object in the form of the Go type of its kind.
func inForm(obj client.Object, v *version, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	encoded, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	shaped := v.object()
	if _, ok := shaped.(runtime.Unstructured); !ok {
		if err := json.Unmarshal(encoded, shaped); err != nil {
			return nil, err
		}
		if encoded, err = json.Marshal(shaped); err != nil {
			return nil, err
		}
	}
	u := &unstructured.Unstructured{}
	content := map[string]any{}
	if err := json.Unmarshal(encoded, &content); err != nil {
		return nil, err
	}
	content["apiVersion"], content["kind"] = gvk.GroupVersion().String(), gvk.Kind
	if encoded, err = json.Marshal(content); err != nil {
		return nil, err
	}
	return u, u.UnmarshalJSON(encoded)
}

// encode returns the entry of an object.
func encode(k *kind, u *unstructured.Unstructured) (*storage.Entry, error) {
	revision, err := strconv.ParseInt(u.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, err
	}
	stored := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	stored.SetAPIVersion(k.WithVersion(k.versions[0].name).GroupVersion().String())
	unstructured.RemoveNestedField(stored.Object, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(stored.Object, "metadata", "selfLink")
	var value any = stored.Object
	if obj := k.versions[0].object(); isGoType(obj) {
		// An API server compares what it would write with this.
		raw, err := json.Marshal(stored.Object)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, obj); err != nil {
			return nil, err
		}
		if _, builtIn := registry.BuiltIn(k.WithVersion("")); builtIn {
			value = obj
		}
	}
	var encoded bytes.Buffer
	if err := json.NewEncoder(&encoded).Encode(value); err != nil {
		return nil, err
	}
	return &storage.Entry{Key: k.key(u.GetNamespace(), u.GetName()), Value: encoded.Bytes(), Revision: revision}, nil
}

func isGoType(obj runtime.Object) bool {
	_, ok := obj.(runtime.Unstructured)
	return !ok
}

// setVersion gives an object a resource version if it has none.
func (g *giving) setVersion(obj client.Object) error {
	s := g.store
	s.mu.Lock()
	defer s.mu.Unlock()
	version := obj.GetResourceVersion()
	if version == "" {
		setVersion(obj, g.versionToGive())
		return nil
	}
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil || number <= 0 {
		return fmt.Errorf("the resource version %q is no number, as those of an API server are", version)
	}
	if number < firstRevision {
		taken := maps.Clone(s.taken)
		if taken == nil {
			taken = map[int64]bool{}
		}
		taken[number] = true
		s.taken = taken
	}
	return nil
}

// versionToGive returns a resource version that no object has. There are many that are lower than those of changes. The
// caller holds the lock of the store.
func (g *giving) versionToGive() int64 {
	s := g.store
	for s.given < firstRevision-1 {
		if s.given++; !s.taken[s.given] {
			return s.given
		}
	}
	g.revision = max(g.revision, s.kept.Revision()) + 1
	return g.revision
}

// completeOwners gives owner references their UIDs.
func (g *giving) completeOwners(served *kinds, obj client.Object) {
	references := obj.GetOwnerReferences()
	changed := false
	for i, reference := range references {
		if reference.UID != "" {
			continue
		}
		kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
		for _, namespace := range []string{obj.GetNamespace(), ""} {
			if owner := g.find(served, newKey(kind, namespace, reference.Name)); owner != nil {
				references[i].UID, changed = owner.GetUID(), true
				break
			}
		}
	}
	if changed {
		obj.SetOwnerReferences(references)
	}
}

// find returns an object that is given or stored, nil if there is none.
func (g *giving) find(served *kinds, key Key) client.Object {
	if given, ok := g.pending[key]; ok {
		return given
	}
	if obj := g.store.find(served, key); obj != nil {
		return obj
	}
	return nil
}

// find returns a stored object, nil if there is none.
func (s *Store) find(served *kinds, key Key) client.Object {
	k := served.find(key.Kind)
	if k == nil || key.Namespace != "" && k.scope == registry.Cluster {
		return nil
	}
	return served.object(s.storage().Entry(k.key(key.Namespace, key.Name)))
}

// makeNamespace makes a namespace, unless it is there.
func (g *giving) makeNamespace(served *kinds, name string) error {
	if name == "" || g.find(served, Key{Kind: namespaceKind, Name: name}) != nil {
		return nil
	}
	if err := g.prepare(served, newNamespace(name)); err != nil {
		return fmt.Errorf("make the namespace %q: %w", name, err)
	}
	return nil
}

func newNamespace(name string) givenObject {
	ns := &corev1.Namespace{}
	ns.Name = name
	ns.Labels = map[string]string{corev1.LabelMetadataName: name}
	ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	ns.Status.Phase = corev1.NamespaceActive
	return givenObject{ns, corev1.SchemeGroupVersion.WithKind("Namespace")}
}

// giveInitial makes the namespaces that each cluster has.
func (s *Store) giveInitial() {
	g := &giving{store: s, byUID: map[types.UID]Key{}, pending: map[Key]*unstructured.Unstructured{},
		defined: map[schema.GroupKind]string{}}
	namespaces := make([]givenObject, len(initialNamespaces))
	for i, name := range initialNamespaces {
		namespaces[i] = newNamespace(name)
	}
	_ = g.give(namespaces) // The kind is built in.
}

package store

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

// Give stores objects as if they had always been there, without completing or validating what they have. It gives them
// what they lack of the metadata that a server sets: UID, resource version (not higher than Revision), generation and
// creation time. An owner reference without a UID gets that of the object with its kind and name in the same call or in
// the store. Namespaces that they are in are made. Each of the objects must have a UID of its own. The error names the
// object; nothing is stored then.
func (s *memory) Give(objs ...client.Object) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.fork()
	defer func() {
		if err != nil {
			s.state = before
		}
	}()
	s.state.collected = 0
	given := make([]*record, len(objs))
	byUID := map[types.UID]*record{}
	for _, definitions := range []bool{true, false} {
		for i, obj := range objs {
			gvk, err := apiutil.GVKForObject(obj, s.options.Scheme)
			if err != nil {
				gvk = obj.GetObjectKind().GroupVersionKind()
			}
			if (gvk.GroupKind() == definitionKind) != definitions {
				continue
			}
			if given[i], err = s.give(gvk, obj); err != nil {
				return fmt.Errorf("%s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
			}
			uid := given[i].object.GetUID()
			if other, ok := byUID[uid]; ok {
				return fmt.Errorf("%s: its UID %q is that of %s too", given[i].key(), uid, other.key())
			}
			byUID[uid] = given[i]
		}
	}
	for _, r := range given {
		s.giveOwners(r.object)
		if r.namespace != "" {
			s.giveNamespace(r.namespace)
		}
	}
	return nil
}

// give stores an object. The caller holds the lock.
func (s *memory) give(gvk schema.GroupVersionKind, obj client.Object) (*record, error) {
	r, err := s.resource(gvk)
	if err != nil {
		return nil, err
	}
	next, sent, err := r.decode(obj, false)
	if err != nil {
		return nil, err
	}
	if err := r.checkName(next.GetNamespace(), next.GetName()); err != nil {
		return nil, err
	}
	key := newKey(r.gvk.GroupKind(), next.GetNamespace(), next.GetName())
	// A given namespace takes the place of the one that the control plane has made.
	initial := key.Kind == namespaceKind && slices.Contains(initialNamespaces, key.Name)
	if s.state.find(key) != nil && !initial {
		return nil, fmt.Errorf("it is already there")
	}
	if err := s.state.giveMetadata(r, next); err != nil {
		return nil, err
	}
	if created := next.GetCreationTimestamp(); created.IsZero() {
		next.SetCreationTimestamp(s.now())
	}
	fields, err := fieldmanager.Given(sent)
	if err != nil {
		return nil, err
	}
	after, err := s.newStoredRecord(r, next, fields, s.options.ManagedFields || fields != nil)
	if err != nil {
		return nil, err
	}
	s.state.put(after)
	if isDefinition(after) {
		return after, s.define(nil, after)
	}
	return after, nil
}

// giveMetadata gives an object what it lacks of UID, version and generation.
func (st *state) giveMetadata(r *resource, obj client.Object) error {
	if obj.GetUID() == "" {
		obj.SetUID(st.uid(newKey(r.gvk.GroupKind(), obj.GetNamespace(), obj.GetName())))
	}
	if obj.GetGeneration() == 0 && !r.kind.WithoutGeneration {
		obj.SetGeneration(1)
	}
	if version := obj.GetResourceVersion(); version != "" {
		number, err := strconv.ParseInt(version, 10, 64)
		if err != nil || number <= 0 {
			return fmt.Errorf("the resource version %q is no number, as those of an API server are", version)
		}
		if number < firstRevision {
			st.taken[number] = true
		}
		st.revision = max(st.revision, number)
		return nil
	}
	obj.SetResourceVersion(strconv.FormatInt(st.versionToGive(), 10))
	return nil
}

// versionToGive returns a resource version that no object has. There are many that are lower than those of changes.
func (st *state) versionToGive() int64 {
	for st.given < firstRevision-1 {
		if st.given++; !st.taken[st.given] {
			return st.given
		}
	}
	st.revision++
	return st.revision
}

// giveOwners completes owner references. The object belongs to nobody else yet. The caller holds the lock.
func (s *memory) giveOwners(obj client.Object) {
	references := obj.GetOwnerReferences()
	for i, reference := range references {
		if reference.UID != "" {
			continue
		}
		kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
		for _, namespace := range []string{obj.GetNamespace(), ""} {
			if owner := s.state.find(newKey(kind, namespace, reference.Name)); owner != nil {
				references[i].UID = owner.object.GetUID()
				break
			}
		}
	}
	if len(references) > 0 {
		obj.SetOwnerReferences(references)
	}
}

// giveNamespace makes a namespace, unless it is there. The caller holds the lock.
func (s *memory) giveNamespace(name string) {
	if s.state.find(Key{Kind: namespaceKind, Name: name}) != nil {
		return
	}
	ns := &corev1.Namespace{}
	ns.Name = name
	ns.Labels = map[string]string{corev1.LabelMetadataName: name}
	ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	ns.Status.Phase = corev1.NamespaceActive
	if _, err := s.give(corev1.SchemeGroupVersion.WithKind("Namespace"), ns); err != nil {
		panic(fmt.Sprintf("store: cannot make the namespace %q: %v", name, err)) // The kind is built in.
	}
}

package componentfaults_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/internal/store"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// invariant is what holds after each call of the operator in the platform scenario.
type invariant struct {
	platformOf
	ownerID string
}

// check says which invariants the changes of a call break.
func (i invariant) check(s *store.Store, made store.Call, changes []store.Change) string {
	var broken []string
	violated := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	objects := s.Objects()
	stored := i.inventory(objects)
	for _, change := range changes {
		if change.Before != nil && i.isForeign(change.Key) {
			violated("L4: writes to what belongs to others: %s", change.Key)
		}
		if i.isOurs(change.After) && !stored.Has(change.Key) {
			violated("L2: the inventory does not name %s", change.Key)
		}
	}
	if changed := changes[0].Key; made.Verb == store.Delete && changed.Kind.Kind != "Assembly" {
		if !stored.Has(changed) {
			violated("L4: deletes %s, which the inventory does not name", changed)
		}
		if made.UID == "" {
			violated("L4: deletes %s without a UID", changed)
		}
		if definition, ok := changes[0].Before.(*apiextensionsv1.CustomResourceDefinition); ok {
			if i.inUse(objects, changes) {
				violated("L5: deletes %s while others use it", changed)
			}
			if !i.fenced(definition) {
				violated("L5: deletes %s without a fence", changed)
			}
		}
	}
	for _, object := range objects {
		if key := keyOf(object); i.isOurs(object) && !stored.Has(key) && changes[0].Key.Kind.Kind == "Assembly" {
			violated("L2: the inventory does not name %s any more, which is still there", key)
		}
	}
	return strings.Join(broken, "; ")
}

// inventory is what the inventory in the cluster names.
func (i invariant) inventory(objects []client.Object) sets.Set[store.Key] {
	stored := sets.New[store.Key]()
	for _, object := range objects {
		a, ok := object.(*resources.Assembly)
		if !ok || a.DeletionTimestamp != nil && len(a.Finalizers) == 0 {
			continue
		}
		for _, record := range a.Status.Inventory {
			kind := schema.GroupKind{Group: record.Group, Kind: record.Kind}
			stored.Insert(store.Key{Kind: kind, Namespace: record.Namespace, Name: record.Name})
		}
	}
	return stored
}

// inUse reports whether others have an instance of the type, or had before the changes.
func (i invariant) inUse(objects []client.Object, changes []store.Change) bool {
	theirs := keyOf(i.theirs())
	for _, object := range objects {
		if keyOf(object) == theirs {
			return true
		}
	}
	for _, change := range changes {
		if change.Key == theirs {
			return true
		}
	}
	return false
}

// fenced reports whether no instance can be created.
func (i invariant) fenced(definition *apiextensionsv1.CustomResourceDefinition) bool {
	rules := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations
	return slices.ContainsFunc(rules, func(rule apiextensionsv1.ValidationRule) bool {
		return strings.Contains(rule.Rule, "fence of "+faultPrefix+"/owner-id="+i.ownerID)
	})
}

func (i invariant) isForeign(key store.Key) bool {
	for _, bystander := range i.bystanders() {
		if key.Kind.Kind == "ConfigMap" && key.Namespace == bystander.GetNamespace() &&
			key.Name == bystander.GetName() {
			return true
		}
	}
	return key == keyOf(i.theirs())
}

func (i invariant) isOurs(object client.Object) bool {
	return object != nil && object.GetLabels()[faultPrefix+"/owner-id"] == i.ownerID
}

func keyOf(object client.Object) store.Key {
	kind := object.GetObjectKind().GroupVersionKind().GroupKind()
	return store.Key{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

package run

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Check returns why the given objects cannot be stored. It calls resource, if it is the last of them, by the name
// of its field.
func (g Given) Check(resource client.Object) error {
	for _, list := range []struct {
		field   string
		objects []client.Object
	}{{"GivenObjects", g.GivenObjects}, {"APIGivenObjects", g.APIGivenObjects}} {
		names := make([]string, len(list.objects))
		for i, obj := range list.objects {
			names[i] = fmt.Sprintf("%s[%d]", list.field, i)
			if i == len(list.objects)-1 && isResource(obj, resource) {
				names[i] = "Resource"
			}
		}
		if err := g.checkList(names, list.objects); err != nil {
			return err
		}
	}
	if err := g.checkVersions(); err != nil {
		return err
	}
	for i, obj := range g.StatusSubResourceTypes {
		name := fmt.Sprintf("StatusSubResourceTypes[%d]", i)
		if gotype.IsNil(obj) {
			return fmt.Errorf("%s is nil", name)
		}
		if _, err := g.stored(name, obj); err != nil {
			return err
		}
	}
	return nil
}

// checkVersions checks that the API server of Kubernetes is given one version of each object. What the client has not
// seen yet is an object, not a change of one.
func (g Given) checkVersions() error {
	if !g.APIServer || len(g.APIGivenObjects) == 0 {
		return nil
	}
	given := map[store.Key]any{}
	for _, obj := range g.GivenObjects {
		stored := mustBeGiven(obj, g.Scheme)
		if key, ok := g.storeKey(stored); ok {
			given[key] = content(stored)
		}
	}
	for i, obj := range g.APIGivenObjects {
		stored := mustBeGiven(obj, g.Scheme)
		key, ok := g.storeKey(stored)
		if other, also := given[key]; ok && also && !equality.Semantic.DeepEqual(other, content(stored)) {
			return fmt.Errorf("APIGivenObjects[%d], %s, is another version than that of the GivenObjects: "+
				"an API server has one version of an object; use a table over the fake client", i, key)
		}
	}
	return nil
}

// content returns what an object is without its kind, in any Go type.
func content(obj client.Object) any {
	members, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err.Error()
	}
	delete(members, "apiVersion")
	delete(members, "kind")
	return members
}

// isResource reports whether obj is the resource of a case, the same value.
func isResource(obj, resource client.Object) bool {
	return !gotype.IsNil(resource) && reflect.TypeOf(obj).Comparable() && obj == resource
}

// checkList checks one list of given objects by their names in messages.
func (g Given) checkList(names []string, objs []client.Object) error {
	known := map[objects.Key]string{}
	for i, obj := range objs {
		if gotype.IsNil(obj) {
			return fmt.Errorf("%s is nil", names[i])
		}
		stored, err := g.stored(names[i], obj)
		if err != nil {
			return err
		}
		kind, err := objects.KindOf(stored, g.Scheme)
		if err != nil || g.Server != nil {
			continue // a Go type of several kinds is stored under each; a server has an object once
		}
		key := objects.NewKey(kind, client.ObjectKeyFromObject(stored))
		if stored.GetDeletionTimestamp() != nil && len(stored.GetFinalizers()) == 0 {
			return fmt.Errorf("%s, %s, has a deletion timestamp and no finalizer: an API server has no such object",
				names[i], key)
		}
		if first, ok := known[key]; ok {
			hint := ""
			if names[i] == "Resource" {
				hint = ": the row gives the Resource by itself"
			}
			return fmt.Errorf("%s and %s are the same object, %s%s", names[i], first, key, hint)
		}
		known[key] = names[i]
	}
	return nil
}

// stored returns obj as it is stored, or an error that says why its type cannot be.
func (g Given) stored(name string, obj client.Object) (client.Object, error) {
	stored, err := Stored(obj, g.Scheme)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, isUnstructured := stored.(runtime.Unstructured); isUnstructured {
		return stored, nil
	}
	if _, _, err := g.Scheme.ObjectKinds(stored); runtime.IsNotRegisteredError(err) {
		return nil, fmt.Errorf("%s: %s", name, objects.NotInScheme(stored))
	}
	return stored, nil
}

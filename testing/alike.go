package testing

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/jsondiff"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// alike returns an object in which the fields that the row ignores are those of the expected one.
func (c *ExpectConfig) alike(expected, actual client.Object) client.Object {
	if c.ignore == nil || gotype.IsNil(expected) || gotype.IsNil(actual) {
		return actual
	}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(objects.Copy(expected))
	if err != nil {
		return actual
	}
	got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(objects.Copy(actual))
	if err != nil || !c.accept(objects.NameOf(actual, c.Scheme), want, got) {
		return actual
	}
	if _, ok := actual.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: got}
	}
	same, ok := reflect.New(reflect.TypeOf(actual).Elem()).Interface().(client.Object)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(got, same) != nil {
		return actual
	}
	return same
}

// alikeApplied is alike for what is applied.
func (c *ExpectConfig) alikeApplied(expected, actual ApplyRef) runtime.ApplyConfiguration {
	if c.ignore == nil {
		return actual.ApplyConfiguration
	}
	got := check.Sent(actual.ApplyConfiguration)
	name := objects.Text(actual.Kind, actual.Namespace, actual.Name)
	if !c.accept(name, check.Sent(expected.ApplyConfiguration), got) {
		return actual.ApplyConfiguration
	}
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: got})
}

// alikePatch is alike for patches that are objects in JSON.
func (c *ExpectConfig) alikePatch(expected, actual PatchRef) []byte {
	if c.ignore == nil {
		return actual.Patch
	}
	want, _ := check.FromJSON(expected.inJSON().Patch).(map[string]any)
	got, _ := check.FromJSON(actual.inJSON().Patch).(map[string]any)
	if !c.accept(objects.Text(actual.Kind, actual.Namespace, actual.Name), want, got) {
		return actual.Patch
	}
	raw, err := json.Marshal(got)
	if err != nil {
		return actual.Patch
	}
	return raw
}

// accept gives the ignored fields of an object the values that are wanted, and reports whether some differed.
func (c *ExpectConfig) accept(name string, want, got map[string]any) (differed bool) {
	if c.Name != "default" {
		name += fault.In(c.Name)
	}
	jsondiff.Accept(got, want, func(path string) bool {
		ignored := path != "" && c.ignore(name, path)
		differed = differed || ignored
		return ignored
	})
	return differed
}

package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/generator"
)

// render returns a line for each object: its wave, kind and name.
func render(t *testing.T, spec v1alpha1.PlatformSpec) []string {
	t.Helper()
	objects, err := controller.Objects("ns", "x", &spec)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, obj := range objects {
		kind, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := generator.ReadSettings(controller.Prefix, obj.GetAnnotations())
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%d %s %s", settings.ApplyOrder, kind.Kind, strings.Trim(obj.GetNamespace()+"/"+obj.GetName(), "/"))
		if settings.PurgeOrder != nil {
			line += fmt.Sprintf(", until %d", *settings.PurgeOrder)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func TestObjects(t *testing.T) {
	always := []string{
		"0 ClusterRole platform-ns-x-viewer",
		"0 ClusterRoleBinding platform-ns-x-viewer",
		"0 ConfigMap ns/x-settings",
		"0 ServiceAccount ns/x-viewer",
		"1 ConfigMap ns/x-migration, until 1",
	}
	dashboards := []string{"0 CustomResourceDefinition dashboards.observability.example.com", "2 Dashboard ns/x-overview"}
	portal := []string{"2 ConfigMap ns/x-portal"}
	for name, tc := range map[string]struct {
		spec v1alpha1.PlatformSpec
		want []string
	}{
		"1.0":                         {v1alpha1.PlatformSpec{Version: "1.0"}, slices.Concat(always, dashboards, portal)},
		"1.0, without the portal":     {v1alpha1.PlatformSpec{Version: "1.0", Features: []v1alpha1.Feature{v1alpha1.Dashboards}}, slices.Concat(always, dashboards)},
		"1.0, without the dashboards": {v1alpha1.PlatformSpec{Version: "1.0", Features: []v1alpha1.Feature{v1alpha1.Portal}}, slices.Concat(always, portal)},
		"1.1":                         {v1alpha1.PlatformSpec{Version: "1.1"}, slices.Concat(always, dashboards)},
		"2.0":                         {v1alpha1.PlatformSpec{Version: "2.0"}, always},
	} {
		t.Run(name, func(t *testing.T) {
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, render(t, tc.spec)); diff != "" {
				t.Errorf("the objects differ (-want +got)\n%s", diff)
			}
		})
	}
}

func TestObjectsOfNoRelease(t *testing.T) {
	if _, err := controller.Objects("ns", "x", &v1alpha1.PlatformSpec{Version: "9.9"}); err == nil {
		t.Error("there are objects of a release that does not exist")
	}
}

func TestGenerator(t *testing.T) {
	made := controller.Installation().Generator
	if !generator.IsDeterministic(made) {
		t.Error("it does not promise to be deterministic")
	}
	objects, err := made.Generate(t.Context(), "ns", "x", &v1alpha1.PlatformSpec{Version: "1.0"})
	if err != nil || len(objects) != 8 {
		t.Errorf("it makes %d objects: %v", len(objects), err)
	}
	if _, err := made.Generate(t.Context(), "ns", "x", generator.UnstructurableMap{"version": "1.0"}); err == nil {
		t.Error("it takes what is no spec of a platform")
	}
}

package controller_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

func TestDefaults(t *testing.T) {
	tracked := tracks("", "ConfigMap", "platform", "defaults")

	run(t, tests{
		"they make sense": {
			Resource:            tenant.Object(),
			GivenObjects:        []object{defaults},
			ExpectResource:      tenant.With(isTrue(v1alpha1.DefaultsResolved, "Succeeded")).Object(),
			ExpectTracks:        tracked,
			ExpectStashedValues: parsed(),
		},
		"there are none": {
			Resource:       tenant.Object(),
			ExpectResource: tenant.With(isFalse(v1alpha1.DefaultsResolved, "NotFound", "there is no ConfigMap platform/defaults")).Object(),
			ExpectTracks:   tracked,
		},
		"they make no sense": {
			Resource: tenant.Object(),
			GivenObjects: []object{defaults.With(func(c *corev1.ConfigMap) {
				c.Data = map[string]string{"quota.pods": "lots", "qouta.pods": "1", "role.": "edit", "role.guest": "", "limits.cpu": "1"}
			})},
			ExpectResource: tenant.With(isFalse(v1alpha1.DefaultsResolved, "Invalid", "ConfigMap platform/defaults: ["+
				`data[qouta.pods]: Invalid value: "1": is not a default: use quota.RESOURCE, limits.RESOURCE or role.NAME, `+
				`data[quota.pods]: Invalid value: "lots": is not a quantity, `+
				`data[role.]: Invalid value: "edit": is not a default: use quota.RESOURCE, limits.RESOURCE or role.NAME, `+
				`data[role.guest]: Required value: name a ClusterRole]`)).Object(),
			ExpectTracks: tracked,
		},
		"they cannot be read": {
			Resource:     tenant.Object(),
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap")},
			ShouldErr:    true,
			ExpectTracks: tracked,
		},
	}, func() node { return controller.Defaults(reconcilers.Config{}, nil) })
}

func FuzzParseDefaults(f *testing.F) {
	f.Add("quota.pods", "20")
	f.Add("limits.", "")
	f.Add("role.guest", "view")
	f.Add(".", "1e999999999")
	f.Fuzz(func(t *testing.T, key, value string) {
		data := map[string]string{key: value, "quota.pods": "20"}
		parsed, problems := controller.ParseDefaults(data)
		again, problemsAgain := controller.ParseDefaults(data)
		if diff := cmp.Diff(parsed, again); diff != "" {
			t.Errorf("the second time they differ\n%s", diff)
		}
		if len(problems) != len(problemsAgain) || len(problems) > 1 {
			t.Errorf("the problems are %v and %v", problems, problemsAgain)
		}
	})
}

package testing_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// creates is the metadata of a case that creates copies of the settings with these names, as the field manager "me".
func creates(names ...string) map[string]any {
	return does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		for _, name := range names {
			if err := reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, named(name).Object(), client.FieldOwner("me")); err != nil {
				return err
			}
		}
		return nil
	})
}

func named(name string) rtesting.Fixture[*corev1.ConfigMap] {
	return settings.With(func(c *corev1.ConfigMap) { c.Name = name })
}

func init() {
	me := func(name string) client.Object {
		return rtesting.WithOptions(named(name), rtesting.WriteOptions{FieldOwner: "me"})
	}
	for name, failing := range map[string]scenario{
		"creates in another order": {
			run: one(cmCase{
				Metadata:      creates("first", "b", "a", "last"),
				ExpectCreates: []client.Object{named("first"), me("a"), named("b"), named("last")},
			}),
			want: []string{
				"ExpectCreates has the same calls in another order\n",
				"expected: [1] ConfigMap default/a, [2] ConfigMap default/b\n",
				"seen: [2] ConfigMap default/b, [1] ConfigMap default/a\n",
			},
			unwanted: []string{"differs", "Unexpected", "not observed", "first", "last"},
		},
		"other creates in another order": {
			run:      one(cmCase{Metadata: creates("b", "c"), ExpectCreates: []client.Object{named("a"), named("b")}}),
			want:     []string{"ExpectCreates[0] differs", "ExpectCreates[1] differs"},
			unwanted: []string{"another order"},
		},
		"the same create twice": {
			run:      one(cmCase{Metadata: creates("b", "c"), ExpectCreates: []client.Object{named("b"), named("b")}}),
			want:     []string{"ExpectCreates[1] differs"},
			unwanted: []string{"another order"},
		},
		"other options in another order": {
			run: one(cmCase{
				Metadata: creates("b", "a"),
				ExpectCreates: []client.Object{
					rtesting.WithOptions(named("a"), rtesting.WriteOptions{FieldOwner: "you"}), named("b"),
				},
			}),
			want:     []string{"ExpectCreates[0] differs"},
			unwanted: []string{"another order"},
		},
		"applies in another order": {
			run: one(cmCase{
				Metadata: does(func(ctx context.Context, _ *corev1.ConfigMap) error {
					for _, name := range []string{"b", "a"} {
						ref := rtesting.NewApplyRefFromObject(named(name), scheme)
						err := reconcilers.RetrieveConfigOrDie(ctx).Apply(ctx, ref.ApplyConfiguration, client.FieldOwner("me"))
						if err != nil {
							return err
						}
					}
					return nil
				}),
				ExpectApplies: []rtesting.ApplyRef{
					rtesting.NewApplyRefFromObject(named("a"), scheme), rtesting.NewApplyRefFromObject(named("b"), scheme),
				},
			}),
			want: []string{"ExpectApplies has the same calls in another order\n", "seen: [1] ConfigMap default/b, [0] ConfigMap default/a\n"},
		},
	} {
		scenarios[name] = failing
	}
}

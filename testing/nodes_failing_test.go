package testing_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// nodes is [one] as NodeTests.
func nodes(tc cmCase) func(t *testing.T) {
	return func(t *testing.T) {
		tc.Resource = settings.Object()
		runNodes(t, cmNodes{"case": tc})
	}
}

// observes returns a node that notes the generation.
func observes() reconcilers.SubReconciler[*appsv1.Deployment] {
	return node[*appsv1.Deployment]{reconcile: func(_ context.Context, d *appsv1.Deployment) (reconcilers.Result, error) {
		d.Status.ObservedGeneration = d.Generation
		return reconcilers.Result{}, nil
	}}
}

func init() {
	anyFault := rtesting.DiesAfter("create ConfigMap default/one")
	withUID := controlled(configMap("one"))
	withUID.OwnerReferences[0].UID = "another"
	withVersion := settings.With(func(c *corev1.ConfigMap) { c.ResourceVersion = "5" })
	const needs = " has no effect on a fake client: make the row one of NodeTests or RootTests"
	for name, failing := range map[string]scenario{
		"fault over the fake client":     {run: one(cmCase{Fault: anyFault}), want: []string{"Fault" + needs}},
		"replays over the fake client":   {run: one(cmCase{Replays: rtesting.NoReplays("x")}), want: []string{"Replays" + needs}},
		"externals over the fake client": {run: one(cmCase{Externals: []rtesting.External{bank{}.external()}}), want: []string{"Externals" + needs}},
		"until over the fake client":     {run: one(cmCase{Until: rtesting.Rest()}), want: []string{"Until" + needs}},
		"fault of a root over the fake client": {
			run: whole(rtesting.ReconcilerTestCase{Fault: anyFault}), want: []string{"Fault" + needs},
		},
		"external without a reset": {
			run:  nodes(cmCase{Externals: []rtesting.External{{}}, Metadata: does(nothing)}),
			want: []string{"Externals[0] needs a Reset and an End"},
		},
		"external without an end that Prepare sets": {
			run: nodes(cmCase{Metadata: does(nothing), Prepare: func(
				_ *testing.T, ctx context.Context, tc *cmCase,
			) (context.Context, error) {
				tc.Externals = []rtesting.External{{Reset: func() {}}}
				return ctx, nil
			}}),
			want: []string{"Externals[0] needs a Reset and an End"},
		},
		"externals that Prepare makes": {
			run: nodes(cmCase{
				Fault: rtesting.DiesAfter("charge me"),
				Prepare: func(_ *testing.T, ctx context.Context, tc *cmCase) (context.Context, error) {
					charged := 0
					tc.Externals = []rtesting.External{{Reset: func() {}, End: func() any { return charged }}}
					tc.Metadata = does(func(ctx context.Context, cm *corev1.ConfigMap) error {
						one := configMap("one")
						if reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKeyFromObject(one), one) == nil {
							return nil
						}
						err := rtesting.Call(ctx, "charge me", func() error { charged++; return nil })
						if err != nil {
							return err
						}
						return ensures(ctx, cm, "one")
					})
					return ctx, nil
				},
			}),
			want: []string{"the row ends in another way", "external"},
		},
		"until rest with a builder": {
			run: nodes(cmCase{
				Until: rtesting.Rest(), Metadata: does(nothing),
				WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b },
			}),
			want: []string{"Until has no effect on a fake client, which the WithClientBuilder asks for"},
		},
		"externals with a builder of another config": {
			run: nodes(cmCase{
				Externals: []rtesting.External{bank{}.external()}, Metadata: does(nothing),
				AdditionalConfigs: map[string]rtesting.ExpectConfig{"remote": {
					WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b },
				}},
			}),
			want: []string{"Externals has no effect on a fake client, which the WithClientBuilder asks for"},
		},
		"index without a field": {
			run:  nodes(cmCase{Metadata: does(nothing), GivenIndexes: []rtesting.Index{{Object: pod}}}),
			want: []string{"GivenIndexes[0]: an Index needs an Object, a Field and an Extract"},
		},
		"occurrence zero": {
			run: nodes(cmCase{
				Fault: anyFault.And(rtesting.Fails("create ConfigMap default/one", 0)), Metadata: makes("one"),
			}),
			want: []string{`Fault: Fails("create ConfigMap default/one"): want one occurrence, 1 or more, not [0]`},
		},
		"two occurrences": {
			run: nodes(cmCase{
				Replays:  rtesting.Replays{Skip: []rtesting.Fault{anyFault, rtesting.Stale("get *", 1, 2)}},
				Metadata: does(nothing),
			}),
			want: []string{`Replays.Skip[1]: Stale("get *"): want one occurrence, 1 or more, not [1 2]`},
		},
		"findings until the deadline": {
			run: nodes(cmCase{Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
				_ = ensures(ctx, cm, "one")
				return nil
			}), ExpectCreates: oneChild}),
			args: []string{"-test.timeout=24s", "-rtesting.faults=pairs"},
			want: []string{
				"the replays ended: context deadline exceeded", "the row ends in another way", "paste",
			},
		},
		"an observed generation that is expected": {
			run: func(t *testing.T) {
				deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
				observed := deployment.DeepCopy()
				observed.Status.ObservedGeneration = 2
				rtesting.NodeTests[*appsv1.Deployment]{"case": {
					Resource: deployment, ExpectResource: observed,
				}}.RunNode(t, scheme, observes)
			},
			want: []string{"ExpectResource differs", "2"},
		},
		"fault that does not happen": {
			run: nodes(cmCase{Fault: anyFault, Metadata: does(nothing)}),
			want: []string{
				`the row cannot be replayed with DiesAfter("create ConfigMap default/one")`, "did not happen",
			},
		},
		"fault of a row that expects an error": {
			run:  nodes(cmCase{Fault: anyFault, Metadata: fails(errOops), ShouldErr: true}),
			want: []string{"the Fault cannot be replayed: it expects an error"},
		},
		"fault in a row with expectations": {
			run:      nodes(cmCase{Fault: anyFault, Metadata: makes("one"), ExpectDeletes: []rtesting.DeleteRef{deleteRef}}),
			want:     []string{"ExpectDeletes[0] not observed"},
			unwanted: []string{"replayed"},
		},
		"two versions of an object": {
			run: nodes(cmCase{
				Metadata: does(nothing), GivenObjects: []client.Object{pod, configMap("one")},
				APIGivenObjects: []client.Object{pod, configMap("one", "k", "newer")},
			}),
			want: []string{
				"APIGivenObjects[1], ConfigMap default/one, is another version than that of the GivenObjects",
			},
		},
		"another version of the resource": {
			run:  nodes(cmCase{Metadata: does(nothing), APIGivenObjects: []client.Object{changed}}),
			want: []string{"APIGivenObjects[0], ConfigMap default/settings, is another version"},
		},
		"additional reconciles in virtual time": {
			run: nodes(cmCase{
				Metadata: does(nothing), VirtualTime: true, AdditionalReconciles: []cmCase{{Name: "again"}},
			}),
			want: []string{"a row in virtual time has no AdditionalReconciles"},
		},
		"no rest": {
			run: nodes(cmCase{Until: rtesting.Rest(), Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
				return reconcilers.RetrieveConfigOrDie(ctx).Patch(ctx, changed.Object(), client.RawPatch(
					"application/merge-patch+json", []byte(`{"data":{"k":"`+cm.Data["k"]+`w"}}`)))
			})}),
			want: []string{"there is no rest after 20 requests"},
		},
		"identity that is expected": {
			run: nodes(cmCase{
				Metadata: makes("one"), ExpectCreates: []client.Object{withUID}, ExpectResource: withVersion.Object(),
			}),
			want: []string{"ExpectCreates[0] differs: ConfigMap default/one", `"another"`, `"5"`},
		},
		"literals without an identity": {
			run:      nodes(cmCase{Metadata: makes("one")}),
			want:     []string{`BlockOwnerDeletion: new(true)`},
			unwanted: []string{"UID:"},
		},
		"finding": {
			run: nodes(cmCase{
				ExpectCreates: []client.Object{controlled(configMap("one"))},
				Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
					_ = ensures(ctx, cm, "one")
					return nil
				}),
			}),
			want: []string{
				"the row ends in another way\n", "story: ", "at the end: missing: ConfigMap default/one\n",
				"To replay this alone, paste the row:\n", "// Metadata as in the row\n", "Resource: &corev1.ConfigMap{",
				`Fault: rtesting.Fails("get ConfigMap default/one"),`,
			},
		},
		"finding of a fault": {
			run: nodes(cmCase{
				Fault: rtesting.Fails("get ConfigMap default/one"),
				Metadata: does(func(ctx context.Context, cm *corev1.ConfigMap) error {
					_ = ensures(ctx, cm, "one")
					return nil
				}),
			}),
			want:     []string{`replayed with Fails("get ConfigMap default/one"), the row ends in another way`},
			unwanted: []string{"paste", "ExpectCreates"},
		},
		"a mistaken flag": {
			run:   nodes(cmCase{Metadata: does(nothing)}),
			args:  []string{"-rtesting.faults=none"},
			alone: true,
			want:  []string{`"none": want off, default or pairs`},
		},
	} {
		scenarios[name] = failing
	}
}

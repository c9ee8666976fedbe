package testing_test

import (
	"context"
	"crypto/rand"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// planted are rows of nodes with a bug that replays find. The same row of the node without the bug passes.
var planted = map[string]struct {
	run  func(t *testing.T, bug bool)
	want []string
}{
	"a password is overwritten after a stale read": {
		run: func(t *testing.T, bug bool) {
			nodes(cmCase{
				Metadata: keepsPassword(bug),
				ExpectCreates: []client.Object{
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}},
				},
				Replays: rtesting.Replays{Ignore: []string{"Secret default/db: data.password"}},
			})(t)
		},
		want: []string{
			`replayed with Stale("get Secret default/db", 2), the row ends in another way`,
			"at the end: Secret default/db: data.password is written again, and is another then",
		},
	},
	"the time of each request is written": {
		run: func(t *testing.T, bug bool) {
			runWidget(t, rtesting.SubReconcilerTestCase[*resources.Widget]{
				VirtualTime: true,
				ExpectResource: widget.With(func(w *resources.Widget) {
					w.Status.AddField("seen", "2000-01-01T00:00:00Z")
				}).Object(),
			}, func(_ context.Context, w *resources.Widget) error {
				if bug || w.Status.Fields["seen"] == "" {
					w.Status.AddField("seen", time.Now().UTC().Format(time.RFC3339))
				}
				return nil
			})
		},
		want: []string{"without a fault, the row never comes to rest", "update Widget/status gadget"},
	},
	"a service is called before the finalizer is set": {
		run: func(t *testing.T, bug bool) {
			buckets := map[string]bool{}
			runWidget(t, rtesting.SubReconcilerTestCase[*resources.Widget]{
				Externals: []rtesting.External{{
					Reset: func() { clear(buckets) },
					End: func() any {
						maps.DeleteFunc(buckets, func(_ string, is bool) bool { return !is })
						return buckets
					},
				}},
				ExpectPatches: []rtesting.PatchRef{{
					Group: resources.GroupVersion.Group, Kind: "Widget", Namespace: "default", Name: "gadget",
					PatchType: types.MergePatchType,
					Patch:     []byte(`{"metadata":{"finalizers":["example.com/bucket"]}}`),
				}},
				ExpectResource: widget.With(func(w *resources.Widget) {
					w.Finalizers = []string{"example.com/bucket"}
				}).Object(),
			}, hasBucket(buckets, bug))
		},
		want: []string{
			`replayed with UserDeletes("POST bucket"), the row ends in another way`,
			"POST bucket (after the user deleted the resource) · patch Widget gadget (NotFound)",
			`at the end: external: gadget is true, not absent`,
		},
	},
	"a write is tried again and again": {
		run: func(t *testing.T, bug bool) {
			if bug {
				rtesting.SetPatience(2 * time.Second)
			}
			noted := widget.With(func(w *resources.Widget) { w.Status.AddField("seen", "true") })
			runWidget(t, rtesting.SubReconcilerTestCase[*resources.Widget]{
				ExpectStatusUpdates: []client.Object{noted}, ExpectResource: noted.Object(),
			}, func(ctx context.Context, w *resources.Widget) error {
				if w.Status.Fields["seen"] != "" {
					return nil
				}
				w.Status.AddField("seen", "true")
				err := reconcilers.RetrieveConfigOrDie(ctx).Status().Update(ctx, w)
				for bug && err != nil {
					time.Sleep(time.Millisecond)
					err = reconcilers.RetrieveConfigOrDie(ctx).Status().Update(ctx, w)
				}
				return err
			})
		},
		want: []string{
			`replayed with Conflicts("update Widget/status default/gadget"), the row ends in another way`,
			"it does not return: after 2s and ", `the last is "update Widget/status default/gadget": Operation `,
			"To replay this alone, paste the row:",
		},
	},
}

// hasBucket is a node that keeps a bucket for a Widget, in a service that has the buckets. With the bug, it makes it before
// it sets the finalizer that guards it.
func hasBucket(buckets map[string]bool, bug bool) func(ctx context.Context, w *resources.Widget) error {
	return func(ctx context.Context, w *resources.Widget) error {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		ensure := func(is bool) func() error {
			return func() error {
				buckets[w.Name] = is
				return nil
			}
		}
		guard := func(change func(client.Object, string) bool) error {
			before := w.DeepCopyObject().(client.Object)
			if !change(w, "example.com/bucket") {
				return nil
			}
			return c.Patch(ctx, w, client.MergeFrom(before))
		}
		if w.DeletionTimestamp != nil {
			if err := rtesting.Call(ctx, "DELETE bucket", ensure(false)); err != nil {
				return err
			}
			return guard(controllerutil.RemoveFinalizer)
		}
		if !bug {
			if err := guard(controllerutil.AddFinalizer); err != nil {
				return err
			}
		}
		if !buckets[w.Name] {
			if err := rtesting.Call(ctx, "POST bucket", ensure(true)); err != nil {
				return err
			}
		}
		return guard(controllerutil.AddFinalizer)
	}
}

// keepsPassword is the metadata of a row that keeps a Secret with a random password.
func keepsPassword(bug bool) map[string]any {
	return does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
		err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if !apierrors.IsNotFound(err) {
			return err
		}
		secret.Data = map[string][]byte{"password": []byte(rand.Text())}
		err = c.Create(ctx, secret)
		if bug && apierrors.IsAlreadyExists(err) {
			return c.Update(ctx, secret)
		}
		return err
	})
}

// runWidget runs a row of a Widget, whose node does something in each request.
func runWidget(
	t *testing.T, row rtesting.SubReconcilerTestCase[*resources.Widget],
	do func(ctx context.Context, w *resources.Widget) error,
) {
	row.Resource = widget.Object()
	rtesting.NodeTests[*resources.Widget]{"case": row}.RunNode(t, widgets, func() widgetNode {
		return node[*resources.Widget]{
			reconcile: func(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
				return reconcilers.Result{}, do(ctx, w)
			},
		}
	})
}

func init() {
	bugs := map[string]scenario{}
	for name, p := range planted {
		bugs[name] = scenario{run: func(t *testing.T) { p.run(t, true) }, want: p.want}
	}
	maps.Copy(scenarios, bugs)
}

func TestRowsPassWithoutThePlantedBugs(t *testing.T) {
	t.Parallel()
	for name, p := range planted {
		t.Run(name, func(t *testing.T) { p.run(t, false) })
	}
}

package sharding_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// labelled are nodes whose child has a label of its own, and those of its resource, as many authors have it: two are
// applied, one is updated as a whole.
func labelled() map[string]node {
	desired := func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		labels := maps.Clone(w.Labels)
		labels["own"] = "label"
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: labels},
			Data:       map[string]string{"by": "first", "image": w.Spec.Fields["image"]},
		}, nil
	}
	return map[string]node{
		"applied": espalier.Owns("Config", desired),
		"applied as a configuration": &childOfWidget{
			DesiredChild: desired,
			ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{
				FieldManager: "widgets",
				ApplyConfiguration: func(
					_ context.Context, w client.Object, child *corev1.ConfigMap,
				) (runtime.ApplyConfiguration, error) {
					return corev1apply.ConfigMap(child.Name, child.Namespace).WithLabels(w.GetLabels()).
						WithLabels(child.Labels).WithData(child.Data), nil
				},
			},
			ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
		},
		"updated": &childOfWidget{
			DesiredChild: desired,
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
				current.Labels, current.Data = desired.Labels, desired.Data
			},
			ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
		},
	}
}

// A label of the ring is neither removed nor set by a write of the child, nor is it a reason for a write.
func TestTheLabelOfAChildIsTheRings(t *testing.T) {
	t.Parallel()
	for name, of := range labelled() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, namespace := live(t), plane.Namespace(t)
			p := start(t, namespace, "first", of)
			w, child := createWidget(t, c, namespace, "first"), &corev1.ConfigMap{}
			image := ""
			for step, shard := range []string{"first", "second", "first", ""} {
				controlplanetest.Eventually(t, "not reconciled", func(ctx context.Context) error {
					if err := onlyChild(ctx, c, w, child, "first", image); err != nil {
						return err
					}
					// The request of the process has ended, so that another may begin.
					if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil || w.Status.ObservedGeneration == w.Generation {
						return err
					}
					return fmt.Errorf("generation %d is observed, not %d", w.Status.ObservedGeneration, w.Generation)
				})
				want := assigned(shard)
				if shard == "" {
					want = fmt.Sprintf(`{%q:null}`, shardLabel)
				}
				label(t, c, child, want)
				placed := child.ResourceVersion
				root := tree(of)(p.config)
				controlplanetest.Eventually(t, "its cache lags behind", func(ctx context.Context) error {
					_, err := root.Reconcile(ctx, requestOf(w))
					if err != nil && !apierrs.IsConflict(err) {
						t.Fatal(err)
					}
					return err
				})
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
					t.Fatal(err)
				}
				if child.ResourceVersion != placed {
					t.Errorf("step %d: after the ring has set its label, the child is written (%v), want no write",
						step, child.Labels)
				}
				image = fmt.Sprint(step)
				setImage(t, c, w, image)
				controlplanetest.Eventually(t, "not written", func(ctx context.Context) error {
					return onlyChild(ctx, c, w, child, "first", image)
				})
				if child.Labels[shardLabel] != shard || child.Labels["own"] != "label" {
					t.Errorf("step %d: after a write, the child has the labels %v, want its own and the shard %q",
						step, child.Labels, shard)
				}
			}
		})
	}
}

func requestOf(obj client.Object) reconcilers.Request {
	return reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

// A webhook sees what the cache of its process lacks: it is called for the resources of all shards.
func TestAWebhookSeesTheObjectsOfAllShards(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	p := start(t, namespace, "first", made("first"))
	w := createWidget(t, c, namespace, "first")
	controlplanetest.Eventually(t, "not reconciled", func(ctx context.Context) error {
		return isBy(ctx, c, w, "first", "")
	})
	other := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}}
	if err := c.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	hidden := &resources.WidgetList{}
	if err := p.config.List(t.Context(), hidden, client.InNamespace(namespace)); err != nil || len(hidden.Items) != 1 {
		t.Errorf("the cache shows %d Widgets (%v), want the one of the shard", len(hidden.Items), err)
	}
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	wrapped := p.config
	wrapped.Client = struct{ client.Client }{wrapped.Client}
	for name, config := range map[string]reconcilers.Config{
		"the config":                  p.config,
		"without the option":          espalier.NewConfig(p.manager),
		"with a client that wraps":    wrapped,
		"with a client of duck types": p.config.WithDangerousDuckClientOperations(),
	} {
		answer, seen := ask(t, config, raw, other, w)
		if !answer.Allowed || seen != 2 {
			t.Errorf("%s: the webhook answers %v and sees %d Widgets, want that it allows and sees 2", name, answer, seen)
		}
	}
}

// ask asks a webhook whose node looks for all Widgets of a namespace, for another Widget, and for the child of one.
func ask(
	t *testing.T, config reconcilers.Config, raw []byte, other, w *resources.Widget,
) (answer admission.Response, widgets int) {
	t.Helper()
	namespace := w.Namespace
	seen, child := &resources.WidgetList{}, &corev1.ConfigMap{}
	hook := &reconcilers.AdmissionWebhookAdapter[*resources.Widget]{
		Config: config,
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(ctx context.Context, _ *resources.Widget) error {
				config := reconcilers.RetrieveConfigOrDie(ctx)
				if err := config.List(ctx, seen, client.InNamespace(namespace)); err != nil {
					return err
				}
				if err := config.Get(ctx, client.ObjectKeyFromObject(other), &resources.Widget{}); err != nil {
					return err
				}
				return config.Get(ctx, client.ObjectKeyFromObject(w), child)
			},
		},
	}
	answer = hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Object: runtime.RawExtension{Raw: raw}, Namespace: namespace, Name: w.Name,
	}})
	return answer, len(seen.Items)
}

package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API server tells who undoes what is applied.
func TestContestNamesTheOtherManager(t *testing.T) {
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		child := configMapChild("a")
		child.MergeBeforeUpdate, child.ChildObjectManager = nil, &configMapManager{FieldManager: "widgets"}
		child.ReflectChildStatusOnParent = func(ctx context.Context, w *resources.Widget, _ *corev1.ConfigMap, err error) {
			if err != nil {
				w.Status.MarkChildNotReady(ctx, "Contested", err.Error())
			}
		}
		return &widgetRoot{Config: config, Reconciler: child}
	})
	c := live(t)
	widget := op.createWidget(t, c)
	child := &corev1.ConfigMap{}
	paint := client.RawPatch(types.MergePatchType, []byte(`{"data":{"image":"red"}}`))
	eventually(t, "the fight is not told", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKey{Namespace: op.namespace, Name: "widget-a"}, child); err != nil {
			return err
		}
		if child.Data["image"] != "red" {
			if err := c.Patch(ctx, child, paint, client.FieldOwner("painter")); err != nil {
				return err
			}
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(widget), widget); err != nil {
			return err
		}
		const want = `the field manager "painter" keeps changing .data.image of ConfigMap `
		is := widget.Status.GetCondition(resources.WidgetChildReady)
		if is == nil || !strings.HasPrefix(is.Message, want) {
			return fmt.Errorf("the condition is %v, want one whose message begins with %q", is, want)
		}
		return nil
	})
}

package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"encoding/json"

	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func assembling() *reconcilers.ComponentReconciler[*resources.Assembly] {
	return &reconcilers.ComponentReconciler[*resources.Assembly]{
		Prefix:    componentPrefix,
		Generator: resources.AssemblyGenerator(),
	}
}

func TestTrial(t *testing.T) {
	walls, roof := partOf("default", "walls", "0"), partOf("default", "roof", "1")
	crd := resources.CRD()
	crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	house := resources.NewAssembly("default", "house", walls, roof, crd)
	d := rtesting.Rollout[*resources.Assembly]{Scheme: widgetScheme, Resource: house, Reconciler: assembling()}.Run(t)
	show := func(v any) { raw, _ := json.MarshalIndent(v, "", " "); fmt.Println(string(raw)) }
	show(d.Object())
	show(d.Objects())
	d = d.After(t, func(ctx context.Context, c client.Client) error {
		var cm corev1.ConfigMap
		if err := c.Get(ctx, client.ObjectKeyFromObject(walls), &cm); err != nil {
			return err
		}
		cm.Data["name"] = "other"
		return c.Update(ctx, &cm)
	})
	show(d.Find(walls))
	ctx := reconcilers.StashConfig(context.Background(), (&rtesting.ExpectConfig{Scheme: widgetScheme, GivenObjects: append(d.Objects(), d)}).Config())
	p, err := assembling().Plan(ctx, d.Object())
	fmt.Println(p, err)
}

package observe_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A type may come back in another version and another scope, whatever the client has learned of it.
func TestATypeMayComeBackAsAnother(t *testing.T) {
	o := newOnline(t, nil)
	if err := apiextensionsv1.AddToScheme(o.admin.Scheme()); err != nil {
		t.Fatal(err)
	}
	define := func(change func(*apiextensionsv1.CustomResourceDefinition)) {
		t.Helper()
		crd := gadgetDefinition()
		change(crd)
		o.eventually("the definition can be created", func() error { return o.admin.Create(t.Context(), crd.DeepCopy()) })
	}
	define(func(*apiextensionsv1.CustomResourceDefinition) {})
	before, in := o.interest(gadgets, "g"), o.interest(gadgets, "g", wanting)
	in.Key.Namespace = ""
	o.until("the type appears", before, func(got plan.Observed) bool {
		o.component.Now = o.component.Now.Add(time.Second)
		return got.Presence == plan.Absent && !got.TypeMissing
	})
	o.delete(gadgetDefinition())
	o.until("the type goes", before, func(got plan.Observed) bool { return got.TypeMissing })
	define(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Scope, crd.Spec.Versions[0].Name = apiextensionsv1.ClusterScoped, "v2"
	})
	defer o.delete(gadgetDefinition())
	made := o.ours(gadgets.WithVersion("v2"), "g", map[string]any{"status": map[string]any{"ready": true}})
	made.SetNamespace("")
	o.eventually("the object can be created", func() error {
		fresh, err := client.New(plane.Config(t), client.Options{})
		if err != nil {
			return err
		}
		return fresh.Create(t.Context(), made.DeepCopy(), client.FieldOwner(manager))
	})
	// What is recorded is in the version of old.
	o.until("the object appears", in, func(got plan.Observed) bool {
		o.component.Now = o.component.Now.Add(time.Second)
		return got.Presence == plan.Present && got.Status == apis.ObjectCurrent
	})
}

package observe_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A type may come back in another version and another scope than the client has learned.
func TestATypeMayComeBackAsAnother(t *testing.T) {
	t.Parallel()
	o := newOnline(t, nil)
	gadgets := schema.GroupKind{Group: "again.observe.test", Kind: "Gadget"}
	define := func(change func(*apiextensionsv1.CustomResourceDefinition)) {
		t.Helper()
		crd := gadgetDefinition(gadgets.Group)
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
	o.delete(gadgetDefinition(gadgets.Group))
	o.until("the type goes", before, func(got plan.Observed) bool { return got.TypeMissing })
	define(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Scope, crd.Spec.Versions[0].Name = apiextensionsv1.ClusterScoped, "v2"
	})
	defer o.delete(gadgetDefinition(gadgets.Group))
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

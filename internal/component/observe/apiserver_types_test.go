package observe_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		controlplanetest.Eventually(o.t, "the definition can be created", func(ctx context.Context) error {
			return o.admin.Create(ctx, crd.DeepCopy())
		})
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
	controlplanetest.Eventually(o.t, "the object can be created", func(context.Context) error {
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

// A type that somebody else defines wakes the component that waits for it. Until then there is no request (invariant
// L1), if the component may watch what defines types.
func TestATypeThatSomebodyDefinesWakes(t *testing.T) {
	controlplanetest.Real(t, "APIServices have to be watched")
	t.Parallel()
	o := newOnline(t, nil)
	gadgets := schema.GroupKind{Group: "wakes.observe.test", Kind: "Gadget"}
	in := o.interest(gadgets, "g")
	if got := o.observe(in).Objects[in.Key]; !got.TypeMissing {
		t.Fatalf("the object shows %+v, want its type missing", got)
	}
	controlplanetest.Eventually(o.t, "what defines types is watched", func(context.Context) error {
		if n := o.requests.Watches(); n < 2 {
			return fmt.Errorf("there are %d watches: %s", n, o.requests)
		}
		return nil
	})
	o.requests.Reset()
	controlplanetest.Rest(t, o.requests)
	if n := o.requests.Total(); n != 0 {
		t.Errorf("there are %d requests for a type that is missing, want none:\n%s", n, o.requests)
	}
	o.defineGadget(gadgets, in)
}

// Where what defines types may not be watched, the API server is asked.
func TestATypeThatSomebodyDefinesIsFoundWithoutRights(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	user, err := plane.Environment(t).User(namespace)
	if err != nil {
		t.Fatal(err)
	}
	o := newOnline(t, user)
	gadgets := schema.GroupKind{Group: "asked.observe.test", Kind: "Gadget"}
	meta := metav1.ObjectMeta{Name: namespace + "-gadgets"}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{gadgets.Group}, Resources: []string{"gadgets"}, Verbs: []string{"get", "list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: namespace}},
		},
	} {
		if err := o.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	in := o.interest(gadgets, "g")
	if got := o.observe(in).Objects[in.Key]; !got.TypeMissing {
		t.Fatalf("the object shows %+v, want its type missing", got)
	}
	o.defineGadget(gadgets, in)
}

// defineGadget defines a type as somebody else, and waits until the component is woken and knows the type.
func (o *online) defineGadget(gadgets schema.GroupKind, in observe.Interest) {
	o.t.Helper()
	o.resetWakes()
	if err := o.admin.Create(o.t.Context(), gadgetDefinition(gadgets.Group)); err != nil {
		o.t.Fatal(err)
	}
	defer o.delete(gadgetDefinition(gadgets.Group))
	o.awaitWake("shop", false)
	if got := o.awaitLive(in).Objects[in.Key]; got.TypeMissing || got.Presence != plan.Absent {
		o.t.Errorf("the object shows %+v, want it absent and its type known", got)
	}
}

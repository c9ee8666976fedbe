package observe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// A type that somebody else defines wakes the component that waits for it. Until then the requests end (invariant L1), if
// the component may watch what defines types.
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
	// It is asked for a few times more, see TestAKindThatIsAwaitedIsAskedForAFewTimes of package informer.
	controlplanetest.Rest(t, o.requests)
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

// A version that a type was watched in is not served any more. The definition, which the component brings, says so: the
// version is not asked for again and again.
func TestAVersionThatIsNotServedAnyMore(t *testing.T) {
	t.Parallel()
	o := newOnline(t, nil)
	gadgets := schema.GroupKind{Group: "moves.observe.test", Kind: "Gadget"}
	definition := schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	brings := interest(definition, "gadgets."+gadgets.Group, wanting, func(in *observe.Interest) {
		in.Key.Namespace = ""
		in.Defines = []apis.ManagedType{{Group: gadgets.Group, Version: "*", Kind: gadgets.Kind}}
	})
	crd := gadgetDefinition(gadgets.Group)
	crd.Labels = map[string]string{prefix + "/owner-id": o.component.OwnerID}
	crd.Spec.Versions[0].Name = "v1beta1"
	in := o.interest(gadgets, "g")
	o.awaitLive(brings, in)
	if err := o.admin.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	defer o.delete(gadgetDefinition(gadgets.Group))
	appears := func(got plan.Observed) bool { return got.Presence == plan.Absent && !got.TypeMissing }
	o.until("the type appears", in, appears, brings)
	o.awaitLive(brings, in)
	move := func(change func(*apiextensionsv1.CustomResourceDefinition)) {
		t.Helper()
		controlplanetest.Eventually(t, "the definition can be changed", func(ctx context.Context) error {
			if err := o.admin.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			change(crd)
			return o.admin.Update(ctx, crd)
		})
	}
	move(func(crd *apiextensionsv1.CustomResourceDefinition) {
		next := *crd.Spec.Versions[0].DeepCopy()
		next.Name = "v1"
		crd.Spec.Versions[0].Storage = false
		crd.Spec.Versions = append(crd.Spec.Versions, next)
	})
	o.requests.Reset()
	move(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false })
	count := func(verb, version string) (n int) {
		for request, requests := range o.requests.Counts() {
			if request.Verb == verb && strings.HasSuffix(request.Path, version+"/gadgets") {
				n += requests
			}
		}
		return n
	}
	controlplanetest.Eventually(t, "the other version is watched", func(context.Context) error {
		o.observe(brings, in)
		if count("watch", "/v1") == 0 {
			return errors.New(o.requests.String())
		}
		return nil
	})
	made := o.ours(gadgets.WithVersion("v1"), "g", nil)
	controlplanetest.Eventually(t, "the object can be created", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(o.admin.Create(ctx, made.DeepCopy(), client.FieldOwner("somebody")))
	})
	shown := func(got plan.Observed) bool { return got.Presence == plan.Present }
	o.until("the watch shows the object", in, shown, brings)
	if asked := count("list", "/v1beta1"); asked > 1 {
		t.Errorf("the version that is not served was asked for %d times, want once at most:\n%s", asked, o.requests)
	}
}

package espalier_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// gadgetMarks are the labels of what a node of that name makes for the widget without an owner reference.
func gadgetMarks(node string) map[string]string {
	return map[string]string{
		ownerLabel: "fc1d05f1b4e6934ce20a9bf62ea3faf4", reconcilers.NodeLabel: node,
	}
}

var clusterRole = rtesting.NewFixture(&rbacv1.ClusterRole{
	ObjectMeta: metav1.ObjectMeta{Name: "gadget", Labels: gadgetMarks("Access")},
	Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
})

func desiredClusterRole(_ context.Context, w *resources.Widget) (*rbacv1.ClusterRole, error) {
	if asks(w, "none") {
		return nil, nil
	}
	role := clusterRole.Object()
	role.Labels = nil
	return role, nil
}

// hasFinalizer puts a finalizer on a widget.
func hasFinalizer(finalizer string) func(*resources.Widget) {
	return func(w *resources.Widget) { w.Finalizers = append(w.Finalizers, finalizer) }
}

// patchesFinalizers is the patch that makes these the finalizers of the widget.
func patchesFinalizers(names ...string) []rtesting.PatchRef {
	list := "null"
	if len(names) > 0 {
		list = `["` + strings.Join(names, `","`) + `"]`
	}
	return []rtesting.PatchRef{{
		Group: "test.espalier.dev", Kind: "Widget", Namespace: "default", Name: "gadget",
		PatchType: "application/merge-patch+json",
		Patch:     []byte(`{"metadata":{"finalizers":` + list + `,"resourceVersion":"999"}}`),
	}}
}

// written gives the widget the version that it has after a patch.
func written(w *resources.Widget) { w.ResourceVersion = "1000" }

func patchedFinalizer(name string) []rtesting.Event {
	return event(corev1.EventTypeNormal, "FinalizerPatched", `Patched finalizer "`+name+`"`)
}

// A resource with a namespace cannot own a cluster-scoped object, so it has a finalizer while there is one.
func TestClusterScopedObjects(t *testing.T) {
	const ours = "espalier.dev/clusterrole.Access"
	held := widget.With(hasFinalizer(ours))
	given := []object{clusterRole.With(exists)}
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(clusterRole, widget, scheme)}
	roleDeletes := []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(clusterRole, scheme)}
	roleMade := event(corev1.EventTypeNormal, "Created", `Created ClusterRole "gadget"`)
	roleDeleted := event(corev1.EventTypeNormal, "Deleted", `Deleted ClusterRole "gadget"`)
	none, off := held.With(with("none")), held.With(with("off"))
	dying := held.With(func(w *resources.Widget) { w.DeletionTimestamp = terminating.Object().DeletionTimestamp })
	red := clusterRole.With(exists, func(r *rbacv1.ClusterRole) { r.Labels[ownerLabel] = "other" })
	const taken = `clusterroles.rbac.authorization.k8s.io "gadget" already exists`
	rows := tests{
		"the finalizer is on before it is created": {
			Resource: widget.Object(), ExpectPatches: patchesFinalizers(ours), ExpectCreates: []object{clusterRole},
			ExpectTracks: tracks, ExpectEvents: append(patchedFinalizer(ours), roleMade...),
			ExpectResource: widget.With(hasFinalizer(ours), written, isReady).Object(),
		},
		"nothing to do": {
			Resource: held.Object(), GivenObjects: given, ExpectTracks: tracks,
			ExpectResource: held.With(isReady).Object(),
		},
		"it is not desired any more": {
			Resource: none.Object(), GivenObjects: given, ExpectTracks: tracks,
			ExpectDeletes: roleDeletes, ExpectEvents: roleDeleted, ExpectResource: none.With(isNone).Object(),
		},
		"it is not desired, and gone": {
			Resource: none.Object(), ExpectPatches: patchesFinalizers(), ExpectEvents: patchedFinalizer(ours),
			ExpectResource: widget.With(with("none"), written, isNone).Object(),
		},
		"it was never desired": {
			Resource:       widget.With(with("none")).Object(),
			ExpectResource: widget.With(with("none"), isNone).Object(),
		},
		"the gate is off": {
			Resource: off.Object(), GivenObjects: given, ExpectTracks: tracks,
			ExpectDeletes: roleDeletes, ExpectEvents: roleDeleted, ExpectResource: off.With(isNone).Object(),
		},
		"the resource is terminating": {
			Resource: dying.Object(), GivenObjects: given, ExpectTracks: tracks,
			ExpectDeletes: roleDeletes, ExpectEvents: roleDeleted,
		},
		"the resource is terminating, and the object is gone": {
			Resource:      terminating.With(hasFinalizer(ours)).Object(),
			ExpectPatches: patchesFinalizers("test.espalier.dev/other"), ExpectEvents: patchedFinalizer(ours),
			ExpectResource: terminating.With(written).Object(),
		},
		"somebody else has its name": {
			Resource: held.Object(), GivenObjects: []object{red}, ExpectCreates: []object{clusterRole}, ExpectTracks: tracks,
			ExpectEvents:   event(corev1.EventTypeWarning, "CreationFailed", `Failed to create ClusterRole "gadget": `+taken),
			ExpectResource: held.With(is("Ready", metav1.ConditionFalse, "AlreadyExists", taken)).Object(),
		},
		"the object of another resource is left alone": {
			Resource: none.Object(), GivenObjects: []object{red}, ExpectPatches: patchesFinalizers(),
			ExpectEvents: patchedFinalizer(ours), ExpectResource: widget.With(with("none"), written, isNone).Object(),
		},
	}
	t.Run("Owns", func(t *testing.T) {
		run(t, rows, func() node { return espalier.Owns("Access", desiredClusterRole).Reports("Ready").Gate(gateOf) })
	})
	t.Run("OwnsEach", func(t *testing.T) {
		run(t, rows, func() node {
			return espalier.OwnsEach("Access", func(ctx context.Context, w *resources.Widget) ([]*rbacv1.ClusterRole, error) {
				one, err := desiredClusterRole(ctx, w)
				if one == nil {
					return nil, err
				}
				return []*rbacv1.ClusterRole{one}, err
			}).Reports("Ready").Gate(gateOf)
		})
	})
}

// A resource that has no namespace owns what has none.
func TestClusterScopedObjectsOfAClusterScopedResource(t *testing.T) {
	resource := rtesting.NewFixture(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "gadget-owner", UID: "gadget-uid"},
	})
	owned := clusterRole.With(func(r *rbacv1.ClusterRole) {
		r.Labels, r.OwnerReferences = nil, []metav1.OwnerReference{{
			APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "gadget-owner", UID: "gadget-uid",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}}
	})
	rtesting.NodeTests[*rbacv1.ClusterRole]{"it owns it": {
		Resource: resource.Object(), ExpectCreates: []object{owned},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(resource, scheme, corev1.EventTypeNormal, "Created", `Created ClusterRole "gadget"`),
		},
	}}.RunNode(t, scheme, func() reconcilers.SubReconciler[*rbacv1.ClusterRole] {
		return espalier.Owns("Access", func(context.Context, *rbacv1.ClusterRole) (*rbacv1.ClusterRole, error) {
			bare := func(r *rbacv1.ClusterRole) { r.Labels, r.OwnerReferences = nil, nil }
			return clusterRole.With(bare).Object(), nil
		})
	})
}

// With AnyNamespace the same is true of an object in another namespace.
func TestAnyNamespace(t *testing.T) {
	const ours = "espalier.dev/configmap.ConfigMap"
	elsewhere := configMap.With(func(c *corev1.ConfigMap) {
		c.Namespace, c.OwnerReferences, c.Labels = "elsewhere", nil, gadgetMarks("ConfigMap")
	})
	place := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}
	held := widget.With(hasFinalizer(ours))
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(elsewhere, widget, scheme)}
	run(t, tests{
		"it is created": {
			Resource: widget.Object(), GivenObjects: []object{place},
			ExpectPatches: patchesFinalizers(ours), ExpectCreates: []object{elsewhere},
			ExpectTracks: tracks, ExpectEvents: append(patchedFinalizer(ours), makes...),
			ExpectResource: widget.With(hasFinalizer(ours), written, isReady).Object(),
		},
		"the resource is terminating": {
			Resource:     held.With(func(w *resources.Widget) { w.DeletionTimestamp = terminating.Object().DeletionTimestamp }).Object(),
			GivenObjects: []object{elsewhere.With(exists)}, ExpectTracks: tracks,
			ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(elsewhere, scheme)}, ExpectEvents: deleted,
		},
	}, func() node {
		return espalier.Owns("ConfigMap", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			one, err := desiredConfigMap(ctx, w)
			one.Namespace = "elsewhere"
			return one, err
		}).Reports("Ready").AnyNamespace()
	})
}

// What the cluster says of the scope counts for a kind that is not one of Kubernetes itself.
func TestScopeOfACustomKind(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Zone"}
	zone := &unstructured.Unstructured{}
	zone.SetGroupVersionKind(kind)
	zone.SetName("gadget")
	zone.SetLabels(gadgetMarks("Zone"))
	served := []*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "zones", Kind: "Zone", Group: "example.com", Version: "v1"},
	}}}
	const ours = "espalier.dev/zone.Zone"
	run(t, tests{"it is created": {
		Resource: widget.Object(), GivenAPIResources: served, ExpectPatches: patchesFinalizers(ours),
		ExpectCreates: []object{zone}, ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(zone, widget, scheme)},
		ExpectEvents:   append(patchedFinalizer(ours), event(corev1.EventTypeNormal, "Created", `Created Zone "gadget"`)...),
		ExpectResource: widget.With(hasFinalizer(ours), written, isReady).Object(),
	}}, func() node {
		blank := &unstructured.Unstructured{}
		blank.SetGroupVersionKind(kind)
		return espalier.Owns("Zone", func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) {
			desired := blank.DeepCopy()
			desired.SetName("gadget")
			return desired, nil
		}).Type(blank).Reports("Ready")
	})
}

// The role has the right to put the finalizer on the resource only if it is needed.
func TestRoleOfClusterScopedObjects(t *testing.T) {
	patches := func(n node) bool {
		root := espalier.For(reconcilers.Config{}, n)
		rules, err := root.Describe().PolicyRules(scheme, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			if rule.Resources[0] == "widgets" && strings.Contains(strings.Join(rule.Verbs, " "), "patch") {
				return true
			}
		}
		return false
	}
	for what, test := range map[string]struct {
		node node
		want bool
	}{
		"a ClusterRole":                    {espalier.Owns("Access", desiredClusterRole), true},
		"a ClusterRole that is left":       {espalier.Owns("Access", desiredClusterRole).Unowned(), false},
		"a ConfigMap":                      {owns(), false},
		"a ConfigMap of another namespace": {owns().AnyNamespace(), true},
	} {
		if got := patches(test.node); got != test.want {
			t.Errorf("%s: a patch of the resource is in the role: %t, want %t", what, got, test.want)
		}
	}
}

package tenant_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// The kinds of all objects that the operator writes.
var kinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("Tenant"),
	corev1.SchemeGroupVersion.WithKind("Namespace"),
	corev1.SchemeGroupVersion.WithKind("ResourceQuota"),
	corev1.SchemeGroupVersion.WithKind("LimitRange"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
}

func newTenant(name string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{ObjectMeta: stories.Named("", name), Spec: v1alpha1.TenantSpec{
		Owner:       "owner@" + name,
		DefaultsRef: v1alpha1.DefaultsRef{Namespace: platform, Name: "defaults"},
		Role:        "developer",
		Members:     []v1alpha1.Member{{Kind: "User", Name: "ann"}, {Kind: "Group", Name: "developers"}},
	}}
}

func quota(namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: stories.Named(namespace, "quota")}
}

func limits(namespace string) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: stories.Named(namespace, "limits")}
}

// isReady fails the story unless the tenant is Ready at its current generation.
func isReady(w *simulation.World, tenant *v1alpha1.Tenant) {
	w.Helper()
	w.Get(tenant)
	ready := tenant.Status.GetCondition("Ready")
	if ready == nil || ready.Status != "True" || tenant.Status.ObservedGeneration != tenant.Generation {
		w.Errorf("%s is not Ready: %+v", tenant.Name, tenant.Status)
	}
}

// life is the story of two tenants, from their creation to the end of one, beside what does not belong to them.
func life(w *simulation.World, before, after *stories.End) {
	dir := directories.Of(w)
	acme, globex := newTenant("acme"), newTenant("globex")
	w.Create(acme, globex)
	w.Rest()
	isReady(w, acme)
	isReady(w, globex)
	isListed(w, dir, acme)

	foreign := stories.Foreign{
		&corev1.ResourceQuota{ObjectMeta: stories.Named("acme", "mine")},
		&corev1.ConfigMap{ObjectMeta: stories.Named("globex", "settings"), Data: map[string]string{"a": "b"}},
		&rbacv1.RoleBinding{
			ObjectMeta: stories.Named("globex", "auditors"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "auditor"}},
		},
		&corev1.Namespace{ObjectMeta: stories.Named("", "taken")},
	}
	foreign.Create(w)
	taken := newTenant("taken")
	w.Create(taken)
	w.Update(acme, func() {
		acme.Spec.Quota = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("50")}
		acme.Spec.Isolated = true
		acme.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "ann", Role: "guest"}, {Kind: "User", Name: "bob"}}
	})
	someone := w.As("someone")
	someone.Delete(quota("globex"))
	drifted := limits("globex")
	someone.Update(drifted, func() { drifted.Spec.Limits[0].Default[corev1.ResourceCPU] = resource.MustParse("9") })
	defaults := newDefaults()
	w.Update(defaults, func() { defaults.Data["quota.requests.cpu"] = "8" })
	w.Rest()
	isReady(w, acme)
	isReady(w, globex)
	isListed(w, dir, acme)
	foreign.AreUntouched(w)
	before.Compare(w)

	w.Delete(globex, taken)
	w.Rest()
	if _, _, listed := dir.Lookup("globex"); listed || w.Exists(globex) || w.Exists(taken) {
		w.Error("what was deleted is still there")
	}
	stories.Foreign{foreign[0], foreign[3]}.AreUntouched(w)
	after.Compare(w)
	w.Pass(time.Hour)
	w.Idle(time.Hour)
}

// isListed fails the story unless the directory lists the tenant and its members.
func isListed(w *simulation.World, dir *directory.Memory, tenant *v1alpha1.Tenant) {
	w.Helper()
	entry, members, listed := dir.Lookup(tenant.Name)
	if !listed || entry.UID != string(tenant.UID) {
		w.Errorf("the directory has the entry %+v of %s", entry, tenant.Name)
	}
	for _, member := range tenant.Spec.Members {
		if !slices.Contains(members, directory.Member{Kind: member.Kind, Name: member.Name}) {
			w.Errorf("the directory does not know %s", member.Name)
		}
	}
	if len(members) != len(tenant.Spec.Members) {
		w.Errorf("the directory has the members %v", members)
	}
}

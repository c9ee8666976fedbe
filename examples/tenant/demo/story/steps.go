package story

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// The tenants of the story, and the one that gets no namespace.
const (
	acme     = "demo-acme"
	globex   = "demo-globex"
	initech  = "demo-initech"
	intruder = platform
)

var tenants = []string{acme, globex, initech}

// Steps is the whole story.
func Steps() []Step {
	return slices.Concat(beginning(), repairs(), wishes(), mistakes(), end())
}

func beginning() []Step {
	return []Step{
		{
			Title: "The operator starts: this tree",
			Do:    func(ctx context.Context, w *World) error { return w.startOperator(ctx) },
			Show:  func(w *World) string { return w.operator.tree },
			Facts: []Fact{
				{"its caches are filled", func(ctx context.Context, w *World) error { return w.operator.synced(ctx) }},
				{"it may do what the role says that comes from the tree", operatorMay(true, "create", "", "resourcequotas")},
				{"it may do nothing else: there are no Secrets for it", operatorMay(false, "list", "", "secrets")},
			},
		},
		{
			Title: "Three tenants are created",
			Do: func(ctx context.Context, w *World) error {
				for _, name := range tenants {
					if err := w.create(ctx, newTenant(name)); err != nil {
						return err
					}
				}
				return nil
			},
			Facts: []Fact{
				{"Acme is Ready", isReady(acme)},
				{"Globex is Ready", isReady(globex)},
				{"Initech is Ready", isReady(initech)},
				{"each has a namespace, a quota, limits, and a binding for its members", eachHasItsParts},
				{"Acme's quota is the default but for what it asked for itself", quotaIs(acme, "pods", "50", "requests.cpu", "4")},
				{"the directory, outside the cluster, lists all three", areListed},
			},
		},
	}
}

func repairs() []Step {
	return []Step{
		{
			Title: "Somebody deletes Acme's quota",
			Do: func(ctx context.Context, w *World) error {
				quota, err := get[corev1.ResourceQuota](ctx, w, acme, "quota")
				if err != nil {
					return err
				}
				w.before["quota"] = quota
				return w.client.Delete(ctx, quota)
			},
			Facts: []Fact{
				{"there is a new one", func(ctx context.Context, w *World) error {
					quota, err := get[corev1.ResourceQuota](ctx, w, acme, "quota")
					if err == nil && quota.UID == w.before["quota"].GetUID() {
						return fmt.Errorf("it is the old one")
					}
					return err
				}},
				{"it is as it was", quotaIs(acme, "pods", "50", "requests.cpu", "4")},
			},
		},
		{
			Title: "Somebody edits Acme's quota",
			Do: func(ctx context.Context, w *World) error {
				return patch(ctx, w, &corev1.ResourceQuota{}, acme, "quota", `{"spec":{"hard":{"pods":"9999","secrets":"0"}}}`)
			},
			Facts: []Fact{
				{"it is put right", quotaIs(acme, "pods", "50", "requests.cpu", "4")},
			},
		},
	}
}

func wishes() []Step {
	return []Step{
		{
			Title: "The ConfigMap of defaults changes",
			Do: func(ctx context.Context, w *World) error {
				return setDefault(ctx, w, "quota.requests.cpu", "8")
			},
			Facts: []Fact{
				{"Acme's quota follows, and keeps what Acme asked for", quotaIs(acme, "pods", "50", "requests.cpu", "8")},
				{"Globex's quota follows", quotaIs(globex, "pods", "20", "requests.cpu", "8")},
				{"Initech's quota follows", quotaIs(initech, "pods", "20", "requests.cpu", "8")},
			},
		},
		{
			Title: "Acme asks to be isolated",
			Do: func(ctx context.Context, w *World) error {
				return patchTenant(ctx, w, acme, `{"spec":{"isolated":true}}`)
			},
			Facts: []Fact{
				{"there is a NetworkPolicy", isThere[networkingv1.NetworkPolicy](acme, "isolation")},
				{"the status says so", reports(acme, v1alpha1.NetworkReady, "True", "Isolated")},
			},
		},
		{
			Title: "Acme has had enough of that",
			Do: func(ctx context.Context, w *World) error {
				return patchTenant(ctx, w, acme, `{"spec":{"isolated":false}}`)
			},
			Facts: []Fact{
				{"the NetworkPolicy is gone", isGone[networkingv1.NetworkPolicy](acme, "isolation")},
				{"the status says so", reports(acme, v1alpha1.NetworkReady, "True", "Open")},
			},
		},
		{
			Title: "Acme's members become guests",
			Do: func(ctx context.Context, w *World) error {
				return patchTenant(ctx, w, acme, `{"spec":{"role":"guest"}}`)
			},
			Facts: []Fact{
				{"the binding, whose role cannot be changed, is replaced", func(ctx context.Context, w *World) error {
					binding, err := get[rbacv1.RoleBinding](ctx, w, acme, "members")
					if err == nil && binding.RoleRef.Name != "view" {
						return fmt.Errorf("the role is %s", binding.RoleRef.Name)
					}
					return err
				}},
				{"Acme is Ready", isReady(acme)},
			},
		},
	}
}

func mistakes() []Step {
	return []Step{
		{
			Title: "Acme asks for a role that does not exist",
			Do: func(ctx context.Context, w *World) error {
				if err := rememberParts(ctx, w, acme); err != nil {
					return err
				}
				return patchTenant(ctx, w, acme, `{"spec":{"role":"wizard"}}`)
			},
			Facts: []Fact{
				{"the status says what is wrong", reports(acme, v1alpha1.MembersReady, "False", "Invalid")},
				{"nothing that Acme has was touched", partsAreUntouched(acme)},
			},
		},
		{
			Title: "The defaults become nonsense",
			Do: func(ctx context.Context, w *World) error {
				if err := rememberParts(ctx, w, globex); err != nil {
					return err
				}
				return setDefault(ctx, w, "quota.pods", "lots")
			},
			Facts: []Fact{
				{"Globex's status says what is wrong", reports(globex, v1alpha1.DefaultsResolved, "False", "Invalid")},
				{"Initech's too", reports(initech, v1alpha1.DefaultsResolved, "False", "Invalid")},
				{"nothing that Globex has was touched", partsAreUntouched(globex)},
			},
		},
		{
			Title: "A tenant has the name of a namespace that belongs to somebody else",
			Do: func(ctx context.Context, w *World) error {
				namespace, err := get[corev1.Namespace](ctx, w, "", intruder)
				if err != nil {
					return err
				}
				w.before["namespace"] = namespace
				return w.create(ctx, newTenant(intruder))
			},
			Facts: []Fact{
				{"its status says so", reports(intruder, v1alpha1.NamespaceReady, "False", "NotOurs")},
				{"it gets nothing", isGone[corev1.ResourceQuota](intruder, "quota")},
				{"the namespace was not touched", func(ctx context.Context, w *World) error {
					return isUntouched(ctx, w, w.before["namespace"])
				}},
			},
		},
		{
			Title: "All mistakes are mended",
			Do: func(ctx context.Context, w *World) error {
				if err := patchTenant(ctx, w, acme, `{"spec":{"role":"developer"}}`); err != nil {
					return err
				}
				if err := deleteTenant(ctx, w, intruder); err != nil {
					return err
				}
				return setDefault(ctx, w, "quota.pods", "20")
			},
			Facts: []Fact{
				{"Acme is Ready", isReady(acme)},
				{"Globex is Ready", isReady(globex)},
				{"Initech is Ready", isReady(initech)},
				{"the intruder is gone", isGone[v1alpha1.Tenant]("", intruder)},
				{"the namespace it wanted was not touched", func(ctx context.Context, w *World) error {
					return isUntouched(ctx, w, w.before["namespace"])
				}},
			},
		},
	}
}

func end() []Step {
	return []Step{
		{
			Title: "Each tenant is reconciled again, and nothing has changed",
			Facts: []Fact{
				{fmt.Sprintf("%d reconciles made no API request", steadyRounds*len(tenants)), isSteady},
			},
		},
		{
			Title: "The tenants are deleted",
			Do: func(ctx context.Context, w *World) error {
				for _, name := range tenants {
					if err := deleteTenant(ctx, w, name); err != nil {
						return err
					}
				}
				return nil
			},
			Facts: []Fact{
				{"the directory does not list them any more", areNotListed},
				{"the tenants are gone", allGone[v1alpha1.Tenant]()},
				{"their namespaces are gone, with all that was in them", allGone[corev1.Namespace]()},
			},
		},
	}
}

// newTenant returns the tenant of that name as it is first ordered.
func newTenant(name string) *v1alpha1.Tenant {
	tenant := &v1alpha1.Tenant{
		Spec: v1alpha1.TenantSpec{
			Owner:       "owner@" + name + ".example.com",
			DefaultsRef: v1alpha1.DefaultsRef(types.NamespacedName{Namespace: platform, Name: "defaults"}),
			Role:        "developer",
			Members: []v1alpha1.Member{
				{Kind: rbacv1.UserKind, Name: "ann@" + name + ".example.com"},
				{Kind: rbacv1.GroupKind, Name: name + "-developers"},
			},
		},
	}
	tenant.Name = name
	if name == acme {
		tenant.Spec.Quota = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("50")}
	}
	return tenant
}

package story

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
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
	return slices.Concat(beginning(), repairs(), wishes(), memberSteps(), mistakes(), outage(), end())
}

func beginning() []Step {
	return []Step{
		{
			Title: "The operator starts: these trees",
			Do:    func(ctx context.Context, w *World) error { return w.startOperator(ctx) },
			Show:  func(w *World) string { return w.operator.tree },
			Facts: []Fact{
				{"its caches are filled", func(ctx context.Context, w *World) error { return w.operator.synced(ctx) }},
				{"it may do what the roles say that come from the trees", may(OperatorUser, "create", "", "resourcequotas", everywhere)},
				{"it may do nothing else: there are no Secrets for it", mayNot(OperatorUser, "list", "", "secrets", everywhere)},
				{"it may write ConfigMaps in its own namespace only", allOf(
					may(OperatorUser, "create", "", "configmaps", platform), mayNot(OperatorUser, "create", "", "configmaps", everywhere))},
				{"the defaults are on a hub, where it may read ConfigMaps and no more", allOf(
					may(HubUser, "list", "", "configmaps", everywhere), mayNot(HubUser, "list", v1alpha1.GroupVersion.Group, "tenants", everywhere),
					func(_ context.Context, w *World) error { return w.operator.watchesHub() })},
				{"the list of all tenants is there, and empty", registryLists()},
			},
		},
		{
			Title:     "The API server is told of the operator's webhooks: these trees",
			Admission: true,
			Do:        func(ctx context.Context, w *World) error { return w.registerWebhooks(ctx) },
			Show: func(*World) string {
				return controller.NewDefaulting().Describe().String() + controller.NewValidation(controller.Options{}).Describe().String()
			},
			Facts: []Fact{
				{"it asks the one that fills in what is left out", isCompleted},
				{"it asks the one that refuses what cannot be", isRefusedByFields},
			},
		},
		{
			Title:     "Somebody tries out what would come of some tenants",
			Admission: true,
			Do:        func(ctx context.Context, w *World) error { return w.tryTenants(ctx) },
			Show:      func(w *World) string { return strings.Join(w.answers, "\n") },
			Facts: []Fact{
				{"the first has got a display name, and says who has ordered it", isCompleted},
				{"the second is refused, with a cause for each field", isRefusedByFields},
				{"the third gets a warning", isWarnedOf},
				{"each member needs a role, which the schema sees to", needsRoles},
				{"nothing came of it", allOf(isGone[v1alpha1.Tenant]("", dryTenant), isGone[corev1.Namespace]("", dryTenant), registryLists())},
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
				{"each has a namespace, a quota, and limits", eachHasItsParts},
				{"each of their members has a binding", eachHasItsBindings},
				{"Acme's quota is the default but for what it asked for itself", quotaIs(acme, "pods", "50", "requests.cpu", "4")},
				{"the directory, outside the cluster, lists all three, with their members", areListed},
				{"the list of all tenants has them, as Ready", allOf(registryLists(tenants...), eachIsListedAsReady)},
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
				if err := w.operatorSees(ctx, quota); err != nil {
					return err
				}
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
	}
}

func memberSteps() []Step {
	return []Step{
		{
			Title: "One of Acme's members becomes a guest",
			Do: func(ctx context.Context, w *World) error {
				if err := rememberParts(ctx, w, acme); err != nil {
					return err
				}
				return setMembers(ctx, w, acme, as(annOf(acme), "guest"), developersOf(acme))
			},
			Facts: []Fact{
				{"she has another binding, as the role of one cannot be changed", bindingsAre(acme, as(annOf(acme), "view"), as(developersOf(acme), "edit"))},
				{"that of the others was not touched", bindingIsTheSame(acme, developersOf(acme))},
				{"Acme is Ready", isReady(acme)},
			},
		},
		{
			Title: "Somebody lets himself in by her binding",
			Do: func(ctx context.Context, w *World) error {
				bindings, err := w.readBindings(ctx, acme)
				if err != nil {
					return err
				}
				for _, binding := range bindings {
					binding.Subjects[0].Name = "mallory@example.com"
					if binding.RoleRef.Name == "view" {
						return w.client.Update(ctx, &binding)
					}
				}
				return fmt.Errorf("she has no binding")
			},
			Facts: []Fact{
				{"he is out again, and she is in", bindingsAre(acme, as(annOf(acme), "view"), as(developersOf(acme), "edit"))},
			},
		},
		{
			Title: "The others leave Acme",
			Do: func(ctx context.Context, w *World) error {
				if err := rememberParts(ctx, w, acme); err != nil {
					return err
				}
				return setMembers(ctx, w, acme, as(annOf(acme), "guest"))
			},
			Facts: []Fact{
				{"their binding is gone", bindingsAre(acme, as(annOf(acme), "view"))},
				{"hers was not touched", bindingIsTheSame(acme, annOf(acme))},
				{"the directory does not know them any more", directoryKnows(acme, annOf(acme))},
			},
		},
	}
}

func mistakes() []Step {
	return []Step{
		{
			Title: "The others are to come back, and she is to have a role that does not exist",
			Do: func(ctx context.Context, w *World) error {
				if err := rememberParts(ctx, w, acme); err != nil {
					return err
				}
				return setMembers(ctx, w, acme, as(annOf(acme), "wizard"), developersOf(acme))
			},
			Facts: []Fact{
				{"the status says what is wrong", reports(acme, v1alpha1.MembersReady, "False", "Invalid")},
				{"nothing that Acme has was touched: she is a guest still", partsAreUntouched(acme)},
				{"the list of all tenants says that Acme is not Ready", registrySays(acme, "ready", "False")},
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
				{"the list of all tenants has it, as not Ready", allOf(
					registryLists(append(slices.Clone(tenants), intruder)...), registrySays(intruder, "ready", "False"))},
				{"the namespace was not touched", func(ctx context.Context, w *World) error {
					return isUntouched(ctx, w, w.before["namespace"])
				}},
			},
		},
		{
			Title:     "Acme is protected, and somebody deletes it and says that he has ordered it",
			Admission: true,
			Do: func(ctx context.Context, w *World) error {
				change := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true",%q:"mallory@example.com"}}}`,
					controller.ProtectedAnnotation, controller.OrderedByAnnotation)
				return patchTenant(ctx, w, acme, change)
			},
			Facts: []Fact{
				{"the API server does not delete it", isProtected(acme)},
				{"it is there to stay", isNotDeleted(acme)},
				{"it says still who has ordered it", keepsWhoOrdered(acme, "mallory@example.com")},
			},
		},
	}
}

func outage() []Step {
	return []Step{
		{
			Title: "The directory fails; Acme gets another owner and is isolated, and the intruder is deleted",
			Do: func(ctx context.Context, w *World) error {
				w.runs = w.operator.reconciles()
				w.directory.SetOutage(true)
				if err := patchTenant(ctx, w, acme, `{"spec":{"owner":"new@example.com","isolated":true}}`); err != nil {
					return err
				}
				return deleteTenant(ctx, w, intruder)
			},
			Facts: []Fact{
				{"Acme's status says so", reports(acme, v1alpha1.Registered, "Unknown", "DirectoryUnavailable")},
				{"all else goes on: it is isolated", isThere[networkingv1.NetworkPolicy](acme, "isolation")},
				{"the intruder has to wait, as the directory may list it: that is asked again", waits(intruder)},
				{"the list of all tenants does not have it any more", registryLists(tenants...)},
			},
		},
		{
			Title: "The directory is back, and all mistakes are mended",
			Do: func(ctx context.Context, w *World) error {
				w.directory.SetOutage(false)
				if err := patchTenant(ctx, w, acme, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, controller.ProtectedAnnotation)); err != nil {
					return err
				}
				if err := setMembers(ctx, w, acme, annOf(acme), developersOf(acme)); err != nil {
					return err
				}
				return setDefault(ctx, w, "quota.pods", "20")
			},
			Facts: []Fact{
				{"Acme is Ready", isReady(acme)},
				{"Globex is Ready", isReady(globex)},
				{"Initech is Ready", isReady(initech)},
				{"each of their members has a binding", eachHasItsBindings},
				{"the directory knows the new owner, and all members", areListed},
				{"the list of all tenants knows him too", allOf(registrySays(acme, "owner", "new@example.com"), eachIsListedAsReady)},
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
				{"the list of all tenants is empty", registryLists()},
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
				{Kind: annOf(name)[0], Name: annOf(name)[1]},
				{Kind: developersOf(name)[0], Name: developersOf(name)[1]},
			},
		},
	}
	tenant.Name = name
	if name == acme {
		tenant.Spec.Quota = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("50")}
	}
	return tenant
}

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
	"github.com/espalier-dev/espalier/internal/testenv/demo"
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
				{Text: "its caches are filled", Holds: func(ctx context.Context, w *World) error { return w.operator.Synced(ctx) }},
				{Text: "it may do what the roles say that come from the trees", Holds: may(OperatorUser, "create", "", "resourcequotas", storytelling.Everywhere)},
				{Text: "it may do nothing else: there are no Secrets for it", Holds: mayNot(OperatorUser, "list", "", "secrets", storytelling.Everywhere)},
				{Text: "it may write ConfigMaps in its own namespace only", Holds: storytelling.AllOf(
					may(OperatorUser, "create", "", "configmaps", platform), mayNot(OperatorUser, "create", "", "configmaps", storytelling.Everywhere))},
				{Text: "the defaults are on a hub, where it may read ConfigMaps and no more", Holds: storytelling.AllOf(
					may(HubUser, "list", "", "configmaps", storytelling.Everywhere), mayNot(HubUser, "list", v1alpha1.GroupVersion.Group, "tenants", storytelling.Everywhere),
					func(_ context.Context, w *World) error { return w.operator.watchesHub() })},
				{Text: "the list of all tenants is there, and empty", Holds: registryLists()},
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
				{Text: "it asks the one that fills in what is left out", Holds: isCompleted},
				{Text: "it asks the one that refuses what cannot be", Holds: isRefusedByFields},
			},
		},
		{
			Title:     "Somebody tries out what would come of some tenants",
			Admission: true,
			Do:        func(ctx context.Context, w *World) error { return w.tryTenants(ctx) },
			Show:      func(w *World) string { return strings.Join(w.answers, "\n") },
			Facts: []Fact{
				{Text: "the first has got a display name, and says who has ordered it", Holds: isCompleted},
				{Text: "the second is refused, with a cause for each field", Holds: isRefusedByFields},
				{Text: "the third gets a warning", Holds: isWarnedOf},
				{Text: "each member needs a role, which the schema sees to", Holds: needsRoles},
				{Text: "nothing came of it", Holds: storytelling.AllOf(isGone[v1alpha1.Tenant]("", dryTenant), isGone[corev1.Namespace]("", dryTenant), registryLists())},
			},
		},
		{
			Title: "Three tenants are created",
			Do: func(ctx context.Context, w *World) error {
				for _, name := range tenants {
					if err := w.Create(ctx, newTenant(name)); err != nil {
						return err
					}
				}
				return nil
			},
			Facts: []Fact{
				{Text: "Acme is Ready", Holds: isReady(acme)},
				{Text: "Globex is Ready", Holds: isReady(globex)},
				{Text: "Initech is Ready", Holds: isReady(initech)},
				{Text: "each has a namespace, a quota, and limits", Holds: eachHasItsParts},
				{Text: "each of their members has a binding", Holds: eachHasItsBindings},
				{Text: "Acme's quota is the default but for what it asked for itself", Holds: quotaIs(acme, "pods", "50", "requests.cpu", "4")},
				{Text: "the directory, outside the cluster, lists all three, with their members", Holds: areListed},
				{Text: "the list of all tenants has them, as Ready", Holds: storytelling.AllOf(registryLists(tenants...), eachIsListedAsReady)},
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
				return w.Client.Delete(ctx, quota)
			},
			Facts: []Fact{
				{Text: "there is a new one", Holds: func(ctx context.Context, w *World) error {
					quota, err := get[corev1.ResourceQuota](ctx, w, acme, "quota")
					if err == nil && quota.UID == w.before["quota"].GetUID() {
						return fmt.Errorf("it is the old one")
					}
					return err
				}},
				{Text: "it is as it was", Holds: quotaIs(acme, "pods", "50", "requests.cpu", "4")},
			},
		},
		{
			Title: "Somebody edits Acme's quota",
			Do: func(ctx context.Context, w *World) error {
				return w.Patch(ctx, &corev1.ResourceQuota{}, acme, "quota", `{"spec":{"hard":{"pods":"9999","secrets":"0"}}}`)
			},
			Facts: []Fact{
				{Text: "it is put right", Holds: quotaIs(acme, "pods", "50", "requests.cpu", "4")},
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
				{Text: "Acme's quota follows, and keeps what Acme asked for", Holds: quotaIs(acme, "pods", "50", "requests.cpu", "8")},
				{Text: "Globex's quota follows", Holds: quotaIs(globex, "pods", "20", "requests.cpu", "8")},
				{Text: "Initech's quota follows", Holds: quotaIs(initech, "pods", "20", "requests.cpu", "8")},
			},
		},
		{
			Title: "Acme asks to be isolated",
			Do: func(ctx context.Context, w *World) error {
				return patchTenant(ctx, w, acme, `{"spec":{"isolated":true}}`)
			},
			Facts: []Fact{
				{Text: "there is a NetworkPolicy", Holds: isThere[networkingv1.NetworkPolicy](acme, "isolation")},
				{Text: "the status says so", Holds: reports(acme, v1alpha1.NetworkReady, "True", "Isolated")},
			},
		},
		{
			Title: "Acme has had enough of that",
			Do: func(ctx context.Context, w *World) error {
				return patchTenant(ctx, w, acme, `{"spec":{"isolated":false}}`)
			},
			Facts: []Fact{
				{Text: "the NetworkPolicy is gone", Holds: isGone[networkingv1.NetworkPolicy](acme, "isolation")},
				{Text: "the status says so", Holds: reports(acme, v1alpha1.NetworkReady, "True", "Open")},
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
				{Text: "she has another binding, as the role of one cannot be changed", Holds: bindingsAre(acme, as(annOf(acme), "view"), as(developersOf(acme), "edit"))},
				{Text: "that of the others was not touched", Holds: bindingIsTheSame(acme, developersOf(acme))},
				{Text: "Acme is Ready", Holds: isReady(acme)},
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
						return w.Client.Update(ctx, &binding)
					}
				}
				return fmt.Errorf("she has no binding")
			},
			Facts: []Fact{
				{Text: "he is out again, and she is in", Holds: bindingsAre(acme, as(annOf(acme), "view"), as(developersOf(acme), "edit"))},
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
				{Text: "their binding is gone", Holds: bindingsAre(acme, as(annOf(acme), "view"))},
				{Text: "hers was not touched", Holds: bindingIsTheSame(acme, annOf(acme))},
				{Text: "the directory does not know them any more", Holds: directoryKnows(acme, annOf(acme))},
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
				{Text: "the status says what is wrong", Holds: reports(acme, v1alpha1.MembersReady, "False", "Invalid")},
				{Text: "nothing that Acme has was touched: she is a guest still", Holds: partsAreUntouched(acme)},
				{Text: "the list of all tenants says that Acme is not Ready", Holds: registrySays(acme, "ready", "False")},
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
				{Text: "Globex's status says what is wrong", Holds: reports(globex, v1alpha1.DefaultsResolved, "False", "Invalid")},
				{Text: "Initech's too", Holds: reports(initech, v1alpha1.DefaultsResolved, "False", "Invalid")},
				{Text: "nothing that Globex has was touched", Holds: partsAreUntouched(globex)},
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
				return w.Create(ctx, newTenant(intruder))
			},
			Facts: []Fact{
				{Text: "its status says so", Holds: reports(intruder, v1alpha1.NamespaceReady, "False", "NotOurs")},
				{Text: "it gets nothing", Holds: isGone[corev1.ResourceQuota](intruder, "quota")},
				{Text: "the list of all tenants has it, as not Ready", Holds: storytelling.AllOf(
					registryLists(append(slices.Clone(tenants), intruder)...), registrySays(intruder, "ready", "False"))},
				{Text: "the namespace was not touched", Holds: func(ctx context.Context, w *World) error {
					return w.IsUntouched(ctx, w.before["namespace"])
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
				{Text: "the API server does not delete it", Holds: isProtected(acme)},
				{Text: "it is there to stay", Holds: isNotDeleted(acme)},
				{Text: "it says still who has ordered it", Holds: keepsWhoOrdered(acme, "mallory@example.com")},
			},
		},
	}
}

func outage() []Step {
	return []Step{
		{
			Title: "The directory fails; Acme gets another owner and is isolated, and the intruder is deleted",
			Do: func(ctx context.Context, w *World) error {
				w.runs = w.operator.Reconciles()
				w.directory.SetOutage(true)
				if err := patchTenant(ctx, w, acme, `{"spec":{"owner":"new@example.com","isolated":true}}`); err != nil {
					return err
				}
				return deleteTenant(ctx, w, intruder)
			},
			Facts: []Fact{
				{Text: "Acme's status says so", Holds: reports(acme, v1alpha1.Registered, "Unknown", "DirectoryUnavailable")},
				{Text: "all else goes on: it is isolated", Holds: isThere[networkingv1.NetworkPolicy](acme, "isolation")},
				{Text: "the intruder has to wait, as the directory may list it: that is asked again", Holds: waits(intruder)},
				{Text: "the list of all tenants does not have it any more", Holds: registryLists(tenants...)},
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
				{Text: "Acme is Ready", Holds: isReady(acme)},
				{Text: "Globex is Ready", Holds: isReady(globex)},
				{Text: "Initech is Ready", Holds: isReady(initech)},
				{Text: "each of their members has a binding", Holds: eachHasItsBindings},
				{Text: "the directory knows the new owner, and all members", Holds: areListed},
				{Text: "the list of all tenants knows him too", Holds: storytelling.AllOf(registrySays(acme, "owner", "new@example.com"), eachIsListedAsReady)},
				{Text: "the intruder is gone", Holds: isGone[v1alpha1.Tenant]("", intruder)},
				{Text: "the namespace it wanted was not touched", Holds: func(ctx context.Context, w *World) error {
					return w.IsUntouched(ctx, w.before["namespace"])
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
				{Text: fmt.Sprintf("%d reconciles made no API request", storytelling.SteadyRounds*len(tenants)), Holds: isSteady},
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
				{Text: "the list of all tenants is empty", Holds: registryLists()},
				{Text: "the directory does not list them any more", Holds: areNotListed},
				{Text: "the tenants are gone", Holds: allGone[v1alpha1.Tenant]()},
				{Text: "their namespaces are gone, with all that was in them", Holds: allGone[corev1.Namespace]()},
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

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// The tenants of the scenario, and the one that gets no namespace.
const (
	acme     = "demo-acme"
	globex   = "demo-globex"
	intruder = platform
)

// The members that each tenant begins with.
func ann(tenant string) string        { return "User ann@" + tenant + ".example.com" }
func developers(tenant string) string { return "Group " + tenant + "-developers" }

// newTenant returns the tenant of that name as it is first ordered.
func newTenant(name string) *v1alpha1.Tenant {
	tenant := tenantOf(name)
	tenant.Spec = v1alpha1.TenantSpec{
		Owner:       "owner@" + name + ".example.com",
		DefaultsRef: v1alpha1.DefaultsRef(types.NamespacedName{Namespace: platform, Name: "defaults"}),
		Role:        "developer",
		Members:     members(ann(name), developers(name)),
	}
	if name == acme {
		tenant.Spec.Quota = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("50")}
	}
	return tenant
}

// members returns members, each from a kind, a name and, if it differs from the role of the tenant, a role.
func members(texts ...string) []v1alpha1.Member {
	list := []v1alpha1.Member{}
	for _, text := range texts {
		words := append(strings.Fields(text), "")
		list = append(list, v1alpha1.Member{Kind: words[0], Name: words[1], Role: words[2]})
	}
	return list
}

// steps is the whole scenario.
func (s *scenario) steps() []demo.Step {
	steps := []demo.Step{s.start()}
	if s.Webhooks {
		steps = append(steps, s.dryRun())
	}
	return slices.Concat(steps, s.changes(), s.mistakes(), s.outage(), s.end())
}

func (s *scenario) start() demo.Step {
	return demo.Step{
		Title: "The operator starts: these trees",
		Do:    s.startOperator,
		Show:  func() string { return s.trees },
		Checks: []demo.Check{
			{Text: "it has what its roles grant, and no more: there are no Secrets for it", Holds: demo.All(
				s.Operator.Synced,
				s.May(OperatorUser, "create", "", "resourcequotas", demo.Everywhere),
				s.MayNot(OperatorUser, "list", "", "secrets", demo.Everywhere))},
			{Text: "it may write ConfigMaps in its own namespace only", Holds: demo.All(
				s.May(OperatorUser, "create", "", "configmaps", platform),
				s.MayNot(OperatorUser, "create", "", "configmaps", demo.Everywhere))},
			{Text: "the defaults are on a hub, where it may read ConfigMaps and no more", Holds: demo.All(
				s.May(HubUser, "list", "", "configmaps", demo.Everywhere),
				s.MayNot(HubUser, "list", v1alpha1.GroupVersion.Group, "tenants", demo.Everywhere), s.watchesHub)},
			{Text: "the list of all tenants is there, and empty", Holds: s.registryLists()},
		},
	}
}

func (s *scenario) dryRun() demo.Step {
	defaulting, validation := controller.NewDefaulting(), controller.NewValidation(controller.Options{})
	trees := defaulting.Describe().String() + validation.Describe().String()
	return demo.Step{
		Title: "The API server calls the operator's webhooks; a user tries out some tenants by dry runs",
		Do: func(ctx context.Context) error {
			if err := s.registerWebhooks(ctx); err != nil {
				return err
			}
			return s.tryTenants(ctx)
		},
		Show: func() string { return trees + strings.Join(s.answers, "\n") },
		Checks: []demo.Check{
			{Text: "the tenant without members gets a warning", Holds: s.isWarnedOf},
			{Text: "the impossible one is refused, with a cause for each field", Holds: s.isRefusedByFields},
			{Text: "each member needs a role, which the schema sees to", Holds: s.needsRoles},
			{Text: "the other one gets a display name, and the name of the user", Holds: s.isCompleted},
			{Text: "a dry run leaves nothing behind",
				Holds: demo.All(s.Gone(tenantOf(dryTenant), namespaceOf(dryTenant)), s.registryLists())},
		},
	}
}

func (s *scenario) changes() []demo.Step {
	return []demo.Step{
		{
			Title: "Two tenants are created",
			Do:    func(ctx context.Context) error { return s.Create(ctx, newTenant(acme), newTenant(globex)) },
			Checks: []demo.Check{
				{Text: "both are Ready", Holds: eachOf(s.isReady)},
				{Text: "each has a namespace, a quota, and limits",
					Holds: s.Exist(slices.Concat(of(namespaceOf), of(quotaOf), of(limitsOf))...)},
				{Text: "each of their members has a binding", Holds: eachOf(s.haveBindings)},
				{Text: "Acme's quota is the default but for what it asked for itself",
					Holds: s.quotaIs(acme, "50", "4")},
				{Text: "the directory, outside the cluster, lists both, with their members",
					Holds: eachOf(s.areListed)},
				{Text: "the list of all tenants has them", Holds: s.registryLists(acme+" True", globex+" True")},
			},
		},
		{
			Title: "A user deletes Acme's quota, and edits Globex's",
			Do: func(ctx context.Context) error {
				if err := s.Remember(ctx, quotaOf(acme)); err != nil {
					return err
				}
				if err := s.operatorSees(ctx, quotaOf(acme)); err != nil {
					return err
				}
				return errors.Join(s.Client.Delete(ctx, quotaOf(acme)),
					s.Patch(ctx, quotaOf(globex), `{"spec":{"hard":{"pods":"9999"}}}`))
			},
			Checks: []demo.Check{
				{Text: "Acme has a new one", Holds: demo.All(s.Replaced, s.quotaIs(acme, "50", "4"))},
				{Text: "Globex's is as before", Holds: s.quotaIs(globex, "20", "4")},
			},
		},
		{
			Title: "The ConfigMap of defaults changes",
			Do:    func(ctx context.Context) error { return s.setDefault(ctx, "quota.requests.cpu", "8") },
			Checks: []demo.Check{
				{Text: "Acme's quota follows, and keeps what Acme asked for", Holds: s.quotaIs(acme, "50", "8")},
				{Text: "Globex's quota follows", Holds: s.quotaIs(globex, "20", "8")},
			},
		},
		{
			Title: "Acme is isolated and protected; one of its members becomes a guest, and the others leave",
			Do: func(ctx context.Context) error {
				return s.change(ctx, "true", map[string]any{"isolated": true, "members": members(ann(acme) + " guest")})
			},
			Checks: []demo.Check{
				{Text: "there is a NetworkPolicy, and the status says so", Holds: demo.All(
					s.Exist(isolationOf(acme)), s.reports(acme, v1alpha1.NetworkReady, "True", "Ready"))},
				{Text: "the member has another binding, and theirs is gone",
					Holds: s.bindingsAre(acme, ann(acme)+" view")},
				{Text: "the directory does not know them any more", Holds: s.isListed(acme, ann(acme))},
				{Text: "Acme is Ready", Holds: s.isReady(acme)},
			},
		},
	}
}

func (s *scenario) mistakes() []demo.Step {
	wrong := demo.Step{
		Title: "Acme's member is to have a role that does not exist, and the network is to be open again",
		Do: func(ctx context.Context) error {
			wrong := members(ann(acme)+" wizard", developers(acme))
			return errors.Join(s.rememberParts(ctx, acme),
				s.change(ctx, "true", map[string]any{"isolated": false, "members": wrong}))
		},
		Checks: []demo.Check{
			{Text: "the status says what is wrong", Holds: s.reports(acme, v1alpha1.MembersReady, "False", "Invalid")},
			{Text: "no member has gained or lost anything",
				Holds: demo.All(s.Untouched, s.bindingsAre(acme, ann(acme)+" view"))},
			{Text: "all else goes on: the NetworkPolicy is gone", Holds: s.Gone(isolationOf(acme))},
			{Text: "the list of all tenants says that Acme is not Ready",
				Holds: s.registryLists(acme+" False", globex+" True")},
		},
	}
	if s.Webhooks {
		wrong.Checks = append(wrong.Checks,
			demo.Check{Text: "the API server does not delete Acme, which is protected", Holds: s.isProtected(acme)})
	}
	return []demo.Step{
		wrong,
		{
			Title: "A tenant has the name of a namespace that is not its own",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Remember(ctx, namespaceOf(intruder)), s.Create(ctx, newTenant(intruder)))
			},
			Checks: []demo.Check{
				{Text: "its status says so",
					Holds: s.reports(intruder, v1alpha1.NamespaceReady, "False", "AlreadyExists")},
				{Text: "it gets nothing, and the namespace was not touched",
					Holds: demo.All(s.Gone(quotaOf(intruder)), s.Untouched)},
				{Text: "the list of all tenants has it, as not Ready",
					Holds: s.registryLists(acme+" False", globex+" True", intruder+" False")},
			},
		},
	}
}

func (s *scenario) outage() []demo.Step {
	return []demo.Step{
		{
			Title: "The directory fails; Acme is corrected, it gets another owner, and the intruder is deleted",
			Do: func(ctx context.Context) error {
				s.reconciles = s.Operator.Reconciles()
				s.directory.SetOutage(true)
				right := members(ann(acme), developers(acme))
				return errors.Join(
					s.change(ctx, nil, map[string]any{"owner": "new@example.com", "members": right}),
					s.Client.Delete(ctx, tenantOf(intruder)))
			},
			Checks: []demo.Check{
				{Text: "Acme's status says so",
					Holds: s.reports(acme, v1alpha1.Registered, "Unknown", "DirectoryUnavailable")},
				{Text: "all else goes on: its members have their bindings",
					Holds: s.haveBindings(acme)},
				{Text: "the intruder has to wait, as the directory may list it: that is asked again",
					Holds: s.waits(intruder)},
				{Text: "the list of all tenants does not have it any more",
					Holds: s.registryLists(acme, globex)},
			},
		},
		{
			Title: "The directory is back",
			Do:    func(context.Context) error { s.directory.SetOutage(false); return nil },
			Checks: []demo.Check{
				{Text: "both tenants are Ready", Holds: eachOf(s.isReady)},
				{Text: "the directory knows the new owner, and the members",
					Holds: s.areListed(acme)},
				{Text: "the intruder is gone, and the namespace was not touched",
					Holds: demo.All(s.Gone(tenantOf(intruder)), s.Untouched)},
				{Text: "the list of all tenants says that they are Ready",
					Holds: s.registryLists(acme+" True", globex+" True")},
			},
		},
	}
}

func (s *scenario) end() []demo.Step {
	return []demo.Step{
		{
			Title: "Each tenant is reconciled again, and nothing has changed",
			Checks: []demo.Check{
				{Text: fmt.Sprintf("%d reconciles made no API request", 2*demo.IdleRounds),
					Holds: s.Idle(of(tenantOf)...)},
			},
		},
		{
			Title: "The tenants are deleted",
			Do: func(ctx context.Context) error {
				return errors.Join(s.Client.Delete(ctx, tenantOf(acme)), s.Client.Delete(ctx, tenantOf(globex)))
			},
			Checks: []demo.Check{
				{Text: "the list of all tenants is empty", Holds: s.registryLists()},
				{Text: "they are gone", Holds: s.Gone(of(tenantOf)...)},
				{Text: "the directory does not list them any more", Holds: eachOf(s.isNotListed)},
				{Text: "their namespaces are gone, with all that was in them", Holds: s.Gone(of(namespaceOf)...)},
			},
		},
	}
}

func (s *scenario) setDefault(ctx context.Context, key, value string) error {
	return s.Patch(ctx, newDefaults(), fmt.Sprintf(`{"data":{%q:%q}}`, key, value))
}

// change changes fields of Acme's spec, and whether it is protected: "true", or nil.
func (s *scenario) change(ctx context.Context, protected any, spec map[string]any) error {
	annotations := map[string]any{controller.ProtectedAnnotation: protected}
	patch, err := json.Marshal(map[string]any{"spec": spec, "metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	return s.Patch(ctx, tenantOf(acme), string(patch))
}

// operatorSees returns when an object is in the operator's cache. A cache that has lost its API server fills anew when
// that is back, and does not report what came and went meanwhile: the operator cannot know of that.
func (s *scenario) operatorSees(ctx context.Context, obj client.Object) error {
	return demo.Eventually(ctx, s.Patience, func(ctx context.Context) error {
		return s.Operator.Cache.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	})
}

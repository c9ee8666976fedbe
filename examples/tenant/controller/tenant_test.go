package controller_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// onboarded is the tenant with all that it is to have.
var onboarded = tenant.With(
	guarded,
	isTrue(v1alpha1.DefaultsResolved, "Succeeded"),
	isTrue(v1alpha1.NamespaceReady, "Ready"),
	isTrue(v1alpha1.QuotaReady, "Ready"),
	isTrue(v1alpha1.LimitsReady, "Ready"),
	isTrue(v1alpha1.MembersReady, "NotDesired"),
	isTrue(v1alpha1.NetworkReady, "NotDesired"),
	isTrue(v1alpha1.Registered, "Succeeded"),
	isTrue("Ready", "Ready"),
	rtesting.Observed,
)

func guarded(t *v1alpha1.Tenant) { t.Finalizers = []string{finalizer} }

func isolated(t *v1alpha1.Tenant) { t.Spec.Isolated = true }

func TestTenant(t *testing.T) {
	tracked := tracks("", "ConfigMap", "platform", "defaults")
	parts := []object{defaults, namespace, quota, limits}
	guard := rtesting.PatchRef{
		Group: v1alpha1.GroupVersion.Group, Kind: "Tenant", Name: "acme", PatchType: types.MergePatchType,
		Patch: []byte(`{"metadata":{"finalizers":["` + finalizer + `"],"resourceVersion":"999"}}`),
	}
	release := guard
	release.Patch = []byte(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`)

	table := rtesting.RootTests{
		"it is new": {
			GivenObjects:  []object{tenant, defaults},
			ExpectTracks:  tracked,
			ExpectCreates: []object{namespace, quota, limits},
			ExpectPatches: []rtesting.PatchRef{guard},
			ExpectEvents: []rtesting.Event{
				normal("Created", `Created Namespace "acme"`),
				normal("Created", `Created ResourceQuota "quota"`),
				normal("Created", `Created LimitRange "limits"`),
			},
			ExpectStatusUpdates: []object{onboarded},
		},
		"it has what it is to have": {
			GivenObjects: append([]object{onboarded}, parts...),
			ExpectTracks: tracked,
		},
		"it is to be isolated": {
			GivenObjects:  append([]object{onboarded.With(isolated)}, parts...),
			ExpectTracks:  tracked,
			ExpectCreates: []object{policy},
			ExpectEvents:  []rtesting.Event{normal("Created", `Created NetworkPolicy "isolation"`)},
			ExpectStatusUpdates: []object{
				onboarded.With(isolated, isTrue(v1alpha1.NetworkReady, "Ready"), rtesting.Observed),
			},
		},
		"it was isolated": {
			GivenObjects:  append([]object{onboarded, policy}, parts...),
			ExpectTracks:  tracked,
			ExpectDeletes: deletes(policy),
			ExpectEvents:  []rtesting.Event{normal("Deleted", `Deleted NetworkPolicy "isolation"`)},
		},
		"the defaults are gone: what is made of them stays": {
			GivenObjects: []object{onboarded, namespace, quota.With(allowsPods("21")), limits},
			ExpectTracks: tracked,
			ExpectStatusUpdates: []object{onboarded.With(
				isFalse(v1alpha1.DefaultsResolved, "NotFound", "there is no ConfigMap platform/defaults"),
				waits("waiting until DefaultsResolved is True", v1alpha1.QuotaReady, v1alpha1.LimitsReady, v1alpha1.MembersReady),
				isFalse("Ready", "NotFound", "DefaultsResolved: there is no ConfigMap platform/defaults"),
				rtesting.Observed)},
		},
		"the namespace belongs to somebody else: nothing is put there": {
			GivenObjects:    []object{tenant.With(guarded), defaults, namespace.With(foreign[*corev1.Namespace])},
			APIGivenObjects: []object{namespace.With(foreign[*corev1.Namespace])},
			ExpectTracks:    append(tracked, tracks("", "Namespace", "", "acme")...),
			ExpectCreates:   []object{namespace},
			ExpectEvents: []rtesting.Event{
				warning("CreationFailed", `Failed to create Namespace "acme": namespaces "acme" already exists`),
			},
			ExpectStatusUpdates: []object{tenant.With(
				guarded,
				isTrue(v1alpha1.DefaultsResolved, "Succeeded"),
				isFalse(v1alpha1.NamespaceReady, "AlreadyExists", `namespaces "acme" already exists`),
				waits("waiting until NamespaceReady is True",
					v1alpha1.QuotaReady, v1alpha1.LimitsReady, v1alpha1.MembersReady, v1alpha1.NetworkReady),
				isFalse(v1alpha1.Registered, "NoNamespace", "a tenant is listed when it has its namespace"),
				isFalse("Ready", "AlreadyExists", `NamespaceReady: namespaces "acme" already exists`),
				rtesting.Observed,
			)},
		},
		"it is being deleted: so is all that it has": {
			GivenObjects:  append([]object{onboarded.With(terminating)}, parts...),
			ExpectDeletes: slices.Concat(deletes(namespace), deletes(quota), deletes(limits)),
			ExpectPatches: []rtesting.PatchRef{release},
			ExpectEvents: []rtesting.Event{
				normal("Deleted", `Deleted Namespace "acme"`),
				normal("Deleted", `Deleted ResourceQuota "quota"`),
				normal("Deleted", `Deleted LimitRange "limits"`),
			},
		},
		"it is gone": {},
	}
	runTenants(t, table, func() directory.Directory { return &directory.Memory{} })
}

// waits has conditions wait for what a text says.
func waits(message string, conditions ...string) func(*v1alpha1.Tenant) {
	return func(t *v1alpha1.Tenant) {
		for _, condition := range conditions {
			isUnknown(condition, "Waiting", message)(t)
		}
	}
}

func TestTenantWithMembers(t *testing.T) {
	staffed := team("guest").With(func(t *v1alpha1.Tenant) {
		t.ObjectMeta, t.Status = onboarded.Object().ObjectMeta, onboarded.Object().Status
	})
	bound := staffed.With(isTrue(v1alpha1.MembersReady, "Ready"), rtesting.Observed)
	dir := directoryOf(t, []directory.Entry{{Tenant: "acme", UID: "acme-uid"}})

	runTenants(t, rtesting.RootTests{
		"they are bound, and the directory knows them": {
			GivenObjects:        []object{staffed, defaults, namespace, quota, limits},
			ExpectTracks:        tracks("", "ConfigMap", "platform", "defaults"),
			ExpectCreates:       []object{annViews, teamEdits},
			ExpectEvents:        []rtesting.Event{created(annViews), created(teamEdits)},
			ExpectStatusUpdates: []object{bound},
		},
	}, func() directory.Directory { return dir })
	if _, members, _ := dir.Lookup("acme"); !slices.Equal(members, []directory.Member{teamGroup, ann}) {
		t.Errorf("the directory knows %v", members)
	}
}

// TestTenantWithoutDirectory has a directory that does not answer, which is no failure: all else goes on.
func TestTenantWithoutDirectory(t *testing.T) {
	tracked := tracks("", "ConfigMap", "platform", "defaults")
	again := reconcilers.Result{RequeueAfter: 30 * time.Second}
	unlisted := onboarded.With(unavailable,
		isUnknown("Ready", "DirectoryUnavailable", "Registered: the directory does not answer; it is asked again"), rtesting.Observed)
	dir := directoryOf(t, []directory.Entry{{Tenant: "acme", UID: "acme-uid"}})
	dir.SetOutage(true)

	runTenants(t, rtesting.RootTests{
		"it was listed": {
			GivenObjects:        []object{onboarded, defaults, namespace, limits},
			ExpectTracks:        tracked,
			ExpectCreates:       []object{quota},
			ExpectEvents:        []rtesting.Event{normal("Created", `Created ResourceQuota "quota"`)},
			ExpectStatusUpdates: []object{unlisted},
			ExpectedResult:      again,
		},
		"the status says so": {
			GivenObjects:   []object{unlisted, defaults, namespace, quota, limits},
			ExpectTracks:   tracked,
			ExpectedResult: again,
		},
		"it is being deleted: it stays until the directory has let it go": {
			GivenObjects:   []object{unlisted.With(terminating)},
			ExpectedResult: again,
			ExpectStatusUpdates: []object{unlisted.With(terminating,
				isFalse("Ready", "Terminating", "the resource is being deleted"), rtesting.Observed)},
		},
	}, func() directory.Directory { return dir })
	if _, _, ok := dir.Lookup("acme"); !ok {
		t.Error("the directory does not list it")
	}
}

// runTenants runs a table with the directory that newDirectory returns for each case.
func runTenants(t *testing.T, table rtesting.RootTests, newDirectory func() directory.Directory) {
	t.Helper()
	for name, tc := range table {
		tc.Request.Name = "acme"
		table[name] = tc
	}
	table.RunRoot(t, scheme, func(c reconcilers.Config) reconcile.Reconciler {
		return controller.New(c, controller.Options{Directory: newDirectory()})
	})
}

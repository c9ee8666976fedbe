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
	isTrue(v1alpha1.DefaultsResolved, "Resolved"),
	isTrue(v1alpha1.NamespaceReady, "Present"),
	isTrue(v1alpha1.QuotaReady, "InForce"),
	isTrue(v1alpha1.LimitsReady, "InForce"),
	isTrue(v1alpha1.MembersReady, "NoMembers"),
	isTrue(v1alpha1.NetworkReady, "Open"),
	isTrue(v1alpha1.Registered, "Listed"),
	rtesting.Observed,
)

func guarded(t *v1alpha1.Tenant) { t.Finalizers = []string{finalizer} }

func isolated(t *v1alpha1.Tenant) { t.Spec.Isolated = true }

func TestTenant(t *testing.T) {
	tracked := tracks("", "ConfigMap", "platform", "defaults")
	statusUpdated := normal("StatusUpdated", "Updated status")
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
				normal("FinalizerPatched", `Patched finalizer "`+finalizer+`"`),
				statusUpdated,
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
			ExpectEvents:  []rtesting.Event{normal("Created", `Created NetworkPolicy "isolation"`), statusUpdated},
			ExpectStatusUpdates: []object{
				onboarded.With(isolated, isTrue(v1alpha1.NetworkReady, "Isolated"), rtesting.Observed),
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
			ExpectEvents: []rtesting.Event{statusUpdated},
			ExpectStatusUpdates: []object{onboarded.With(
				isFalse(v1alpha1.DefaultsResolved, "NotFound", "there is no ConfigMap platform/defaults"), rtesting.Observed)},
		},
		"the namespace belongs to somebody else: nothing is put there": {
			GivenObjects:    []object{tenant.With(guarded), defaults, namespace.With(foreign[*corev1.Namespace])},
			APIGivenObjects: []object{namespace.With(foreign[*corev1.Namespace])},
			ExpectTracks:    append(tracked, tracks("", "Namespace", "", "acme")...),
			ExpectCreates:   []object{namespace},
			ExpectEvents: []rtesting.Event{
				warning("CreationFailed", `Failed to create Namespace "acme": namespaces "acme" already exists`),
				statusUpdated,
			},
			ExpectStatusUpdates: []object{tenant.With(
				guarded,
				rtesting.Initialized,
				isTrue(v1alpha1.DefaultsResolved, "Resolved"),
				isFalse(v1alpha1.NamespaceReady, "NotOurs", `namespaces "acme" already exists and does not belong to this tenant`),
				isUnknown(v1alpha1.Registered, "NoNamespace", "a tenant is listed when it has its namespace"),
				rtesting.Observed,
			)},
		},
		"it is being deleted: what is in the namespace goes with it": {
			GivenObjects:  append([]object{onboarded.With(terminating)}, parts...),
			ExpectDeletes: deletes(namespace),
			ExpectPatches: []rtesting.PatchRef{release},
			ExpectEvents: []rtesting.Event{
				normal("Deleted", `Deleted Namespace "acme"`),
				normal("FinalizerPatched", `Patched finalizer "`+finalizer+`"`),
			},
		},
		"it is gone": {},
	}
	runTenants(t, table, func() directory.Directory { return &directory.Memory{} })
}

func TestTenantWithMembers(t *testing.T) {
	staffed := team("guest").With(func(t *v1alpha1.Tenant) {
		t.ObjectMeta, t.Status = onboarded.Object().ObjectMeta, onboarded.Object().Status
	})
	bound := staffed.With(isTrue(v1alpha1.MembersReady, "Bound"), rtesting.Observed)
	dir := directoryOf(t, []directory.Entry{{Tenant: "acme", UID: "acme-uid"}})

	runTenants(t, rtesting.RootTests{
		"they are bound, and the directory knows them": {
			GivenObjects:        []object{staffed, defaults, namespace, quota, limits},
			ExpectTracks:        tracks("", "ConfigMap", "platform", "defaults"),
			ExpectCreates:       []object{teamEdits, annViews},
			ExpectEvents:        []rtesting.Event{created(teamEdits), created(annViews), normal("StatusUpdated", "Updated status")},
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
	unlisted := onboarded.With(unavailable, rtesting.Observed)
	dir := directoryOf(t, []directory.Entry{{Tenant: "acme", UID: "acme-uid"}})
	dir.SetOutage(true)

	runTenants(t, rtesting.RootTests{
		"it was listed": {
			GivenObjects:        []object{onboarded, defaults, namespace, limits},
			ExpectTracks:        tracked,
			ExpectCreates:       []object{quota},
			ExpectEvents:        []rtesting.Event{normal("Created", `Created ResourceQuota "quota"`), normal("StatusUpdated", "Updated status")},
			ExpectStatusUpdates: []object{unlisted},
		},
		"the status says so": {
			GivenObjects:   []object{unlisted, defaults, namespace, quota, limits},
			ExpectTracks:   tracked,
			ExpectedResult: again,
		},
		"it is being deleted: it stays until the directory has let it go": {
			GivenObjects:   []object{unlisted.With(terminating)},
			ExpectedResult: again,
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

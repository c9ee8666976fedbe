// Package testing (imported as rtesting) tests reconcilers with tables, without a cluster.
//
// A case says what there is, calls the reconciler once, and says all that must come of it: the resource, the result, and
// every write, event and track. Whatever is not expected fails the case, and the failure shows the Go literal that would
// expect it, ready to paste:
//
//	rtesting.SubReconcilerTests[*v1.Tenant]{
//		"creates the quota": {
//			Resource:      tenant.Object(),
//			ExpectCreates: []client.Object{quota},
//			ExpectEvents: []rtesting.Event{
//				rtesting.NewEvent(tenant, scheme, corev1.EventTypeNormal, "Created", `Created ResourceQuota "acme"`),
//			},
//		},
//	}.Run(t, scheme, func(
//		t *testing.T, tc *rtesting.SubReconcilerTestCase[*v1.Tenant], c reconcilers.Config,
//	) reconcilers.SubReconciler[*v1.Tenant] {
//		return QuotaReconciler()
//	})
//
// For a sub-reconciler there is [SubReconcilerTests], for a whole reconciler [ReconcilerTests]; each has a suite whose cases
// run in order. For code that is neither there is [ExpectConfig], which is what both are made of. [Fixture] holds an
// object that cases share and change a little. [InduceFailure] lets calls fail.
//
// The client is one in memory that keeps the field managers of server-side apply; a case that has a Server runs against a
// real API server. Set the environment variable COLOR_DIFF to have differences in colour.
package testing

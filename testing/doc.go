// Package testing (imported as rtesting) tests reconcilers with tables, without a cluster.
//
// A case says what there is, calls the code under test once, and says all that must come of it. Whatever is not expected
// fails the case, and the failure shows the Go literal that would expect it, ready to paste. There are five rungs, from
// the smallest part to the whole; most tests belong on the first.
//
// # A sub-reconciler
//
// [SubReconcilerTests] calls one node, with all that is nested in it, for a resource in memory:
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
// An object manager is tested this way too, by [ObjectManagerReconcilerTestHarness]; and what uses an object manager can
// do with a [StubObjectManager].
//
// # A root
//
// [ReconcilerTests] makes one request to a whole reconciler: the resource is one of the objects that there are, and its
// status one of the writes:
//
//	rtesting.ReconcilerTests{
//		"becomes ready": {
//			Request:             reconcilers.Request{NamespacedName: types.NamespacedName{Name: "acme"}},
//			GivenObjects:        []client.Object{tenant, quota},
//			ExpectStatusUpdates: []client.Object{tenant.With(ready)},
//			ExpectEvents:        []rtesting.Event{statusUpdated},
//		},
//	}.Run(t, scheme, func(t *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
//		return TenantReconciler(c)
//	})
//
// # A webhook
//
// [AdmissionWebhookTests] asks an admission webhook and compares its answer:
//
//	rtesting.AdmissionWebhookTests{
//		"labels": {
//			Request: &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
//				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
//			}},
//			ExpectedResponse: admission.Response{
//				AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true},
//				Patches:           []jsonpatch.Operation{{Operation: "add", Path: "/metadata/labels", Value: labels}},
//			},
//		},
//	}.RunWithContext(t, scheme, func(
//		t *testing.T, ctx context.Context, tc *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
//	) (*admission.Webhook, error) {
//		return TenantWebhook(c).BuildWithContext(ctx)
//	})
//
// # A component
//
// A [components.ComponentReconciler] is a sub-reconciler like others. [Rollout] rolls it out in memory, so that rows start with
// what is deployed, marks and inventory included, and take their expectations from it:
//
//	house := rtesting.Rollout[*v1.House]{Scheme: scheme, Resource: tiny, Reconciler: HouseReconciler()}.Run(t)
//	damaged := house.After(t, func(ctx context.Context, c client.Client) error { return c.Patch(ctx, roof, hole) })
//	rtesting.SubReconcilerTests[*v1.House]{
//		"repairs the roof": {
//			Now:            rtesting.RolledOutAt,
//			Resource:       damaged.Object(),
//			GivenObjects:   damaged.Objects(),
//			ExpectResource: damaged.With(func(h *v1.House) { rtesting.LeaveOpen(&h.Status.ComponentStatus) }).Object(),
//			ExpectApplies:  []rtesting.ApplyRef{house.ApplyRef(roof)},
//			ExpectEvents:   []rtesting.Event{updated},
//			ExpectedResult: reconcilers.Result{RequeueAfter: 606 * time.Second, Priority: &low},
//		},
//	}.Run(...)
//
// What nobody wants to spell out need not be expected, see [DefaultDiffer]: digests, times, what identifies an object in the inventory.
// [Marked] expects what is created for the first time, and [Inventory] records that are kept in a Secret or ConfigMap. Such an inventory
// is read through the APIReader, so it belongs into APIGivenObjects, too.
//
//   - Give the node a Parallel of 1, or creates and deletes are recorded in any order.
//   - Objects that are created in a row have no UID, and a component goes no further with them, unless [AssignUIDs] is among the
//     reactors.
//   - The types of given CustomResourceDefinitions that are established are served: instances of others block a deletion, and
//     the fence that a component puts up keeps new ones from being created. It is the only validation rule that has an effect.
//   - Nobody watches: the result asks for another request where in a cluster a watch would bring the resource back.
//
// # A set-up
//
// [SetupTests] sets up a root, or a sub-reconciler within an empty one, with a manager that has no cluster. It compares
// what is watched and indexed, and which requests come of which events:
//
//	rtesting.SetupTests{
//		"follows its quota": {
//			ExpectWatches: []client.Object{&v1.Tenant{}, &corev1.ResourceQuota{}},
//			ExpectIndexes: []rtesting.IndexRef{{Object: &corev1.ResourceQuota{}, Field: rtesting.OwnerIndex}},
//			Events: []rtesting.SetupEvent{
//				{Created: tenant, ExpectRequests: []reconcilers.Request{acme}},
//				{Deleted: quota, ExpectRequests: []reconcilers.Request{acme}},
//			},
//		},
//	}.Run(t, scheme, func(t *testing.T, tc *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
//		return TenantReconciler(c)
//	})
//
// # A real API server
//
// The client is one in memory that keeps the field managers of server-side apply. What only a server decides (defaults,
// validation, garbage collection) needs a server: a case of the first three rungs that has a Server runs against it, and
// cleans up behind itself. Tests of a manager that runs are beyond tables.
//
// # What cases compare
//
// Calls of one kind are compared in the order they were made, and each kind for itself. ExpectOrder says in which order
// the kinds follow each other. Options, such as preconditions or a field manager, are compared where an expectation sets
// them. With ShouldErr alone neither the error nor the result matters; ExpectedErr says which error, and has the result
// compared too. The transition times of conditions are compared by [StrictDiffer] only.
//
// [Fixture] holds an object that cases share and change a little. [InduceFailure] lets calls fail. Each kind of table has
// a suite whose cases run in order. For code that is none of this there is [ExpectConfig], which is what cases are made
// of. Set the environment variable COLOR_DIFF to have differences in colour.
package testing

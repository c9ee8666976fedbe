// Package testing (imported as rtesting) tests reconcilers with tables, without a cluster.
//
// A row of a table is a test case: it gives objects, calls the code under test once, and expects all of its effects.
// Any unexpected call fails the case, and the failure prints the Go literal to paste as the expectation. The tables
// are described from the smallest part of an operator to the largest. Most tests belong in the first one. The page
// docs/testing.md of this module is a guide with a file of tests that can be copied.
//
// # Faithful rows
//
// [NodeTests] and [RootTests] are the tables for new tests. Their API server in memory answers as a real one does, and
// each row that passes is replayed with a fault at each of its calls: the process dies before the call or after it, the
// call fails, its answer is lost, somebody else writes the object first, or a read comes from an older cache. New
// instances then run to rest, and must leave behind what they leave behind without the fault:
//
//	rtesting.NodeTests[*v1.Tenant]{
//		"creates the quota": {
//			Resource:      tenant.Object(),
//			GivenObjects:  []client.Object{namespace},
//			ExpectCreates: []client.Object{quota},
//			ExpectEvents:  []rtesting.Event{rtesting.Normal(tenant, "Created", `Created ResourceQuota "acme"`)},
//		},
//	}.RunNode(t, scheme, QuotaReconciler)
//
// With -v the test prints with how many faults a row was replayed, or why it was not. What is found is printed with
// what happened, in one line, and with the smallest row that shows it. The line has of each request the first call, the
// writes, the calls beside the cluster, and what went wrong; other reads are left out. The row has a [Fault]: paste it,
// and it fails until the bug is gone. [Replays] leaves out faults and differences, and [NoReplays] all. [Rest] makes
// requests until nothing is left to do. [External], [HTTP] and [Call] are for what is beside the cluster, and [As] is
// for other actors in it. A row in virtual time does not wait.
//
// The flag -rtesting.faults is off, default or pairs: no replays, those with one fault, or those with two as well. With
// -short a third of the faults is tried.
//
// [SubReconcilerTests] and [ReconcilerTests] have the same rows. They run over the fake client of controller-runtime,
// which knows little of that, and are not replayed. See [NodeTests] for the differences.
//
// # Updating rows
//
// With the flag -rtesting.update, rows that fail are written with what was seen in place of what was expected:
//
//	go test ./controller -run TestQuota -rtesting.update
//
// A boolean flag -update that a test package defines itself has the same effect. A row is found in the source by its
// name, which has to be a constant. Elements of a list that are met stay as they are. Errors, panics and what Verify
// checks are not written: they fail as without the flag.
//
// # A row
//
// A row of [SubReconcilerTests] calls one sub-reconciler, with all that is nested in it, for a resource in memory:
//
//	rtesting.SubReconcilerTests[*v1.Tenant]{
//		"creates the quota": {
//			Resource:      tenant.Object(),
//			ExpectCreates: []client.Object{quota},
//			ExpectEvents:  []rtesting.Event{rtesting.Normal(tenant, "Created", `Created ResourceQuota "acme"`)},
//		},
//	}.Run(t, scheme, func(
//		t *testing.T, tc *rtesting.SubReconcilerTestCase[*v1.Tenant], c reconcilers.Config,
//	) reconcilers.SubReconciler[*v1.Tenant] {
//		return QuotaReconciler()
//	})
//
// [ObjectManagerReconcilerTestHarness] tests an object manager this way too. Code that uses an object manager can be
// tested with a [StubObjectManager].
//
// # A tree
//
// [ReconcilerTests] make one request to a root reconciler with its whole tree. The resource is one of the given
// objects, and its status is one of the writes:
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
// [AdmissionWebhookTests] send one request to an admission webhook and compare its response:
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
// # A set-up
//
// [SetupTests] set up a root, or a sub-reconciler in an empty root, with a manager that has no cluster. They compare
// the watched types, the indexed fields, and the requests that events cause:
//
//	rtesting.SetupTests{
//		"follows its quota": {
//			ExpectWatches: []client.Object{&v1.Tenant{}, &corev1.ResourceQuota{}},
//			ExpectIndexes: []rtesting.IndexRef{{Object: &corev1.ResourceQuota{}, Field: "spec.tier"}},
//			Events: []rtesting.SetupEvent{
//				{Created: tenant, ExpectRequests: []reconcilers.Request{acme}},
//				{Deleted: quota, ExpectRequests: []reconcilers.Request{acme}},
//			},
//		},
//	}.Run(t, scheme, func(t *testing.T, tc *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
//		return TenantReconciler(c)
//	})
//
// # A component
//
// A [components.ComponentReconciler] is a sub-reconciler like others. [Rollout] rolls it out in memory. Rows start
// from the resulting objects, with their marks and inventory, and take their expectations from them:
//
//	house := rtesting.Rollout[*v1.House]{Scheme: scheme, Resource: tiny, Reconciler: HouseReconciler()}.Run(t)
//	damaged := house.After(t, func(ctx context.Context, c client.Client) error { return c.Patch(ctx, roof, hole) })
//	rtesting.SubReconcilerTests[*v1.House]{
//		"repairs the roof": {
//			Now:            rtesting.RolledOutAt,
//			Resource:       damaged.Object(),
//			GivenObjects:   damaged.Objects(),
//			ExpectResource: damaged.With(func(h *v1.House) {
//				rtesting.IgnoreComputed(&h.Status.ComponentStatus)
//			}).Object(),
//			ExpectApplies:  []rtesting.ApplyRef{house.ApplyRef(roof)},
//			ExpectEvents:   []rtesting.Event{updated},
//			ExpectedResult: reconcilers.Result{RequeueAfter: 606 * time.Second, Priority: &low},
//		},
//	}.Run(...)
//
// By default, computed fields are compared only where an expectation sets them: digests, times, and the UIDs in an
// inventory, see [DefaultDiffer]. [MakeReady] completes Deployments and the like for a Rollout. [WithOwnership] expects
// objects that are created for the first time. [Inventory] expects records that are kept in a Secret or ConfigMap. Such
// an inventory is read through the APIReader, so give it as one of the APIGivenObjects too.
//
//   - Give the node a Parallel of 1, or creates and deletes are recorded in any order.
//   - Objects that are created in a row have no UID, and a component waits for it, unless [AssignUIDs] is among the
//     reactors.
//   - The types of given CustomResourceDefinitions that are established are served: instances of others block a
//     deletion, and the fence that a component creates keeps new instances from being created. It is the only
//     validation rule with an effect.
//   - There are no watches: the result requests another reconcile where a cluster would send an event.
//
// # A real API server
//
// The API server is in memory. [Main] makes the calls of [NodeTests] and [RootTests] on a real one, too, and compares
// the answers. In memory, the older tables keep the managed fields of server-side apply, and know no defaults,
// validation and garbage collection: a case that has a Server runs against it, and deletes its objects afterwards.
// Tables do not test a running manager.
//
// # How cases compare
//
// Calls of one kind are compared in the order in which they were made, each kind separately. ExpectOrder expects the
// order across kinds. Options, such as preconditions or a field manager, are compared where an expectation sets them.
// With ShouldErr alone the error and the result are not compared. ExpectedErr expects an error, and the result is
// compared too. Only [StrictDiffer] compares the transition times of conditions.
//
// # How a row runs
//
//   - The table (tables.go, subreconciler.go, reconciler.go, webhook.go, setup.go) runs each row as a subtest. In
//     case.go, begin makes its context (context.go), calls Prepare, and copies the fields of the row into an
//     [ExpectConfig].
//   - config.go makes the config of the row: clients of an API server with the given objects, discovery, a tracker and
//     two recorders (events.go). The API server (backend.go) is the fake client over internal/testenv/memserver
//     (compat.go), a store of internal/testenv/store (faithful.go), or a real one (live.go). A set-up has
//     internal/fakemanager on top.
//   - The factory returns the code under test, which validates itself, if it can. It is called once for each instance:
//     once in a row that is not replayed.
//   - Each call passes through internal/recording/client.go: a write is recorded, the reactors (reactors.go) may make
//     the call fail, and the server answers it. journal.go, beside it, keeps the order.
//   - assert.go compares each kind of call with the expectations of the row, as differ.go and cmp_options.go define
//     it, and values.go the result and the resource. In a faithful row serverset.go leaves out what only a server
//     sets. A failure (failure.go) waits for the end of the row. Literals are chosen by literals.go and printed by
//     internal/literal.
//   - origin.go knows where the table is run. There internal/source finds the row, to name its line (failure.go) and
//     to update it (update.go).
//   - In case.go, end calls CleanUp and releases the config.
//   - A faithful row that has passed is made a program of internal/testenv/replay (replays.go, replays_rows.go), which
//     runs it with faults (fault.go, replay_options.go). What it finds is written by finding.go and finding_words.go.
//
// # More
//
// [Fixture] holds an object that cases share with small changes, such as [IsTrue], [Observed] and [Terminating].
// [WithController] gives a child to a row so that its node finds it. [Normal] and [Warning] are events. [InduceFailure]
// makes calls fail. Each kind of table has a suite whose cases run in order. Other code can be tested with an
// [ExpectConfig], as the tables do. Set the environment variable COLOR_DIFF to have differences in colour. A row that
// panics fails, and other rows go on.
package testing

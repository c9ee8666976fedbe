// Package testing (imported as rtesting) tests reconcilers with tables, without a cluster.
//
// A row of a table gives objects, calls the code under test once, and expects all of its effects. Any other call fails
// the row, and the failure prints the Go literal to paste:
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
// The page docs/testing.md of this module is the guide, with files of tests that can be copied. It says what a row
// gives and expects, and how rows are replayed with faults. This is the list of what there is:
//
//   - [NodeTests] call one node, [RootTests] a root with its tree. Kubernetes' own API server answers, in the test
//     binary, and each row that passes is replayed with faults. [Fault], [Replays], [NoReplays], [Rest], [External],
//     [HTTP], [Call] and [As] belong to that.
//   - [SubReconcilerTests] and [ReconcilerTests] have the same rows, over the fake client of controller-runtime and
//     without replays, see [NodeTests] for the differences. A row of them that has a Server runs against a real API
//     server.
//   - [SetupTests] compare what a set-up watches and indexes, and the requests that events cause.
//   - [AdmissionWebhookTests] send a request to a webhook, and compare the response.
//   - [ObjectManagerReconcilerTestHarness] tests an object manager, and [StubObjectManager] stands for one.
//   - Each kind of table has a suite whose rows run in order. Other code is tested with an [ExpectConfig].
//   - [Rollout] rolls a component out, as the start of rows. [MakeReady], [WithOwnership], [Inventory] and
//     [IgnoreComputed] serve its rows.
//   - [Fixture] is an object that rows share with small changes, such as [IsTrue], [Observed] and [Terminating].
//     [WithController] gives a child to a row so that its node finds it. [Normal] and [Warning] are events.
//     [InduceFailure] makes calls fail.
//
// # Flags
//
//	-rtesting.update        rows that fail are written with what was seen
//	-rtesting.faults=pairs  rows are replayed with two faults, too; off: without any; default: with one, for up to 5 s
//
// The environment variable COLOR_DIFF has differences in colour. A row that panics fails, and other rows go on.
//
// # How rows compare
//
// Calls of one kind are compared in the order in which they were made, each kind separately. ExpectOrder expects the
// order across kinds. Options, such as preconditions or a field manager, are compared where an expectation sets them.
// With ShouldErr alone the error and the result are not compared. ExpectedErr expects an error, and the result is
// compared too. Only [StrictDiffer] compares the transition times of conditions. Digests, times and the UIDs in an
// inventory are compared only where an expectation sets them, see [DefaultDiffer].
//
// # How a row runs
//
//   - The table (tables.go, subreconciler.go, reconciler.go, webhook.go, setup.go) runs each row as a subtest. In
//     case.go, begin makes its context, calls Prepare, and makes an [ExpectConfig] of what all tables have (row.go).
//   - config.go gives it to internal/run, which makes the config of the row: clients of an API server with the given
//     objects, discovery, a tracker and two recorders, all of internal/recording. The API server is the fake client of
//     controller-runtime, a store of internal/store, or a real one. A set-up has internal/fakemanager on top.
//   - The factory returns the code under test, which validates itself, if it can. It is called once for each instance:
//     once in a row that is not replayed.
//   - Each call passes through internal/recording/client.go: a write is recorded, the reactors (reactors.go) may make
//     the call fail, and the server answers it. internal/recording/journal.go keeps the order.
//   - assert.go compares each kind of call with the expectations of the row, and values.go the result and the resource.
//     internal/check compares, by differ.go, and chooses literals, with literals.go, that internal/literal prints.
//   - internal/words keeps the failures until the end of the row, writes them with the line of the row, and updates the
//     row.
//   - In case.go, end calls CleanUp and releases the config.
//   - A row of NodeTests or RootTests that has passed is made a program of internal/replay (replays.go,
//     replays_program.go), which runs it with faults (fault.go, replay_options.go). What it finds is reported by
//     finding.go.
package testing

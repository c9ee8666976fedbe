// Package store is an API server's state in memory, for tests: a [Store] has objects, and a [Client] of it answers
// calls as an API server does. It is faithful: what an API server refuses, completes, or does not write, the store
// refuses, completes, and does not write.
//
//   - A call finds the object, decides, and commits. The decisions are pure, see decide.go: an object stays as it is,
//     is stored, is removed, or the call is refused.
//   - An object is kept as a record, which never changes. A change replaces the record, raises the revision of the
//     store by one, and is kept in a journal. So [Store.Fork] costs a microsecond, a watch reads the journal, and the
//     store can be shown as it was at any earlier revision.
//   - A cache that lags is a [View]: the client shows the store as of an earlier revision. The view of a kind never
//     goes back.
//   - What depends on the kind is in package registry, and managed fields are in package fieldmanager.
//   - What controllers of the control plane do, such as garbage collection, happens between calls, in
//     [Store.CollectGarbage].
//
// Of the admission plug-ins there is NamespaceLifecycle alone. There are no quotas and no conversions.
package store

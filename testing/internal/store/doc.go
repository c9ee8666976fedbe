// Package store is the state of an API server, for tests: a [Store] has objects, and a [Client] of it answers calls as
// an API server does. What an API server refuses, completes, or does not write, the store refuses, completes, and does
// not write.
//
//   - The API server of Kubernetes answers, which runs in the process, see package server. All stores share one. A
//     store is a fork of its storage.
//   - [Store.Fork] costs about a microsecond, and the store can be shown as it was at any earlier revision.
//   - A cache that lags is a [View]: the client shows the store as of an earlier revision. The view of a kind never
//     goes back.
//   - What depends on the kind is in package registry.
//   - What controllers of the control plane do, such as garbage collection, happens between calls, in
//     [Store.CollectGarbage].
//
// Of the admission plug-ins there is NamespaceLifecycle alone. There are no quotas.
package store

// Package storage keeps the objects of API servers in memory, in the place of etcd. It implements
// [storage.Interface] of k8s.io/apiserver, so that everything above it is the real API server.
//
// A [Storage] is one database. All resources of a server share it, and so do several servers that stand for replicas.
// It outlives the servers on it, as etcd does when kube-apiserver restarts.
//
//   - There is one revision counter. It begins at 1, and each write, of whatever resource, takes the next revision. The
//     revision of a write is the resource version of the object.
//   - Each revision is an immutable history: the entries of all keys in order, and the changes that led to them as far
//     back as they are kept. Reading is a pure function of a history and waits for nobody. Writing publishes the next
//     history.
//   - A watch follows the histories at the pace of its client. A slow client holds nobody up and loses nothing, unless
//     a compaction overtakes it: then its watch ends with 410 Expired.
//
// The differences from the storage in etcd are allowed by [storage.Interface], or are left out on purpose:
//
//   - Objects that callers suggest as the current ones are ignored. To read the stored object costs less than to encode
//     the suggestion.
//   - A watch that allows bookmarks gets them without a watch cache, see [Options].
//   - Compaction goes by the age of each change, not by a timer, see [Options].
//   - Lists do not collect the errors of corrupt objects: the first ends them. Watches ignore RecordTimestamps, which
//     only the watch cache asks for.
//
// # Virtual time
//
// All of it works in a bubble of testing/synctest if [New] is called in the bubble. The only lock is held for steps
// that wait for nothing. The only goroutine is one for each watch; it ends when the context of the watch is done or the
// watch is stopped. Objects expire by timers, which are no goroutines.
package storage

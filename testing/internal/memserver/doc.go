// Package memserver is an API server's storage in memory, for tests.
//
// A [Server] implements client-go's ObjectTracker, so it can stand behind controller-runtime's fake client;
// [Server.Build] puts it there. Compared with the tracker that the fake client makes for itself it
//
//   - costs microseconds a write, for a scheme of any size;
//   - computes managed fields only for objects that server-side apply touches, from all writes before that, so that an
//     apply conflicts, shares and removes fields as it does on a real server;
//   - honours dry runs and preconditions;
//   - keeps the UID of an object, and refuses updates of an object with another UID.
//
// The fake client decides the rest as usual: given objects have resource version 999, each write increments that of its
// object by one, and there are no UIDs and no generations unless the test sets them.
package memserver

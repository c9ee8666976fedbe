// Package memserver is an API server's storage in memory, for tests.
//
// A [Server] implements client-go's ObjectTracker, so it can stand behind controller-runtime's fake client; [Server.Build]
// puts it there. Compared with the tracker that the fake client makes for itself it
//
//   - costs microseconds a write, whatever the size of the scheme;
//   - works out who owns which field only for objects that server-side apply touches, yet knows all writes before that,
//     so that an apply conflicts, shares and removes fields as it does on a real server;
//   - honours dry runs and preconditions;
//   - lets the ways in which a real server differs from a plain store be added one by one, each a [Rule].
//
// What the fake client itself decides stays as its users know it: seeded objects have resource version 999, each write
// counts that of its object up by one, there are no UIDs and no generations unless the test sets them.
package memserver

// Package mapped lets a row of a table run on a real API server as it runs in memory. A [Server] stands between the row
// and a client of the API server, and maps what the row assumes to what the API server assigns:
//
//   - UIDs and resource versions of given objects are those of the row, wherever objects, patches, preconditions,
//     selectors, labels and references have them. Objects that the row makes get others, in the order of their making.
//   - Namespaces, and the names of objects in no namespace, end with a suffix of the row, so that rows run in parallel
//     on one API server. What is in a field named namespace is mapped too; other names that a row writes into an object
//     stay as they are, since an API server does not follow them. Whatever comes back is without the suffix.
//     Definitions of kinds keep their names: all rows share them.
//   - Creation and deletion times are those of the row or its clock. The generation of a given object goes on from that
//     of the row.
//   - What the API server completes in a given object is not shown as long as it stays as it was.
//
// Given objects are made as if they had always been there: owners before their dependents, with status, finalizers,
// deletion and managed fields.
package mapped

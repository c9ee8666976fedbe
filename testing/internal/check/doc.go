// Package check compares what code under test has done with what a row expects. It says which part of an object is
// compared: what its writer decides, without what only a server sets, or what a component computes. It knows the types
// of a table only as type parameters, and notes what differs in a page of internal/words. The assertions of the harness
// call it.
package check

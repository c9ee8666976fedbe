// Package fidelity compares what API servers answer: a real one, that of rows, and that of a simulation.
//
// The latter two are the code of Kubernetes in the process, see package server, so what it does by itself needs no
// comparison. The checks are about what is set up or written here: definitions and their handlers, the admission of
// namespaces, garbage collection, generated names and UIDs, the strategies of built-in kinds, and the client of rows.
//
// A check is a small program that makes a few calls and says what came of them, in one line of text. The checks are
// written from the conventions of the Kubernetes API, not from what they check. They run on any [Cluster], see [Ask].
// The answers of a real API server are recorded in testdata/answers.txt, so that a test of another one needs no control
// plane: it compares with [Recorded], see [Compare].
//
//	go test ./testing/internal/fidelity -run ServerOfRows
//	go test ./testing/internal/fidelity -run RealServer          # needs a control plane
//	go test ./testing/internal/fidelity -run RealServer -update  # records the answers
//
// Another test makes random owners and dependents on a real API server and on that of rows at once, and deletes some:
//
//	go test ./testing/internal/fidelity -run Random -seed 1000 -rounds 200
package fidelity

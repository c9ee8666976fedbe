// Package fidelity compares what API servers answer: a real one, package store, and that of a simulation.
//
// A check is a small program that makes a few calls and says what came of them, in one line of text. The checks are
// written from the conventions of the Kubernetes API, not from what they check. They run on any [Cluster], see [Ask].
// The answers of a real API server are recorded in testdata/answers.txt, so that a test of another one needs no control
// plane: it compares with [Recorded], and lists the differences that are accepted with their reasons, see [Compare].
//
// The tests here run the checks on a real API server, on the store, and with -v on the fake client of
// controller-runtime:
//
//	go test ./testing/internal/fidelity -run Store -v
//	go test ./testing/internal/fidelity -run RealServer          # needs a control plane
//	go test ./testing/internal/fidelity -run RealServer -update  # records the answers
//
// Further tests make random calls, see [CompareRandomCalls], or random owners and dependents, on a real API server and
// on the store at once. What they find is printed as the shortest sequence of calls:
//
//	go test ./testing/internal/fidelity -run Random -seed 1000 -rounds 200
package fidelity

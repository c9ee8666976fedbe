// Package fidelity has no code but tests. They compare what package store answers with what a real API server answers.
//
// A check is a small program that makes a few calls and says what came of them, in one line of text. The checks are
// written from the conventions of the Kubernetes API, not from the store. The answers of a real API server are kept in
// testdata/answers.txt. The usual test runs the checks on the store and compares; differences that are accepted are
// listed in the test with their reasons. With -v it prints how the store and the fake client of controller-runtime
// differ. Another test runs the checks on a real API server and compares with the file:
//
//	go test ./internal/testenv/fidelity -run Store -v
//	go test ./internal/testenv/fidelity -run RealServer          # needs a control plane
//	go test ./internal/testenv/fidelity -run RealServer -update  # writes the file
//
// Further tests make random calls, or random owners and dependents, on a real API server and on the store at once. What
// they find is printed as the shortest sequence of calls:
//
//	go test ./internal/testenv/fidelity -run Random -seed 1000 -rounds 200
package fidelity

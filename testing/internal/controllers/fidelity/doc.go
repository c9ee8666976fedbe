// Package fidelity has no code but tests. They compare what package controllers does with what a real
// kube-controller-manager does.
//
// A scenario is a small program that creates and changes objects, and says how Pods fare, for nothing runs them here.
// After each step it records all objects, masked: names that are generated, UIDs and times. What is recorded with a
// real control plane is kept in testdata, a file for each scenario. The usual test plays the scenarios with the
// stand-ins and compares; differences that are accepted are listed in the test with their reasons. Another test plays
// them with a real control plane and compares with the files:
//
//	go test ./testing/internal/controllers/fidelity -run StandIns
//	go test ./testing/internal/controllers/fidelity -run RealCluster          # needs a control plane
//	go test ./testing/internal/controllers/fidelity -run RealCluster -update  # writes the files
package fidelity

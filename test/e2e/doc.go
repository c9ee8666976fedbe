// Package e2e has tests of operators on a simulated cluster: the controllers of workloads and the scheduler are real,
// the nodes and what runs on them are played by kwok. "make e2e" runs them.
package e2e

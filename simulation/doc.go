// Package simulation runs whole operators in the test binary: a real Kubernetes API server over a storage in memory, a
// real manager of controller-runtime, and virtual time.
package simulation

// Package server runs a Kubernetes API server in process: the libraries k8s.io/apiserver and
// k8s.io/apiextensions-apiserver as they are published, over a given storage. There is no socket: a client reaches the
// server through [RoundTripper].
//
//   - groups.go and its neighbours serve the built-in kinds. The types are those of k8s.io/api, and what is special
//     about a kind is in package registry of the module espalier.
//   - definitions.go serves CustomResourceDefinitions and custom resources.
//   - admission.go and authorization.go say which requests are accepted.
//
// All of it works inside a bubble of testing/synctest.
package server

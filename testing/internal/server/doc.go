// Package server runs a Kubernetes API server in process: the libraries k8s.io/apiserver and
// k8s.io/apiextensions-apiserver as they are published, over a given storage. There is no socket: a client reaches the
// server through [RoundTripper].
//
//   - groups.go and its neighbours serve the built-in kinds that are generally available. The types are those of
//     k8s.io/api, and what is special about a kind is in package registry.
//   - definitions.go serves CustomResourceDefinitions and custom resources.
//   - admission.go and authorization.go say which requests are accepted.
//
// All of it works inside a bubble of testing/synctest. UIDs, and generated names of built-in kinds, are the same in
// each run; generated names of custom resources, and how long watches last, are random: package random seeds them.
//
// A server may also have worlds: each request then reads and writes a storage of its own choice, see worlds.go. All
// tests of a process share one such server. customresources.go serves what worlds define, stamps.go gives UIDs and
// times, worldadmission.go has the admission plug-ins. worldgive.go stores objects that no server would store, and
// worldkinds.go says what a world serves. Nothing runs between requests.
//
// In real time it can also serve OpenAPI documents, ask for credentials and call webhooks over the network, see package
// cluster.
//
// A kube-apiserver has more: limits of requests in flight, audit, logs and shells of Pods, disruption budgets of
// evictions, mutating admission policies, and the admission plug-ins that complete Pods, nodes and volumes.
package server

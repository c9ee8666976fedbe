// Package kubernetes judges what package registry says of the kinds of Kubernetes by what Kubernetes itself does to
// them.
//
// Its test draws objects, and changes of them, and has both complete and validate them; an object that only one accepts
// is a difference. What is drawn follows from -seed; -objects says how much, and -kind of which kind.
//
// It is a module of its own, because nobody who tests an operator shall require k8s.io/kubernetes.
package kubernetes

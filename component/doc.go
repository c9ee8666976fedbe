// Package component holds what the author of a component and the reconciler that deploys it agree on: how objects are
// generated, what a resource may say about where and how they are deployed, and which annotations an object may carry.
//
// Nothing in this package talks to a cluster.
package component

// Package registrytest has what a real API server makes of objects of the built-in kinds. Other API servers, and the
// strategies of package registry, are compared with it.
//
//   - A sample is an object that is created, see [Samples]. The answer is the object with all that the server set.
//   - A request is one that the server refuses for what is in the object, and some that it does not, see [Requests].
//   - Discovery says which resources there are, see [Discover].
//   - Traits are what a server does to all objects of a kind, whatever is in them, see [Traits].
//
// The answers in testdata are those of a real API server. Tests of package registry check that, and write them with the
// flag -update.
package registrytest

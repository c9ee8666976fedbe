// Package surface holds the promise of compatibility as a test that compiles: each name of the vocabulary that programs
// written for reconciler.io/runtime may use, with its type. A program that uses these names compiles after a change of
// its import paths.
//
// The package has no code of its own.
package surface

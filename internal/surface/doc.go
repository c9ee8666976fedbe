// Package surface tests the compatibility with reconciler.io/runtime at compile time. It uses each name, with its type,
// that programs written for reconciler.io/runtime may use. A program that uses only these names compiles after a change
// of its import paths.
//
// The package has no code of its own.
package surface

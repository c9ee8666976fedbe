// Package layers checks, in its tests, that the packages of the main module lie in layers: a package imports packages
// below it, never one beside or above it, and never one of another module of the repository. Packages also must not
// depend on what the table forbids.
package layers

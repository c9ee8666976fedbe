// Package large has benchmarks of an operator with very many resources. Its API server is a stub, which makes up what
// it lists, so a list of half a million objects takes no room in it.
package large

// Package storytelling has what the demos of the examples have in common: a story is told in steps on a real cluster,
// and each fact is checked as it is told. What the steps are is up to each demo.
package storytelling

// Package stories helps to tell stories of the operators of the examples. The folders below have the stories.
package stories

// Package generator has no annotations.
package generator

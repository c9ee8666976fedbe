// Package component has no annotations.
package component

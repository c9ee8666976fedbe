// Package reconcilers has no nodes.
package reconcilers

// Package component leaves out what there should be.
package component

const (
	// AnnotationComplete is complete.
	AnnotationComplete     = "complete"
	AnnotationUndocumented = "undocumented"
)

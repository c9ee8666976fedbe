// Package generator leaves out what there should be.
package generator

const (
	// AnnotationComplete is complete.
	AnnotationComplete     = "complete"
	AnnotationUndocumented = "undocumented"
)

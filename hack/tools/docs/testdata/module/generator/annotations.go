// Package generator names annotations.
package generator

import "github.com/espalier-dev/espalier/internal/marks"

// Single is no annotation, and in no group.
const Single = "single"

// Other constants.
const (
	Limit        = 1
	Computed     = "a" + "b"
	First, Other = "c", "d"
)

// Objects have annotations, see [Settings].
//
// # Order
//
// The lowest number comes first.
const (
	// AnnotationPolicy says what happens.
	//
	//   - keep: nothing.
	//   - two-words: something. This is long enough that it has to be broken in other places than where the comment was
	//     broken.
	//
	// Default: keep.
	//
	//	example.test/policy: two-words
	AnnotationPolicy = "policy"

	// AnnotationOrder is a number.
	//
	//   - any number
	//
	// Default: 0, or what
	// the component says.
	AnnotationOrder = "order"

	// Unrelated is none of them.
	Unrelated = "unrelated"
)

// These are written by the component.
const (
	// LabelOwner is the label with the owner.
	LabelOwner = "owner"
	// AnnotationOwner is the annotation with the owner.
	AnnotationOwner = marks.Owner
)

// Settings are what annotations ask for.
type Settings struct{}

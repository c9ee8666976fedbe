package reconcilers

import (
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// IgnoreAllUnexported makes go-cmp skip every struct field whose name does not start with an upper-case letter, at any
// depth.
var IgnoreAllUnexported cmp.Option = cmp.FilterPath(func(path cmp.Path) bool {
	field, ok := path.Last().(cmp.StructField)
	if !ok {
		return false
	}
	first, _ := utf8.DecodeRuneInString(field.Name())
	return !unicode.IsUpper(first)
}, cmp.Ignore())

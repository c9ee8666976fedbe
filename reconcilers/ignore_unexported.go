package reconcilers

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// IgnoreAllUnexported makes go-cmp skip every struct field whose name does not start with an upper-case letter, at any
// depth.
var IgnoreAllUnexported cmp.Option = cmp.FilterPath(func(path cmp.Path) bool {
	if len(path) == 0 {
		return false
	}
	// The text of a step to a field is a point and the name. To ask for the type of the step, or for Path.Last, would
	// have the linker keep all exported methods of the program: a third of its size.
	name, ok := strings.CutPrefix(path[len(path)-1].String(), ".")
	first, _ := utf8.DecodeRuneInString(name)
	return ok && (first == '_' || unicode.IsLetter(first)) && !unicode.IsUpper(first)
}, cmp.Ignore())

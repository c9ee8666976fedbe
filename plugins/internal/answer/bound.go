package answer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bound has the capabilities that a source may provide, in lower case: category/type, with * for each type.
type Bound []string

// ParseBound returns the capabilities of an entry, such as database/postgres,queue/*. It returns an error if there is
// none, so that a source without an entry may provide nothing.
func ParseBound(entry string) (Bound, error) {
	if entry == "" {
		return nil, errors.New("its entry does not say what it may provide, such as database/postgres")
	}
	var bound Bound
	for item := range strings.SplitSeq(entry, ",") {
		category, name, _ := strings.Cut(strings.TrimSpace(item), "/")
		if !isWord(category) || !isWord(name) && name != "*" {
			return nil, fmt.Errorf("its entry has %s: give a category and a type, such as database/postgres or queue/*",
				quote(item))
		}
		bound = append(bound, strings.ToLower(category+"/"+name))
	}
	return bound, nil
}

// Allows reports whether a source may provide a capability.
func (b Bound) Allows(category, name string) bool {
	category = strings.ToLower(category)
	return slices.Contains(b, category+"/"+strings.ToLower(name)) || slices.Contains(b, category+"/*")
}

// Of returns what a source may provide of what it claims, and the capabilities that it claims beyond. Definitions of
// kinds are for types, so without a type there are none.
func (b Bound) Of(claimed Provided) (allowed Provided, beyond []string) {
	allowed = Provided{Category: claimed.Category}
	for _, t := range claimed.Types {
		if b.Allows(claimed.Category, t.Name) {
			allowed.Types = append(allowed.Types, t)
		} else {
			beyond = append(beyond, strings.ToLower(claimed.Category+"/"+t.Name))
		}
	}
	if len(allowed.Types) > 0 {
		allowed.Definitions = claimed.Definitions
	}
	return allowed, beyond
}

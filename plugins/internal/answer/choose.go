package answer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Provides returns the type of that name, and the version that is asked for, as the plugin names them. An empty version
// stands for any.
func (p Provided) Provides(category, name, version string) (Type, string, bool) {
	if !strings.EqualFold(p.Category, category) {
		return Type{}, "", false
	}
	for _, t := range p.Types {
		if !strings.EqualFold(t.Name, name) {
			continue
		}
		if version == "" {
			return t, "", true
		}
		for _, known := range t.Versions {
			if strings.EqualFold(known, version) {
				return t, known, true
			}
		}
	}
	return Type{}, "", false
}

// compareVersions compares by the order of semantic versions. What is none is older than what is one.
func compareVersions(a, b string) int {
	left, leftErr := semver.NewVersion(a)
	right, rightErr := semver.NewVersion(b)
	switch {
	case leftErr == nil && rightErr == nil:
		return left.Compare(right)
	case leftErr == nil:
		return 1
	case rightErr == nil:
		return -1
	}
	return cmp.Compare(a, b)
}

// Sorted returns the versions without those that are given twice, the newest first.
func Sorted(versions []string) []string {
	sorted := slices.Clone(versions)
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(compareVersions(b, a), cmp.Compare(a, b))
	})
	return slices.Compact(sorted)
}

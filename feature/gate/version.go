package gate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Version returns a gate that is on if a version satisfies a constraint, such as ">= 1.4", ">= 1.4, < 3", "~2.1", "^2"
// or "1.x || >= 3.2". The version may have a leading v, and may leave out the last numbers. Constraints are those of
// github.com/Masterminds/semver/v3. An invalid version is an [ErrInvalid] of Enabled that names it, and so is an
// invalid or empty constraint.
//
// A pre-release counts as its release: 2.0.0-rc.1 satisfies what 2.0.0 satisfies. It has the features of 2.0.0, and of
// ">= 2.0" and "< 2.0" one is on. A suffix of a vendor, as in v1.33.2-eks-1b2c3d4, changes nothing for the same reason.
// If the constraint itself names a pre-release, as ">= 2.0.0-rc.2" does, all of it is compared by the order of semantic
// versions, in which 2.0.0-rc.1 is before 2.0.0-rc.2, and this before 2.0.0. Metadata of a build, after a plus sign,
// is never compared.
func Version(current, constraint string) Gate {
	version, err := semver.NewVersion(current)
	if err != nil {
		return failed{invalid{fmt.Errorf("version %q is invalid: %w", current, err)}}
	}
	accepted, err := parseConstraint(constraint)
	if err != nil {
		return failed{invalid{fmt.Errorf("version constraint %q is invalid: %w", constraint, err)}}
	}
	if namesPrerelease(constraint) {
		accepted.IncludePrerelease = true
	} else {
		version = semver.New(version.Major(), version.Minor(), version.Patch(), "", "")
	}
	return boolean(accepted.Check(version))
}

var errEmptyConstraint = errors.New("it is empty")

func parseConstraint(constraint string) (*semver.Constraints, error) {
	if strings.TrimSpace(constraint) == "" {
		return nil, errEmptyConstraint
	}
	return semver.NewConstraint(constraint)
}

// namesPrerelease reports whether a version of the constraint is a pre-release. A hyphen that stands alone is a range.
func namesPrerelease(constraint string) bool {
	separates := func(r rune) bool { return strings.ContainsRune(" \t\r\n,|", r) }
	for _, part := range strings.FieldsFunc(constraint, separates) {
		version, _, _ := strings.Cut(part, "+")
		if strings.Contains(version, "-") && version != "-" {
			return true
		}
	}
	return false
}

// failed is a gate of which it is not known whether it is on.
type failed struct {
	err error
}

func (f failed) Enabled() (bool, error) {
	return false, f.err
}

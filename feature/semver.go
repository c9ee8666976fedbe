package feature

import "github.com/Masterminds/semver/v3"

var _ = semver.NewVersion

package v1alpha1

import (
	"context"

	"github.com/espalier-dev/espalier/apis"
)

// The conditions of a platform, summed up by Ready.
const (
	// ReleaseFound reports whether there is such a release, with such features.
	ReleaseFound = "ReleaseFound"
	// Installed reports whether the objects of the release are installed, and what prevents that.
	Installed = "Installed"
)

// SearchReady reports how the search is. Ready does not depend on it.
const SearchReady = "SearchReady"

var conditions = apis.NewLivingConditionSet(ReleaseFound, Installed)

// PlatformStatus says how a platform is: as a component, with a record of each of its objects, and with a record of its
// feature.
type PlatformStatus struct {
	apis.ComponentStatus `json:",inline"`
	apis.LifecycleStatus `json:",inline"`
}

// InitializeConditions adds the conditions that are missing.
func (s *PlatformStatus) InitializeConditions(ctx context.Context) {
	s.Manage(ctx).InitializeConditions()
}

// Manage returns the manager of the conditions for one request.
func (s *PlatformStatus) Manage(ctx context.Context) apis.ConditionManager {
	return conditions.ManageWithContext(ctx, s)
}

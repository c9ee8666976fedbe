package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// The releases of the platform.
const (
	// Version1 has all features.
	Version1 = "1.0"
	// Version11 has no portal any more.
	Version11 = "1.1"
	// Version2 leaves dashboards to others, too: it does not bring their type.
	Version2 = "2.0"
)

// releases are the features that each has.
var releases = map[string][]v1alpha1.Feature{
	Version1:  {v1alpha1.Dashboards, v1alpha1.Portal},
	Version11: {v1alpha1.Dashboards},
	Version2:  {},
}

// featuresOf returns the features that a platform is to have, or what it cannot have.
func featuresOf(spec *v1alpha1.PlatformSpec) (sets.Set[v1alpha1.Feature], error) {
	has, ok := releases[spec.Version]
	if !ok {
		versions := slices.Sorted(maps.Keys(releases))
		return nil, fmt.Errorf("there is no release %q; there are %s", spec.Version, strings.Join(versions, ", "))
	}
	if len(spec.Features) == 0 {
		return sets.New(has...), nil
	}
	for _, feature := range spec.Features {
		if !slices.Contains(has, feature) {
			return nil, fmt.Errorf("release %s has no feature %s", spec.Version, feature)
		}
	}
	return sets.New(spec.Features...), nil
}

// Release finds out whether there is such a release. If not, nothing of the platform is changed until a user corrects
// the spec. A platform that is being deleted needs no release.
func Release() reconcilers.SubReconciler[*v1alpha1.Platform] {
	return &reconcilers.SyncReconciler[*v1alpha1.Platform]{
		Name: "Release",
		Sync: func(ctx context.Context, platform *v1alpha1.Platform) error {
			conditions := platform.Status.Manage(ctx)
			if _, err := featuresOf(&platform.Spec); err != nil {
				conditions.MarkFalse(v1alpha1.ReleaseFound, "NotFound", "%s", err)
				return reconcilers.ErrDurable
			}
			conditions.MarkTrue(v1alpha1.ReleaseFound, "Found", "")
			return nil
		},
	}
}

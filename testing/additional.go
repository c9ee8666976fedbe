package testing

import (
	"context"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/reconcilers"
)

// additional are the configs of a case beside its own, by name. What is built of them is what is asserted.
type additional map[string]*ExpectConfig

// additionalOf completes the additional configs of a case by what they share with it.
func additionalOf(configs map[string]ExpectConfig, scheme *runtime.Scheme, differ Differ) additional {
	made := additional{}
	for name, config := range configs {
		config.Name = name
		config.parts = nil
		if config.Scheme == nil {
			config.Scheme = scheme
		}
		if config.Differ == nil {
			config.Differ = differ
		}
		made[name] = &config
	}
	return made
}

func (a additional) stash(ctx context.Context) context.Context {
	configs := make(map[string]reconcilers.Config, len(a))
	for name, config := range a {
		configs[name] = config.Config()
	}
	return reconcilers.StashAdditionalConfigs(ctx, configs)
}

func (a additional) configs() []*ExpectConfig {
	return slices.Collect(maps.Values(a))
}

func (a additional) assert(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		a[name].AssertExpectations(t)
	}
}

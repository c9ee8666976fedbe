package server

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/admission"
)

// latePlugin is an admission plug-in that is made when it is wanted for the first time: those that compile expressions
// take milliseconds to be made.
type latePlugin struct {
	name   string
	wanted func() bool
	create func() (admission.Interface, error)

	made func() (admission.Interface, error)
}

var (
	_ admission.MutationInterface   = &latePlugin{}
	_ admission.ValidationInterface = &latePlugin{}
)

// init says how the plug-in is initialized when it is made.
func (p *latePlugin) init(initializers admission.PluginInitializers) *latePlugin {
	p.made = sync.OnceValues(func() (admission.Interface, error) {
		plugin, err := p.create()
		if err != nil {
			return nil, fmt.Errorf("make admission plug-in %s: %w", p.name, err)
		}
		initializers.Initialize(plugin)
		if err := admission.ValidateInitialization(plugin); err != nil {
			return nil, fmt.Errorf("initialize admission plug-in %s: %w", p.name, err)
		}
		return plugin, nil
	})
	return p
}

// Handles implements [admission.Interface].
func (p *latePlugin) Handles(admission.Operation) bool { return p.wanted() }

// Admit implements [admission.MutationInterface].
func (p *latePlugin) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := p.made()
	if mutator, ok := plugin.(admission.MutationInterface); ok && plugin.Handles(a.GetOperation()) {
		return mutator.Admit(ctx, a, o)
	}
	return err
}

// Validate implements [admission.ValidationInterface].
func (p *latePlugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := p.made()
	if validator, ok := plugin.(admission.ValidationInterface); ok && plugin.Handles(a.GetOperation()) {
		return validator.Validate(ctx, a, o)
	}
	return err
}

package plugins

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Asker asks a plugin with nothing remembered, as a host does.
type Asker struct {
	caller  caller
	request *protocol.DependentsRequest
}

// NewAsker returns who asks the plugin for a capability of an owner. The host runs.
func NewAsker(host *Host, category, typ string, owner Owner) (*Asker, error) {
	host.init()
	plugin, err := host.registry.find(category, typ, "")
	if err != nil {
		return nil, err
	}
	return &Asker{caller: plugin.caller, request: &protocol.DependentsRequest{
		Type: plugin.typ, Version: plugin.version, Owner: &protocol.Owner{
			ApiVersion: owner.APIVersion, Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name,
			Spec: owner.Spec,
		},
	}}, nil
}

// Ask asks once, and returns how many dependents there are.
func (a *Asker) Ask(ctx context.Context) (int, error) {
	response, err := a.caller.Dependents(ctx, a.request)
	return len(response.GetDependents().GetItems()), err
}

// Remember asks once, and returns what a host remembers of the answer.
func (a *Asker) Remember(ctx context.Context, creates ...schema.GroupVersionKind) (any, error) {
	response, err := a.caller.Dependents(ctx, a.request)
	if err != nil {
		return nil, err
	}
	return answer.Check(response.GetDependents().GetItems(), answer.Rules{
		Namespace: a.request.GetOwner().GetNamespace(), Creates: creates, MaxDependents: 100,
	})
}

// Floor makes the smallest call that there is, which asks what the plugin provides. It is for a plugin in another
// process.
func (a *Asker) Floor(ctx context.Context) error {
	r, is := a.caller.(*remote)
	if !is {
		return fmt.Errorf("the plugin is a %T, want one in another process", a.caller)
	}
	_, err := r.client.Describe(ctx, &protocol.DescribeRequest{})
	return err
}

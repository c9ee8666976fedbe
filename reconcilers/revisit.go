package reconcilers

import (
	"context"

	"github.com/espalier-dev/espalier/stash"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Visit returns what a node needs outside of a request: a context of its place in the tree, and the resource, read
// anew past the cache and with its defaults.
type Visit func(ctx context.Context) (context.Context, client.Object, error)

// Revisit returns how the node of ctx can be visited after the request, with the configs of this request. Nothing that
// nodes before it have stored or changed is there then. It returns nil in a webhook, for an item of a [ForEach], and
// below a [CastResource], where the resource is not what the node sees. What it returns keeps nothing of the request
// alive.
func Revisit(ctx context.Context) Visit {
	of := *contextOf(ctx)
	if !of.hasOriginalConfig || of.originalResourceType == nil || of.item != nil || of.casts != nil ||
		of.admissionRequest != nil {
		return nil
	}
	place := treeContext{
		request: of.request,
		config:  of.config, hasConfig: of.hasConfig, comparable: of.comparable,
		originalConfig: of.originalConfig, hasOriginalConfig: true, additionalConfigs: of.additionalConfigs,
		resourceType: of.resourceType, originalResourceType: of.originalResourceType,
	}
	path := RetrievePath(ctx)
	return func(ctx context.Context) (_ context.Context, _ client.Object, err error) {
		visited := place
		visited.Context = stash.WithContext(ctx)
		ctx = Enter(&visited, path)
		defer Recover(ctx, &err)
		resource := copyOf(visited.originalResourceType)
		// The cache may not have what this request is about to write.
		reader := client.Reader(visited.originalConfig)
		if past := visited.originalConfig.APIReader; past != nil {
			reader = past
		}
		if err := reader.Get(ctx, visited.request.NamespacedName, resource); err != nil {
			return ctx, nil, err
		}
		return ctx, resource, applyDefaults(ctx, resource)
	}
}

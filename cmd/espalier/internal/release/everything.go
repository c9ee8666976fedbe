package release

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects are listed with one request.
const pageSize = 500

// Everything returns the metadata of the objects of all kinds that options select. unseen says which kinds could not be
// listed.
func (c *Cluster) Everything(
	ctx context.Context, opts ...client.ListOption,
) (found []metav1.PartialObjectMetadata, unseen []error, err error) {
	asks := discovery.ToDiscoveryInterfaceWithContext(c.discovery)
	lists, err := discovery.ServerPreferredResourcesWithContext(ctx, asks)
	if len(lists) == 0 && err != nil {
		return nil, nil, fmt.Errorf("unable to find out which kinds the cluster serves: %w", err)
	}
	if err != nil {
		unseen = append(unseen, err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, err
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			of, err := c.listAll(ctx, version.WithKind(resource.Kind), opts)
			switch {
			case ctx.Err() != nil:
				return nil, nil, context.Cause(ctx)
			case err == nil, apierrs.IsNotFound(err), apierrs.IsMethodNotSupported(err), meta.IsNoMatchError(err):
			default:
				unseen = append(unseen, fmt.Errorf("each %s: %w", resource.Kind, err))
			}
			found = append(found, of...)
		}
	}
	return found, unseen, nil
}

func (c *Cluster) listAll(
	ctx context.Context, kind schema.GroupVersionKind, opts []client.ListOption,
) (found []metav1.PartialObjectMetadata, err error) {
	for token := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.Client.List(ctx, list, append(opts, client.Limit(pageSize), client.Continue(token))...)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
		}
		found = append(found, list.Items...)
		if token = list.Continue; token == "" {
			return found, nil
		}
	}
}

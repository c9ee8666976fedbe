package recording

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Read is a read of one object.
type Read struct {
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
	// Missed reports that there was no such object.
	Missed bool
}

// recordRead remembers a read by its error. It forgets a read that failed for another reason than a missing object.
func (c *Client) recordRead(resource schema.GroupVersionResource, key client.ObjectKey, err error) {
	if client.IgnoreNotFound(err) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := resource.GroupVersion().WithKind(resource.Resource)
	c.reads = append(c.reads, Read{Kind: kind, Key: key, Missed: apierrors.IsNotFound(err)})
}

// Reads returns the reads of single objects that the server has answered, in their order.
func (c *Client) Reads() []Read {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reads)
}

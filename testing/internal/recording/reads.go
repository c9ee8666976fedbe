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

// Offered returns the calls that were offered to the reactors, by verb and kind, each once and in order, and whether a
// reactor made one fail.
func (c *Client) Offered() (calls []string, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls = slices.Clone(c.offered)
	slices.Sort(calls)
	return slices.Compact(calls), c.failing
}

// Reads returns the reads of single objects that the server has answered, in their order.
func (c *Client) Reads() []Read {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reads)
}

package store

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is what is answered to a list.
type page struct {
	records   []*record
	version   string
	next      string
	remaining *int64
}

// position is where the next page of a list starts. Revision is that of the first page.
type position struct {
	Revision        int64
	Namespace, Name string
}

func (p position) token() string {
	text, _ := json.Marshal(p) // Its fields can be encoded.
	return base64.RawURLEncoding.EncodeToString(text)
}

func parsePosition(token string) (position, error) {
	var p position
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return p, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
	}
	return p, nil
}

// page returns what a list sees.
func (c *memoryClient) page(
	gvk schema.GroupVersionKind, options *client.ListOptions, newItem func() client.Object,
) (page, error) {
	if c.options.View != nil && options.Continue != "" {
		return page{}, errContinueFromCache
	}
	seen, err := c.snapshot(gvk)
	if err != nil {
		return page{}, err
	}
	var from position
	if options.Continue != "" {
		if from, err = parsePosition(options.Continue); err != nil {
			return page{}, err
		}
		seen = c.snapshotAt(seen, gvk, from.Revision)
	} else if seen, err = c.exactly(seen, gvk, options.Raw); err != nil {
		return page{}, err
	}
	selects, err := seen.resource.selector(options)
	if c.options.View != nil || c.indexes.indexed(gvk.GroupKind(), options.FieldSelector) {
		selects, err = c.cacheSelector(seen.resource, options, newItem)
	}
	if err != nil {
		return page{}, err
	}
	records := seen.table.in(seen.resource.namespace(options.Namespace)).from(from.Namespace, from.Name)
	selected := slices.DeleteFunc(slices.Clone(records), func(r *record) bool {
		return seen.hides(r) || !selects(r)
	})
	return seen.cut(selected, options), nil
}

// exactly returns what is seen at the resource version that the options ask for, if they ask for exactly one.
func (c *memoryClient) exactly(seen snapshot, gvk schema.GroupVersionKind, raw *metav1.ListOptions) (snapshot, error) {
	if raw == nil || raw.ResourceVersionMatch != metav1.ResourceVersionMatchExact || c.options.View != nil {
		return seen, nil
	}
	revision, err := parseVersion(raw.ResourceVersion)
	if err != nil {
		return seen, err
	}
	return c.snapshotAt(seen, gvk, revision), nil
}

// snapshotAt returns what is seen as of an earlier revision.
func (c *memoryClient) snapshotAt(seen snapshot, gvk schema.GroupVersionKind, revision int64) snapshot {
	c.store.mu.RLock()
	defer c.store.mu.RUnlock()
	seen.table, seen.revision = c.store.state.at(gvk.GroupKind(), revision), revision
	return seen
}

// cut returns the page that a limit allows. A cache has no pages and no versions of lists.
func (s snapshot) cut(selected []*record, options *client.ListOptions) page {
	limit := len(selected)
	if options.Limit > 0 {
		limit = min(limit, int(options.Limit))
	}
	rest := selected[limit:]
	found := page{records: selected[:limit], version: strconv.FormatInt(s.revision, 10)}
	switch {
	case s.view != nil:
		found.version, found.next = "", "continue-not-supported"
	case len(rest) > 0:
		found.next = position{s.revision, rest[0].namespace, rest[0].name}.token()
		if selectsAll(options) {
			found.remaining = new(int64(len(rest)))
		}
	}
	return found
}

// selectsAll reports whether options have no selector: only then an API server knows how many objects remain.
func selectsAll(options *client.ListOptions) bool {
	return (options.LabelSelector == nil || options.LabelSelector.Empty()) &&
		(options.FieldSelector == nil || options.FieldSelector.Empty())
}

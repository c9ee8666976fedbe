package reconcilers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/shard"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// filteredByShard reports whether the cache has those children alone that are the shard's.
func (k *children[T, CT, CLT]) filteredByShard(config Config) bool {
	filters, _ := shard.Filters(config.shard, k.indexed.Kind)
	return filters && !k.unowned
}

// shown is list, outside of a request that keeps lists. It returns an error if the cache may not show some children.
func (k *children[T, CT, CLT]) shown(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	if k.filteredByShard(config) {
		return nil, k.errorf("cannot tell which %s the cache of the shard does not show: the client of the config has "+
			"to be a pointer, or of another type that can be compared", typeName(k.childType))
	}
	return k.list(ctx, config, resource)
}

// hiddenRevisit is after how long a resource with a hidden child is reconciled again, because no event of the child
// arrives.
const hiddenRevisit = 30 * time.Second

// hidden returns the objects that are among the candidates, but not among those that are shown, as the API server has
// had them at some time after since.
func (k *children[T, CT, CLT]) hidden(
	ctx context.Context, config Config, resource T, shown []client.Object, since time.Time,
) ([]client.Object, error) {
	if config.APIReader == nil {
		return nil, k.errorf("needs the APIReader of a config with a shard")
	}
	namespace := resource.GetNamespace()
	take := func() (shard.Snapshot, error) { return takeSnapshot(ctx, config, k.indexed, namespace) }
	all, err := shard.SnapshotSince(ctx, config.shard, k.indexed.Kind, namespace, since, take)
	if err != nil {
		return nil, k.errorf("is unable to list the %s that the cache of the shard may not show: %w",
			typeName(k.childType), err)
	}
	isShown := map[types.UID]bool{}
	for _, obj := range shown {
		isShown[obj.GetUID()] = true
	}
	var hidden []client.Object
	for uid, name := range all[resource.GetUID()] {
		if isShown[uid] {
			continue
		}
		obj := copyOf(k.childType)
		if err := config.APIReader.Get(ctx, name, obj); apierrs.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, k.errorf("is unable to read %s %s, which the cache of the shard does not show: %w",
				typeName(k.childType), name, err)
		}
		if obj.GetUID() == uid && k.selects(ctx, resource, obj) {
			hidden = append(hidden, obj)
		}
	}
	return hidden, nil
}

// selects reports whether an object that the resource controls is among the candidates, by the list options of the
// author.
func (k *children[T, CT, CLT]) selects(ctx context.Context, resource T, obj CT) bool {
	if !k.mayBeOwn(resource, obj) && k.listOptions != nil {
		return false
	}
	if k.listOptions == nil {
		return metav1.IsControlledBy(obj, resource)
	}
	selector := (&client.ListOptions{}).ApplyOptions(k.listOptions(ctx, resource)).LabelSelector
	return selector == nil || selector.Matches(labels.Set(obj.GetLabels()))
}

// snapshotPage is how many objects are listed with one request.
const snapshotPage = 1000

// takeSnapshot lists the metadata of all objects of a type in a namespace past the cache.
func takeSnapshot(ctx context.Context, config Config, of listing.Type, namespace string) (shard.Snapshot, error) {
	taken := shard.Snapshot{}
	page := &metav1.PartialObjectMetadataList{}
	for {
		page.SetGroupVersionKind(of.Kind.GroupVersion().WithKind(of.Kind.Kind + "List"))
		err := config.APIReader.List(ctx, page, client.InNamespace(namespace), client.Limit(snapshotPage),
			client.Continue(page.Continue))
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			owner := metav1.GetControllerOfNoCopy(item)
			if owner == nil {
				continue
			}
			if taken[owner.UID] == nil {
				taken[owner.UID] = shard.Owned{}
			}
			taken[owner.UID][item.UID] = client.ObjectKeyFromObject(item)
		}
		if page.Continue == "" {
			return taken, nil
		}
		page = &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: page.Continue}}
	}
}

// confirmAbsent returns a quiet error if a child that is about to be created may be there already: the next request
// finds what the cache does not show.
func (k *children[T, CT, CLT]) confirmAbsent(
	ctx context.Context, config Config, resource T, actual, desired CT,
) error {
	if !isAbsent(actual) || gotype.IsNil(desired) {
		return nil
	}
	known, request, key := k.existing(ctx, config, false), listKeeper(ctx), k.listKey(ctx, config)
	if known == nil || !known.ofShard || request.wasAsked(key) {
		return nil
	}
	shown, _ := request.lists.Get(key)
	hidden, err := k.hidden(ctx, config, resource, shown, time.Now())
	if err != nil {
		return err
	}
	known.answered(slices.Concat(shown, hidden))
	if len(hidden) > 0 {
		// What other nodes have found in this request lacks it, too. So they have to ask as well.
		return k.errorf("has found %s, which the cache of the shard does not show: %w",
			describeObject(hidden[0]), ErrQuiet)
	}
	request.noteAsked(key)
	return nil
}

// shardReads reads past a cache that has the objects of the shard alone.
type shardReads struct {
	client.Client
	live  client.Reader
	shard *shard.Shard
	// past is true if the cache is never asked. Else a child that the cache does not show is asked for.
	past bool
}

var _ client.WithWatch = (*shardReads)(nil)

// Get implements [client.Reader].
func (r *shardReads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	filters, main := shard.Filters(r.shard, kindOf(r.Client, obj))
	if filters && r.past && r.live != nil {
		return r.live.Get(ctx, key, obj, opts...)
	}
	err := r.Client.Get(ctx, key, obj, opts...)
	if filters && !main && apierrs.IsNotFound(err) && r.live != nil {
		return r.live.Get(ctx, key, obj, opts...)
	}
	return err
}

// List implements [client.Reader].
func (r *shardReads) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind, _ := r.GroupVersionKindFor(list)
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	if filters, _ := shard.Filters(r.shard, kind); filters && r.past && r.live != nil {
		return r.live.List(ctx, list, opts...)
	}
	return r.Client.List(ctx, list, opts...)
}

// Watch implements [client.WithWatch].
func (r *shardReads) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	watcher, ok := r.Client.(client.WithWatch)
	if !ok {
		return nil, errors.New("the client of the config cannot watch")
	}
	return watcher.Watch(ctx, list, opts...)
}

// unfiltered returns a copy of c that reads past a cache which has the objects of the shard alone, also if c lacks the
// shard of its manager.
func (c Config) unfiltered() Config {
	s := c.shard
	if s == nil {
		s = shard.Of(c.cluster)
	}
	if s != nil && c.Client != nil {
		// The author may have wrapped the client.
		c.Client = &shardReads{Client: c.Client, live: c.APIReader, shard: s, past: true}
		c.own = c.Client
	}
	c.shard = nil
	return c
}

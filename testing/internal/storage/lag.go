package storage

import (
	"context"
	"strings"

	"k8s.io/apiserver/pkg/storage"
)

// Lag is how far a reader is behind.
type Lag struct {
	// Revisions are those at which resources are read, by the prefix of their keys, such as "/configmaps" or
	// "/apps/deployments". A revision before the first that is kept stands for that one, and one in the future for now.
	Revisions map[string]int64
	// Hidden are keys that hold nothing for the reader, such as "/configmaps/default/a".
	Hidden map[string]bool
}

type lagKey struct{}

// Behind has gets and lists with the returned context read the past. A list of an exact resource version reads that
// one. It is for requests that only read: what a deletion reads would lag, too.
func Behind(ctx context.Context, lag Lag) context.Context {
	return context.WithValue(ctx, lagKey{}, &lag)
}

// lagOf returns nil if a context has none.
func lagOf(ctx context.Context) *Lag {
	lag, _ := ctx.Value(lagKey{}).(*Lag)
	return lag
}

// of returns the revision at which a resource is read.
func (l *Lag) of(prefix string, h *history) int64 {
	if l == nil {
		return h.revision
	}
	revision, ok := l.Revisions[prefix]
	if !ok {
		return h.revision
	}
	return min(max(revision, h.compacted, 1), h.revision)
}

// Seen returns what a reader with a context sees of a resource, of which the keys begin with a prefix: what a key
// holds, or, if the key ends with "/", what is below it, in the order of the keys.
func (s *Storage) Seen(ctx context.Context, prefix, key string) []*Entry {
	reader, h := &store{storage: s, prefix: prefix, lag: lagOf(ctx)}, s.current.Load()
	if strings.HasSuffix(key, "/") {
		return reader.list(h, reader.lag.of(prefix, h), span{key: key, prefix: true}, "")
	}
	if e := reader.get(h, key); e != nil {
		return []*Entry{e}
	}
	return nil
}

// get returns what a reader sees of a key, nil if nothing.
func (s *store) get(h *history, key string) *Entry {
	if s.lag == nil {
		return h.get(key)
	}
	if s.lag.Hidden[key] {
		return nil
	}
	earlier := h.earlier(s.lag.of(s.prefix, h), span{key: key})
	if e, ok := earlier[key]; ok {
		return e
	}
	return h.get(key)
}

// list returns what a reader sees in a span at a revision.
func (s *store) list(h *history, revision int64, in span, start string) []*Entry {
	all := h.list(revision, in, start)
	if s.lag == nil || len(s.lag.Hidden) == 0 {
		return all
	}
	var seen []*Entry
	for _, e := range all {
		if !s.lag.Hidden[e.Key] {
			seen = append(seen, e)
		}
	}
	return seen
}

// readAt returns the revision of a list, and an error if it cannot be read. Exact is 0 if the client asks for none.
func (s *store) readAt(h *history, exact int64, opts storage.ListOptions, start, key string) (int64, error) {
	if exact == 0 {
		return s.lag.of(s.prefix, h), notOlderThan(opts.ResourceVersion, h)
	}
	if err := h.readable(exact); err != nil {
		return 0, listError(err, h, exact, start, key)
	}
	return exact, nil
}

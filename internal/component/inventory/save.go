package inventory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/apis"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parallel is how many chunks are written at the same time.
const parallel = 4

// mend puts right what a save has left behind that was broken off. It comes before anything else, so that a record which
// leaves its chunk cannot come back from another one.
func (s *Objects) mend(ctx context.Context) error {
	if len(s.stale) == 0 && slices.Equal(s.listed, s.chunks()) {
		return nil
	}
	return s.write(ctx, s.layout, maps.Clone(s.stale))
}

// write stores a layout, of which these chunks have changed. If that fails, what is stored is not known any more.
func (s *Objects) write(ctx context.Context, next layout, changed map[int]bool) error {
	s.generation++
	draft, err := drafter{
		stored: s.chunks(), listed: s.listed, limit: s.options.MaxChunk, encode: s.encode,
	}.draft(next, changed)
	if err != nil {
		return err
	}
	s.known = false
	if _, ok := s.metas[root]; !ok && len(draft.payloads) > 1 {
		// The root comes first, or its loss could not be told from a first save that was broken off.
		if err := s.seed(ctx); err != nil {
			return err
		}
	}
	for _, wave := range draft.waves() {
		if err := s.putAll(ctx, wave, draft.payloads); err != nil {
			return err
		}
	}
	s.known = true
	s.layout, s.listed, s.stale = draft.layout, draft.chunks, nil
	return nil
}

// encode makes a chunk.
func (s *Objects) encode(chunk int, chunks []int, records []*apis.InventoryRecord) ([]byte, error) {
	head := header{Owner: s.options.OwnerUID, Chunk: chunk, Generation: s.generation}
	if chunk == root {
		head.Chunks = chunks
	}
	return encode(head, records)
}

// seed stores a root without records, which lists no other chunk.
func (s *Objects) seed(ctx context.Context) error {
	payload, err := s.encode(root, []int{root}, nil)
	if err != nil {
		return err
	}
	return s.putAll(ctx, []int{root}, map[int][]byte{root: payload})
}

// putAll writes chunks at the same time. One that fails does not keep the others from being tried.
func (s *Objects) putAll(ctx context.Context, chunks []int, payloads map[int][]byte) error {
	var mu sync.Mutex
	return each(chunks, func(chunk int) error {
		mu.Lock()
		known, ok := s.metas[chunk]
		mu.Unlock()
		pointer := &known
		if !ok {
			pointer = nil
		}
		meta, err := s.options.put(ctx, chunk, pointer, payloads[chunk])
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if s.metas == nil {
			s.metas = map[int]metav1.ObjectMeta{}
		}
		s.metas[chunk] = meta
		return nil
	})
}

// each does something with all chunks, some at the same time, and returns the errors in the order of chunks.
func each(chunks []int, do func(chunk int) error) error {
	errs := make([]error, len(chunks))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, chunk := range chunks {
		group.Go(func() error {
			errs[i] = do(chunk)
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// Remove implements [Store].
func (s *Objects) Remove(ctx context.Context) error {
	// Whatever is left of it after an error is read anew.
	defer func() { s.known = false }()
	if _, err := s.Load(ctx); err != nil {
		return err
	}
	if n := len(s.layout.records); n > 0 {
		return stillThere(n)
	}
	chunks := s.chunks()
	if len(chunks) == 0 {
		return nil
	}
	if !slices.Equal(s.listed, []int{root}) {
		// The root may not list the others when they go, and has to go last: what is left then is a whole inventory at any time.
		s.generation++
		if err := s.seed(ctx); err != nil {
			return err
		}
	}
	others := slices.DeleteFunc(chunks, func(chunk int) bool { return chunk == root })
	if err := each(others, func(chunk int) error { return s.options.drop(ctx, chunk, s.metas[chunk]) }); err != nil {
		return err
	}
	return s.options.drop(ctx, root, s.metas[root])
}

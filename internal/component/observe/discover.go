package observe

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/internal/component/served"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// probes is how often the API server is asked for a type that may just have been brought, which takes a moment to show. The first
	// delay is probeFirst, and each is twice the one before.
	probes     = 6
	probeFirst = 100 * time.Millisecond
)

// await waits until the type is served. It returns false if ctx is done before.
func (w *Watching) await(ctx context.Context, k *kind) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-k.kick:
		}
		delay := probeFirst
		for range probes {
			if w.placed(k) {
				return true
			}
			if found, served, err := w.locate(ctx, k.GroupKind, true); err == nil && served {
				w.appeared(k, found)
				return true
			}
			if !sleep(ctx, delay) {
				return false
			}
			delay *= 2
		}
	}
}

// placed tells whether it is known where a type is served.
func (w *Watching) placed(k *kind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !k.resource.Empty()
}

// appeared takes in that a type that was not served is.
func (w *Watching) appeared(k *kind, found schema.GroupVersionResource) {
	w.locked(func(b *bell) {
		if k.phase != missing {
			return
		}
		k.phase, k.resource = starting, found
		k.tellUsers(b)
	})
}

// resolve asks whether a type is served, and starts to watch it if so. The error is that of ctx.
func (w *Watching) resolve(ctx context.Context, k *kind) error {
	w.mu.Lock()
	before := k.phase
	w.mu.Unlock()
	found, served, err := w.locate(ctx, k.GroupKind, before == missing)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if before == missing && (err != nil || !served) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case k.phase != unresolved && k.phase != missing:
		return nil
	case err != nil:
		k.phase, k.reason = polled, diagnose(err).watching("listed")
	case !served:
		w.miss(k)
	default:
		k.phase, k.resource = starting, found
		if before == missing {
			k.poke()
		}
	}
	w.start(k)
	return nil
}

// locate finds where a type is served. The mapper is asked first, unless it is doubted, and believed if it knows: that it does not
// know may also mean that an API did not answer it. So then the API server is asked about the group.
func (w *Watching) locate(ctx context.Context, gk schema.GroupKind, doubted bool) (at schema.GroupVersionResource, ok bool, err error) {
	if !doubted {
		mapping, err := w.options.Mapper.RESTMapping(gk)
		if err == nil {
			return mapping.Resource, true, nil
		}
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	at, ok, err = served.Discover(limited, w.discovery, gk)
	if ok && doubted {
		if _, err := w.options.Mapper.RESTMapping(gk); err != nil {
			meta.MaybeResetRESTMapper(w.options.Mapper)
		}
	}
	return at, ok, err
}

package server

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// World is what a request to a server with [Options].Worlds reads and writes. Nothing happens in it between requests:
// events do not expire after an hour, as they do in a cluster, because what deletes them would belong to a bubble and
// would outlive a test.
type World struct {
	// Storage is a fork of that of the server, or another one that has the same namespaces. A fork that is used in a
	// bubble is made there.
	Storage *storage.Storage
	// Types returns the kind of a resource that has no definition and is no built-in one, such as that of a Go type.
	// Nil, and false, say that there is none.
	Types func(resource schema.GroupResource) (registry.Type, bool)
	// Kinds returns the same by the name of the kind, nil if there is none. It is for [World.Give] and [World.Kind];
	// requests need Types.
	Kinds func(kind schema.GroupKind) *Kind
	// Repeats says that a write may be answered without a request, as it was in another world with the same history.
	// All worlds that say so and have forks of one storage have the same Types and Kinds.
	Repeats bool
}

type typesKey struct{}

// In has the requests with the returned context read and write the world.
func (w World) In(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, typesKey{}, w.Types)
	if w.Repeats {
		ctx = context.WithValue(ctx, repeatsKey{}, true)
	}
	return storage.With(ctx, w.Storage)
}

// typeOf returns the kind of a resource in the world of a context.
func typeOf(ctx context.Context, resource schema.GroupResource) (registry.Type, bool) {
	types, _ := ctx.Value(typesKey{}).(func(schema.GroupResource) (registry.Type, bool))
	if types == nil {
		return registry.Type{}, false
	}
	return types(resource)
}

// timeIn returns what time it is in a storage.
func timeIn(kept *storage.Storage) metav1.Time {
	if kept == nil || kept.Clock() == nil {
		return metav1.Now()
	}
	return metav1.NewTime(kept.Clock()().Truncate(time.Second))
}

// timeOf returns what time it is for a request.
func timeOf(ctx context.Context) metav1.Time { return timeIn(storage.Of(ctx, nil)) }

// Shared returns the server whose worlds all tests of this process share. Its worlds begin with the namespaces of each
// cluster, and their first write has the resource version 1000. It is started when it is first asked for, and never
// stopped. Requests are made by its [Server.Transport] and leave no goroutine behind; nor does the start.
func Shared() (*Server, error) { return shared() }

var shared = sync.OnceValues(startShared)

func startShared() (s *Server, err error) {
	// Channels that the server makes in a bubble could not be used outside of it.
	outsideBubbles(func() {
		base := storage.New(storage.Options{Revision: 999, Retention: -1, BookmarkInterval: -1, Now: beginning})
		var namespaces []client.Object
		for _, name := range initialNamespaces {
			namespaces = append(namespaces, namespace(name))
		}
		if err = (World{Storage: base}).Give(published(), namespaces...); err == nil {
			s, err = Start(context.Background(), Options{Worlds: base})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("start the API server that tests share: %w", err)
	}
	return s, nil
}

// beginning is the clock of what the shared server has from the start. It is that of a bubble that has just begun.
func beginning() time.Time { return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) }

// outsideBubbles calls f in a goroutine that is in no bubble, and waits until it returns. [runtime.AddCleanup] is how a
// goroutine gets out of a bubble. A goroutine that waits for such calls would be one that tests leave behind.
func outsideBubbles(f func()) {
	var done sync.Mutex // To wait for a channel would let the time of the bubble pass.
	var begun atomic.Bool
	done.Lock()
	addCleanup(func() {
		begun.Store(true)
		go func() {
			defer done.Unlock()
			f()
		}()
	})
	for !begun.Load() {
		runtime.GC()
	}
	done.Lock()
}

// addCleanup has the next garbage collection call f.
//
//go:noinline
func addCleanup(f func()) {
	runtime.AddCleanup(&struct{ _ [4]*int }{}, func(call func()) { call() }, f)
}

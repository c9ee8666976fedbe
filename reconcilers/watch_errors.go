package reconcilers

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
)

// WatchErrors tells observers of types that cannot be listed or watched. Meanwhile the program sees no change of any
// object of such a type, and makes no request for one: a single object that the Go type cannot decode is enough. Its
// method Handle is for the cache of the manager, because the informer of a type that runs takes no other handler:
//
//	failures := &reconcilers.WatchErrors{}
//	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
//		Cache: cache.Options{DefaultWatchErrorHandler: failures.Handle},
//	})
//	...
//	failures.Tell(counts, trees)
//
// The zero value is ready for use.
type WatchErrors struct {
	observers atomic.Pointer[observerList]
}

// Tell has the observers told of errors from now on, as the fact [WatchFailed], and no others.
func (w *WatchErrors) Tell(observers ...Observer) {
	w.observers.Store(Config{}.WithObserver(observers...).observers)
}

// Handle logs the error of an informer as client-go does, and tells the observers. The end of a watch that the API
// server ends is no error.
func (w *WatchErrors) Handle(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) ||
		apierrs.IsResourceExpired(err) || apierrs.IsGone(err)
	if observers := w.observers.Load(); observers != nil && !ended {
		observers.note(ctx, cacheNode, WatchFailed{Type: strings.TrimPrefix(r.TypeDescription(), "*"), Err: err})
	}
}

// WatchFailed is the fact that a type cannot be listed or watched, see [WatchErrors]. The informer tries again within a
// minute, and each failure is a fact. The node stands for the cache, and is that of no root.
type WatchFailed struct {
	// Type is the Go type, such as "v1.Shop"; for unstructured objects it is the kind.
	Type string
	Err  error
}

// cacheNode stands for the cache of a manager.
var cacheNode = newCacheNode()

func newCacheNode() *Node {
	node := &Node{Kind: "Cache", Name: "Cache", Path: "Cache", Label: "Cache"}
	node.Root = node
	return node
}

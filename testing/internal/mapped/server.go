package mapped

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Options are what a [Server] assumes.
type Options struct {
	// Now is the time of the row; nil is the real time.
	Now func() time.Time
	// Revision is the highest resource version of the given objects. The first write has the next one.
	Revision int64
	// Missing is what to do when the API server does not serve a kind, at the end of an error; empty is nothing.
	Missing string
}

// Server is the part of an API server that one row sees. It is safe for concurrent use.
type Server struct {
	inner   client.WithWatch
	options Options
	// suffix ends what the row has named on the API server.
	suffix string

	mu sync.Mutex
	// uids are those of the API server by those of the row, and rowUIDs the other way round.
	uids, rowUIDs map[string]string
	// names are those of given objects. A UID that is one of them too is a UID only where it must be one.
	names sets.Set[string]
	// objects are the identities of objects, by the UID that the API server assigned.
	objects map[string]*identity
	// versions are those of the API server by object and by version of the row, and rowVersions the other way round.
	versions    map[versionOf]string
	rowVersions map[string]string
	revision    int64
	// made counts the objects of a name that were made.
	made map[store.Key]int
	// removals counts the objects that calls removed.
	removals int64
	// hidden are objects that a cache has not seen yet.
	hidden sets.Set[store.Key]
	// generated counts the names that were generated.
	generated int
	// kinds are those of which the row may have objects.
	kinds sets.Set[schema.GroupVersionKind]
}

// versionOf is a resource version of the row.
type versionOf struct {
	key     store.Key
	version string
}

// New returns the part of an API server in which a row begins. Inner must be able to work with unstructured objects.
func New(inner client.WithWatch, options Options) *Server {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Server{
		inner: inner, options: options, suffix: "-rt" + utilrand.String(7),
		uids: map[string]string{}, rowUIDs: map[string]string{}, names: sets.New[string](),
		objects: map[string]*identity{}, made: map[store.Key]int{}, revision: options.Revision,
		versions: map[versionOf]string{}, rowVersions: map[string]string{},
		hidden: sets.New[store.Key](), kinds: sets.New[schema.GroupVersionKind](),
	}
}

// Revision is higher after each change that the row has made or seen.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision + s.removals
}

// Hide leaves objects out of what is read from the cache, until CatchUp.
func (s *Server) Hide(keys ...store.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden.Insert(keys...)
}

// CatchUp shows everything. It reports whether something was hidden.
func (s *Server) CatchUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	some := len(s.hidden) > 0
	s.hidden = sets.New[store.Key]()
	return some
}

package mapped

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	made map[objectKey]int
	// generated counts the names that were generated.
	generated int
	// kinds are those of which the row may have objects.
	kinds sets.Set[schema.GroupVersionKind]
}

// objectKey names an object as the row does.
type objectKey struct {
	kind            schema.GroupKind
	namespace, name string
}

// versionOf is a resource version of the row.
type versionOf struct {
	key     objectKey
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
		objects: map[string]*identity{}, versions: map[versionOf]string{}, rowVersions: map[string]string{},
		revision: options.Revision, made: map[objectKey]int{}, kinds: sets.New[schema.GroupVersionKind](),
	}
}

// Suffix ends the names of what the row has on the API server.
func (s *Server) Suffix() string { return s.suffix }

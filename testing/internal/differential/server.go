// Package differential makes each call of a row on two API servers, one in memory and a real one, and notes where they
// answer in different ways. The row gets the answers of the one in memory.
//
// A real API server has objects of others, and assigns what it likes. So a [Server] maps what the row sends:
//
//   - UIDs and resource versions are those that the real one has assigned to the same objects, wherever objects,
//     patches, preconditions, selectors, labels and references have them.
//   - Namespaces, and the names of objects in no namespace, end with a suffix of the row, so that rows run in parallel.
//     What is in a field named namespace is mapped too; other names that a row writes into an object stay as they are,
//     since an API server does not follow them. Definitions of kinds keep their names: all rows share them.
//
// Given objects are made as if they had always been there: owners before their dependents, with status, finalizers,
// deletion and managed fields. What the API server completes in a given object is no difference as long as it stays as
// it was. UIDs, resource versions, times and managed fields are not compared.
package differential

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Server is the part of a real API server that one row has, compared with memory. It is safe for concurrent use.
type Server struct {
	inner client.WithWatch
	// suffix ends what the row has named on the API server.
	suffix string

	// mu makes the two calls of one call of the row one step.
	mu sync.Mutex
	// uids are those of the API server by those of the row, and rowUIDs the other way round.
	uids, rowUIDs map[string]string
	// names are those of given objects. A UID that is one of them too is a UID only where it must be one.
	names sets.Set[string]
	// versions are those of the API server by object and by version of the row, and seen the last ones of the row.
	versions map[versionOf]string
	seen     map[store.Key]string
	// given are the given objects, by the UID that the API server assigned.
	given map[string]*given
	// hidden are objects that a cache has not seen yet.
	hidden sets.Set[store.Key]
	// kinds are those of which the row may have objects.
	kinds sets.Set[schema.GroupVersionKind]
	// rests are what is listed after a page, by the token of memory for the next one.
	rests       map[string][]unstructured.Unstructured
	differences []Difference
}

// versionOf is a resource version of the row.
type versionOf struct {
	key     store.Key
	version string
}

// New returns the part of an API server in which a row begins. Inner must be able to work with unstructured objects.
func New(inner client.WithWatch) *Server {
	return &Server{
		inner: inner, suffix: "-rt" + utilrand.String(7),
		uids: map[string]string{}, rowUIDs: map[string]string{}, names: sets.New[string](),
		versions: map[versionOf]string{}, seen: map[store.Key]string{}, given: map[string]*given{},
		hidden: sets.New[store.Key](), kinds: sets.New[schema.GroupVersionKind](),
		rests: map[string][]unstructured.Unstructured{},
	}
}

// Hide leaves objects out of what is read from a cache, until CatchUp.
func (s *Server) Hide(keys ...store.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden.Insert(keys...)
}

// CatchUp shows everything.
func (s *Server) CatchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden.Clear()
}

// Difference is what was different about a call.
type Difference struct {
	// Call is the call; zero for what was beside all calls.
	Call store.Call
	// Text says what is different, as far as possible as the rule that one of the servers lacks.
	Text string
}

// String returns the call and the text.
func (d Difference) String() string {
	if d.Call.Verb == "" {
		return d.Text
	}
	return d.Call.String() + ": " + d.Text
}

// First returns the first difference. After it the two servers may have different states, so that others may be its
// consequences.
func (s *Server) First() (first Difference, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.differences) == 0 {
		return first, false
	}
	return s.differences[0], true
}

// Note notes a difference beside all calls.
func (s *Server) Note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(err)
}

// note is Note for a caller who holds the lock.
func (s *Server) note(err error) {
	s.differences = append(s.differences, Difference{Text: s.text(err.Error())})
}

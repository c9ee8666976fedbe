package mapped

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// identity is what a row knows an object by.
type identity struct {
	uid string
	// created and deleted are times as in JSON. Deleted is empty for an object that is not given as deleted.
	created, deleted string
	// generation is that of the row for the generation first of the API server.
	generation, first int64
	// given is the content of a given object, and completed what the API server made of it. They are nil for others.
	given, completed map[string]any
}

// identityOf returns what the row knows the object of an answer by; nil if the answer is no object. Its UID is known
// from then on, so that texts of the answer that have it are mapped.
func (s *Server) identityOf(key store.Key, answer *unstructured.Unstructured) *identity {
	uid := string(answer.GetUID())
	if uid == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.objects[uid]
	if !ok {
		id = s.newIdentity(key, answer.GetGeneration())
		s.objects[uid] = id
		s.pairUIDs(id.uid, uid)
	}
	return id
}

// identify gives an answer of the API server the metadata that the row knows, and hides what the API server has
// completed in a given object. The answer has the names of the row already.
func (s *Server) identify(key store.Key, id *identity, answer *unstructured.Unstructured) {
	metadata, ok := answer.Object["metadata"].(map[string]any)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if version, ok := metadata["resourceVersion"].(string); ok {
		metadata["resourceVersion"] = s.rowVersion(key, version)
	}
	if id == nil {
		return
	}
	metadata["uid"] = id.uid
	metadata["creationTimestamp"] = id.created
	if _, ok := metadata["deletionTimestamp"]; ok {
		if id.deleted == "" {
			id.deleted = s.now()
		}
		metadata["deletionTimestamp"] = id.deleted
	}
	if generation, ok := metadata["generation"].(int64); ok {
		metadata["generation"] = id.generation + generation - id.first
	} else if id.generation != 0 && answer.GroupVersionKind().GroupKind() == key.Kind {
		metadata["generation"] = id.generation // A subresource of another kind, such as Scale, has none.
	}
	hide(answer.Object, id.completed, id.given)
}

// newIdentity is that of an object that the row has made. Its UID is the one that it has in memory.
func (s *Server) newIdentity(key store.Key, generation int64) *identity {
	id := &identity{
		uid: string(store.UID(key, s.made[key])), created: s.now(), generation: generation, first: generation,
	}
	s.made[key]++
	return id
}

func (s *Server) now() string { return s.options.Now().UTC().Format(time.RFC3339) }

// pairUIDs says that a UID of the row stands for one of the API server.
func (s *Server) pairUIDs(row, server string) { s.uids[row], s.rowUIDs[server] = server, row }

// rowVersion returns the resource version of the row for one of the API server, and makes up the next one if it is new.
func (s *Server) rowVersion(key store.Key, version string) string {
	row, ok := s.rowVersions[version]
	if !ok {
		s.revision++
		row = strconv.FormatInt(s.revision, 10)
		s.pairVersions(key, row, version)
	}
	return row
}

func (s *Server) pairVersions(key store.Key, row, server string) {
	s.versions[versionOf{key, row}], s.rowVersions[server] = server, row
}

// neverVersion is a resource version that no object on an API server has any more.
const neverVersion = "1"

// serverVersion returns the resource version of the API server for one of the row. One that was never seen is one
// that does not match, unless it is none at all.
func (s *Server) serverVersion(key store.Key, row string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version, ok := s.versions[versionOf{key, row}]; ok {
		return version
	}
	if n, err := strconv.ParseInt(row, 10, 64); err != nil || n <= 0 {
		return row
	}
	return neverVersion
}

// serverUID returns the UID of the API server for one of the row. One that was never seen stays as it is.
func (s *Server) serverUID(row string) (uid string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid, known = s.uids[row]
	if !known {
		uid = row
	}
	return uid, known
}

// Pair says that an object in the answer of a client of s is the same as an object of another store, in the same state.
// From then on its UID and resource version are those of the other. It returns the key of the object.
func (s *Server) Pair(answer, other client.Object) (store.Key, error) {
	kind, err := s.inner.GroupVersionKindFor(answer)
	if err != nil {
		return store.Key{}, err
	}
	key := store.Key{Kind: kind.GroupKind(), Namespace: answer.GetNamespace(), Name: answer.GetName()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if uid, ok := s.uids[string(answer.GetUID())]; ok && other.GetUID() != "" {
		s.pairUIDs(string(other.GetUID()), uid)
		s.objects[uid].uid = string(other.GetUID())
	}
	if version, ok := s.versions[versionOf{key, answer.GetResourceVersion()}]; ok && other.GetResourceVersion() != "" {
		s.pairVersions(key, other.GetResourceVersion(), version)
	}
	return key, nil
}

// give says what the row knows a given object by, which the API server has made.
func (s *Server) give(key store.Key, given, made *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := &identity{
		uid: string(given.GetUID()), created: inJSON(given.GetCreationTimestamp()),
		generation: given.GetGeneration(), first: made.GetGeneration(),
		given: given.Object, completed: made.Object,
	}
	if deleted := given.GetDeletionTimestamp(); deleted != nil {
		id.deleted = inJSON(*deleted)
	}
	s.objects[string(made.GetUID())] = id
	s.made[key]++
	s.pairUIDs(id.uid, string(made.GetUID()))
	s.pairVersions(key, given.GetResourceVersion(), made.GetResourceVersion())
}

func inJSON(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }

// shown reports whether a time is the one that an object is shown with.
func (s *Server) shown(uid types.UID, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.objects[s.uids[string(uid)]]
	return ok && (text == id.created || text == id.deleted)
}

package store

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// maxPrefix is how much of a prefix an API server keeps when it generates a name.
const maxPrefix = 58

// newIdentity returns the identity of an object to be created, and how many names were generated then. UIDs and names
// are the same in each run of a test. The caller holds the lock.
func (s *memory) newIdentity(r *resource, obj client.Object, dryRun bool) (id identity, generated int) {
	id = identity{name: obj.GetName(), time: s.now()}
	generated = s.state.generated
	key := newKey(r.gvk.GroupKind(), obj.GetNamespace(), id.name)
	if prefix := obj.GetGenerateName(); id.name == "" && prefix != "" {
		prefix = prefix[:min(len(prefix), maxPrefix)]
		for key.Name == "" || s.state.find(key) != nil {
			generated++
			key.Name = fmt.Sprintf("%s%03d", prefix, generated)
		}
		id.name = key.Name
	}
	id.uid = s.state.uid(key)
	if dryRun {
		id.uid = registry.UID(key, -1) // No object gets it.
	}
	return id, generated
}

// uid returns the UID of the next object of a name.
func (st *state) uid(key Key) types.UID { return registry.UID(key, st.ended[key]) }

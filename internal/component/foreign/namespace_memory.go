package foreign

import (
	"sync"

	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memory remembers what others have in namespaces, and what a definition does not record, from request to request.
// Losing it costs requests. The zero value is empty. It is safe for concurrent use.
type Memory struct {
	mu sync.Mutex
	// blocked has the namespaces that were not deleted, by UID.
	blocked map[types.UID]blocked
	// proofs has the records of proofs that could not be written to their definition, by UID.
	proofs map[types.UID]string
}

// proofOf returns the record of a proof, empty if there is none.
func (m *Memory) proofOf(definition types.UID) string {
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proofs[definition]
}

func (m *Memory) rememberProof(definition types.UID, record string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proofs == nil {
		m.proofs = map[types.UID]string{}
	}
	m.proofs[definition] = record
}

// blocked is why a namespace was not deleted. The objects that the use names are also given as references.
type blocked struct {
	use   plan.Use
	named []metav1.OwnerReference
	// unread is a type that could not be listed, for the reason; nil if there is none.
	unread *served
	reason string
	// failed are the API groups that could not be discovered.
	failed []string
}

// of returns what is known of a namespace. A nil Memory knows nothing.
func (m *Memory) of(namespace types.UID) (blocked, bool) {
	if m == nil {
		return blocked{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.blocked[namespace]
	return known, ok
}

// remember notes what was found in a namespace, if it may not be deleted.
func (m *Memory) remember(namespace types.UID, b blocked) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.use.State != plan.ForeignBlocking && b.use.State != plan.ForeignUnknown {
		delete(m.blocked, namespace)
		return
	}
	if m.blocked == nil {
		m.blocked = map[types.UID]blocked{}
	}
	m.blocked[namespace] = b
}

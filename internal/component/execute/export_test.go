package execute

import (
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/write"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WithIgnored is for tests of its rules.
var WithIgnored = write.WithFields

// Merge migrates for the manager "us", which applies body in the version v1.
func Merge(entries []metav1.ManagedFieldsEntry, body map[string]any, reclaim []string, ignored [][]string) ([]metav1.ManagedFieldsEntry, bool) {
	m := managedfields.Migration{
		Owner: managedfields.Owner{Name: "us"}, Reclaim: reclaim, Kept: write.Kept(schema.GroupKind{}, ignored...),
	}
	migrated, from := m.Migrate(entries, body)
	return migrated, len(from) > 0
}

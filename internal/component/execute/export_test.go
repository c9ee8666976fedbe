package execute

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// WithIgnored is for tests of its rules.
var WithIgnored = withIgnored

// Merge merges for the manager "us", which applies body in the version v1.
func Merge(entries []metav1.ManagedFieldsEntry, body map[string]any, reclaim []string, ignored [][]string) ([]metav1.ManagedFieldsEntry, bool) {
	m := &merger{manager: "us", version: "v1", reclaim: reclaim, body: body, kept: []fieldpath.Path{finalizers}, ignored: ignored}
	return m.merge(entries)
}

package execute

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithIgnored is for tests of its rules.
var WithIgnored = withIgnored

// Merge migrates for the manager "us", which applies body in the version v1.
func Merge(entries []metav1.ManagedFieldsEntry, body map[string]any, reclaim []string, ignored [][]string) ([]metav1.ManagedFieldsEntry, bool) {
	m := migration{body: body, reclaim: reclaim, kept: append(ignored, finalizers)}
	m.Manager, m.APIVersion = "us", "v1"
	return m.migrate(entries)
}

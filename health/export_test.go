package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// StaticKinds are the kinds for which Static returns true.
func StaticKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for kind, rule := range rules {
		if rule.static {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

package manifest

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maintained are the fields that a controller is known to maintain, whatever a manifest says about them. They are
// neither created nor applied: a manager that owned them would lose them to the controller, and force them back.
// "*" in a path stands for each item of a list.
var maintained = []struct {
	kind schema.GroupKind
	path []string
	// by reports whether the controller maintains the value of that object; nil for always.
	by func(content map[string]any, value any) bool
}{
	// The clusterrole-aggregation-controller makes the rules from other ClusterRoles.
	{schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, []string{"rules"}, isAggregated},

	// Injectors, such as cert-manager, write the bundles of certificates.
	{schema.GroupKind{Group: groupAdmission, Kind: "ValidatingWebhookConfiguration"}, bundleOfWebhooks, isInjected},
	{schema.GroupKind{Group: groupAdmission, Kind: "MutatingWebhookConfiguration"}, bundleOfWebhooks, isInjected},
	{kinds.APIService, []string{"spec", "caBundle"}, isInjected},
	{kinds.CustomResourceDefinition,
		[]string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}, isInjected},

	// The rest is in manifests that were read from a cluster. Controllers count revisions, and note how a claim is
	// bound.
	{schema.GroupKind{Group: "apps", Kind: "Deployment"}, annotation("deployment.kubernetes.io/revision"), nil},
	{schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, annotation("deprecated.daemonset.template.generation"), nil},
	{schema.GroupKind{Kind: "PersistentVolumeClaim"}, annotation("pv.kubernetes.io/bind-completed"), nil},
	{schema.GroupKind{Kind: "PersistentVolumeClaim"}, annotation("pv.kubernetes.io/bound-by-controller"), nil},
}

const groupAdmission = "admissionregistration.k8s.io"

var bundleOfWebhooks = []string{"webhooks", "*", "clientConfig", "caBundle"}

func annotation(key string) []string { return []string{"metadata", "annotations", key} }

// dropMaintained removes the fields that a controller maintains.
func dropMaintained(content map[string]any, kind schema.GroupKind) {
	for _, m := range maintained {
		if m.kind == kind {
			dropAt(content, m.path, func(value any) bool { return m.by == nil || m.by(content, value) })
		}
	}
}

// dropAt removes the values at path for which drop returns true.
func dropAt(at any, path []string, drop func(value any) bool) {
	if items, ok := at.([]any); ok && path[0] == "*" {
		for _, item := range items {
			dropAt(item, path[1:], drop)
		}
		return
	}
	members, _ := at.(map[string]any)
	value, ok := members[path[0]]
	switch {
	case !ok:
	case len(path) > 1:
		dropAt(value, path[1:], drop)
	case drop(value):
		delete(members, path[0])
	}
}

// isAggregated reports whether the rules of a ClusterRole are those of other ClusterRoles.
func isAggregated(content map[string]any, _ any) bool { return content["aggregationRule"] != nil }

// isInjected reports whether the bundle in a manifest is not the one that is meant: the object asks for an injection,
// or the bundle has no certificate.
func isInjected(content map[string]any, bundle any) bool {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if slices.ContainsFunc(injections, func(key string) bool { return annotations[key] != nil }) {
		return true
	}
	text, ok := bundle.(string)
	if !ok {
		return bundle == nil
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	return err == nil && strings.Trim(strings.ReplaceAll(string(decoded), `\n`, ""), " \t\r\n") == ""
}

// injections are the annotations that ask for an injection of a bundle.
var injections = []string{
	"cert-manager.io/inject-ca-from",
	"cert-manager.io/inject-ca-from-secret",
	"cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle",
}

package manifest

import (
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	crdKind        = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// definition is what an object defines that brings types into the cluster.
type definition struct {
	managed apis.ManagedType
	// types are the managed type alone.
	types []apis.ManagedType
	// scope is that of the type; scopeUnknown for an APIService.
	scope scope
}

// readDefinition returns nil for an object that defines no type. Any version of the kinds that do will do: no Go type is needed.
func readDefinition(kind schema.GroupKind, content map[string]any) (*definition, error) {
	var d *definition
	var err error
	switch kind {
	case crdKind:
		d, err = readCRD(content)
	case apiServiceKind:
		d, err = readAPIService(content)
	}
	if d != nil {
		d.types = []apis.ManagedType{d.managed}
	}
	return d, err
}

func readCRD(content map[string]any) (*definition, error) {
	group, groupErr := textAt(content, "spec", "group")
	kind, kindErr := textAt(content, "spec", "names", "kind")
	word, scopeErr := textAt(content, "spec", "scope")
	if err := errors.Join(groupErr, kindErr, scopeErr); err != nil {
		return nil, err
	}
	d := &definition{managed: apis.ManagedType{Group: group, Version: "*", Kind: kind}}
	switch word {
	case "Namespaced":
		d.scope = scopeNamespaced
	case "Cluster":
		d.scope = scopeCluster
	default:
		return nil, fmt.Errorf("its spec.scope %q is neither Namespaced nor Cluster", word)
	}
	return d, nil
}

func readAPIService(content map[string]any) (*definition, error) {
	group, groupErr := textAt(content, "spec", "group")
	version, versionErr := textAt(content, "spec", "version")
	if err := errors.Join(groupErr, versionErr); err != nil {
		return nil, err
	}
	return &definition{managed: apis.ManagedType{Group: group, Version: version, Kind: "*"}, scope: scopeUnknown}, nil
}

// textAt returns the string at path, which must be there.
func textAt(content map[string]any, path ...string) (string, error) {
	var value any = content
	name := ""
	for i, step := range path {
		if i > 0 {
			name += "."
		}
		name += step
		object, _ := value.(map[string]any)
		value = object[step]
	}
	text, _ := value.(string)
	if text == "" || text == "*" {
		return "", fmt.Errorf("it has no %s that is a name", name)
	}
	return text, nil
}

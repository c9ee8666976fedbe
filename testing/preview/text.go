package preview

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/jsonmerge"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/objectname"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// Text returns objects as a golden file has them, without its first line. A nil scheme is that of client-go.
func Text(objects []client.Object, known *runtime.Scheme) (string, error) {
	if known == nil {
		known = scheme.Scheme
	}
	if len(objects) == 0 {
		return "# No objects.\n", nil
	}
	documents := make([]string, len(objects))
	for i, object := range objects {
		document, err := documentOf(object, known)
		if err != nil {
			return "", fmt.Errorf("object %d, %s: %w", i, objectname.Of(object), err)
		}
		documents[i] = document
	}
	return strings.Join(documents, "---\n"), nil
}

var errNil = errors.New("there is no object")

func documentOf(object client.Object, known *runtime.Scheme) (string, error) {
	if gotype.IsNil(object) {
		return "", errNil
	}
	kind, err := apiutil.GVKForObject(object, known)
	if err != nil {
		return "", err
	}
	tree, err := jsonmerge.Tree(object)
	if err != nil {
		return "", err
	}
	content := map[string]any{}
	maps.Copy(content, tree)
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	if isEmpty(content["status"]) {
		delete(content, "status")
	}
	text, err := yaml.Marshal(clean(content))
	return string(text), err
}

// clean returns a copy of a tree without times of creation that are not set, and without values of Secrets, also of one
// that is a part of another object.
func clean(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		cleaned := make(map[string]any, len(v))
		for key, value := range v {
			if key != "creationTimestamp" || value != nil {
				cleaned[key] = clean(value)
			}
		}
		if v["apiVersion"] == "v1" && v["kind"] == kinds.Secret.Kind {
			hide(cleaned, "data")
			hide(cleaned, "stringData")
		}
		return cleaned
	case []any:
		cleaned := make([]any, len(v))
		for i, value := range v {
			cleaned[i] = clean(value)
		}
		return cleaned
	default:
		return tree
	}
}

// isEmpty reports whether a tree has no value but zeros.
func isEmpty(tree any) bool {
	switch v := tree.(type) {
	case nil:
		return true
	case map[string]any:
		for _, value := range v {
			if !isEmpty(value) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		text := fmt.Sprint(v)
		return text == "" || text == "0" || text == "false"
	}
}

// hidden takes the place of a value of a Secret. It tells nothing of the value, neither its length nor a digest.
const hidden = "(not shown)"

// hide replaces what is at a field, each value if it is a map.
func hide(content map[string]any, field string) {
	switch values := content[field].(type) {
	case nil:
	case map[string]any:
		for key := range values {
			values[key] = hidden
		}
	default:
		content[field] = hidden
	}
}

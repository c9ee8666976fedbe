package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// target is an object that a call is about, and maps the content that is sent with the call.
type target struct {
	server *Server
	kind   schema.GroupVersionKind
	// key names the object in the row.
	key store.Key
	// on is the object on the API server, without content.
	on *unstructured.Unstructured
	// suffixed says that the name of the object ends with the suffix.
	suffixed bool
}

func (s *Server) target(kind schema.GroupVersionKind, namespace, name string) target {
	t := target{
		server: s, kind: kind, key: store.Key{Kind: kind.GroupKind(), Namespace: namespace, Name: name},
		on: &unstructured.Unstructured{}, suffixed: s.suffixed(kind),
	}
	t.on.SetGroupVersionKind(kind)
	t.on.SetNamespace(s.toName(namespace))
	t.on.SetName(name)
	if t.suffixed {
		t.on.SetName(s.toName(name))
	}
	return t
}

// isDefinition reports whether a kind is that of the definitions of kinds.
func isDefinition(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
}

// suffixed reports whether the names of objects of the kind end with the suffix. Of a kind that is not served nothing
// is known, and a call about it fails anyhow.
func (s *Server) suffixed(kind schema.GroupVersionKind) bool {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	namespaced, err := s.inner.IsObjectNamespaced(u)
	return err == nil && !namespaced && !isDefinition(kind.GroupKind()) && kind.Group != "apiregistration.k8s.io"
}

// body returns a copy of an object of a kind as it is sent in a call about t. The API server knows its times.
func (t target) body(obj client.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	u, err := toUnstructured(obj, kind)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "metadata", "deletionTimestamp")
	t.toServer(nil, u.Object)
	return u, nil
}

func toUnstructured(obj runtime.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if from, ok := obj.(runtime.Unstructured); ok {
		u.Object = runtime.DeepCopyJSON(from.UnstructuredContent())
	} else {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("cannot convert %T: %w", obj, err)
		}
		u.Object = content
	}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// patch returns a patch as it is sent to the API server.
func (t target) patch(kind types.PatchType, data []byte) (client.Patch, error) {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return client.RawPatch(kind, data), nil // the API server says what is wrong
	}
	if operations, ok := value.([]any); ok {
		for _, operation := range operations {
			if operation, ok := operation.(map[string]any); ok && operation["value"] != nil {
				path, _ := operation["path"].(string)
				operation["value"] = t.toServer(segments(path), operation["value"])
			}
		}
	} else {
		value = t.toServer(nil, value)
	}
	sent, err := json.Marshal(value)
	return client.RawPatch(kind, sent), err
}

// segments returns the names of fields in a JSON pointer, without the places in lists.
func segments(pointer string) []string {
	var names []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if segment != "-" && strings.Trim(segment, "0123456789") != "" {
			names = append(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(segment))
		}
	}
	return names
}

// preconditions returns preconditions as they are sent.
func (t target) preconditions(of *metav1.Preconditions) *metav1.Preconditions {
	if of == nil {
		return nil
	}
	mapped := of.DeepCopy()
	if mapped.UID != nil {
		*mapped.UID = types.UID(t.server.serverUID(string(*mapped.UID)))
	}
	if mapped.ResourceVersion != nil {
		*mapped.ResourceVersion = t.server.serverVersion(t.key, *mapped.ResourceVersion)
	}
	return mapped
}

// toServer maps a value, in place if it has parts, and returns it. Path leads to it from the top of the object; an
// element of a list has the path of the list.
func (t target) toServer(path []string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		t.mapToServer(path, value)
	case []any:
		for i := range value {
			value[i] = t.toServer(path, value[i])
		}
	case string:
		return t.stringToServer(path, value)
	}
	return value
}

func (t target) mapToServer(path []string, values map[string]any) {
	if slices.Equal(path, []string{"metadata", "ownerReferences"}) {
		version, _ := values["apiVersion"].(string)
		kind, _ := values["kind"].(string)
		name, ok := values["name"].(string)
		if ok && t.server.suffixed(schema.FromAPIVersionAndKind(version, kind)) {
			values["name"] = t.server.toName(name)
		}
	}
	for name, value := range values {
		if name == "managedFields" && slices.Equal(path, []string{"metadata"}) {
			t.server.mapOwners(value)
			continue
		}
		values[name] = t.toServer(append(slices.Clip(path), name), value)
	}
}

func (t target) stringToServer(path []string, value string) string {
	last := ""
	if len(path) > 0 {
		last = path[len(path)-1]
	}
	switch {
	case slices.Equal(path, []string{"metadata", "resourceVersion"}):
		return t.server.serverVersion(t.key, value)
	case slices.Equal(path, []string{"metadata", "name"}):
		if t.suffixed {
			return t.server.toName(value)
		}
		return value
	case slices.Equal(path, []string{"metadata", "labels", corev1.LabelMetadataName}),
		last == "namespace" && (len(path) == 2 || !isFreeForm(path)):
		return t.server.toName(value)
	case strings.EqualFold(last, "uid") || !t.server.names.Has(value):
		return t.server.serverUID(value)
	}
	return value
}

// isFreeForm reports whether the names of the fields at a path are made up by users.
func isFreeForm(path []string) bool {
	return path[0] == "metadata" && len(path) > 2 || path[0] == "data" || path[0] == "stringData"
}

// toName returns the name on the API server of a namespace, or of an object in none.
func (s *Server) toName(name string) string {
	if name == "" || strings.HasSuffix(name, s.suffix) {
		return name
	}
	return name + s.suffix
}

// serverUID returns the UID of the API server for one of the row. One that was never seen stays as it is.
func (s *Server) serverUID(row string) string {
	if uid, ok := s.uids[row]; ok {
		return uid
	}
	return row
}

// neverVersion is a resource version that no object on an API server has any more.
const neverVersion = "1"

// serverVersion returns the resource version of the API server for one of the row. One that was never seen is one
// that does not match, unless it is none at all.
func (s *Server) serverVersion(key store.Key, row string) string {
	if version, ok := s.versions[versionOf{key, row}]; ok {
		return version
	}
	if n, err := strconv.ParseInt(row, 10, 64); err != nil || n <= 0 {
		return row
	}
	return neverVersion
}

// ofOwner begins a managed field of an owner reference, which ends with the UID of the owner.
const ofOwner, endOfOwner = `k:{"uid":"`, `"}`

// mapOwners changes the UIDs in managed fields.
func (s *Server) mapOwners(value any) {
	switch value := value.(type) {
	case []any:
		for i := range value {
			s.mapOwners(value[i])
		}
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(value)) {
			s.mapOwners(value[name])
			if uid, ok := strings.CutPrefix(strings.TrimSuffix(name, endOfOwner), ofOwner); ok {
				fields := value[name]
				delete(value, name)
				value[ofOwner+s.serverUID(uid)+endOfOwner] = fields
			}
		}
	}
}

// fromServer maps a value of an answer to the row, in place if it has parts, and returns it.
func (s *Server) fromServer(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			value[name] = s.fromServer(v)
		}
	case []any:
		for i := range value {
			value[i] = s.fromServer(value[i])
		}
	case string:
		return s.text(value)
	}
	return value
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// text maps a text of the API server to the row.
func (s *Server) text(text string) string {
	return uidPattern.ReplaceAllStringFunc(strings.ReplaceAll(text, s.suffix, ""), func(uid string) string {
		if row, ok := s.rowUIDs[uid]; ok {
			return row
		}
		return uid
	})
}

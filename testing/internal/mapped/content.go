package mapped

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// content maps the content of one object, or of a part of it, to the API server.
type content struct {
	server *Server
	// key names the object in the row.
	key store.Key
	// suffixed says that the name of the object ends with the suffix.
	suffixed bool
}

// toServer maps a value, in place if it has parts, and returns it. Path leads to it from the top of the object; an
// element of a list has the path of the list.
func (c content) toServer(path []string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		c.mapToServer(path, value)
	case []any:
		for i := range value {
			value[i] = c.toServer(path, value[i])
		}
	case string:
		return c.stringToServer(path, value)
	}
	return value
}

func (c content) mapToServer(path []string, values map[string]any) {
	if at(path, "metadata", "ownerReferences") {
		version, _ := values["apiVersion"].(string)
		kind, _ := values["kind"].(string)
		name, ok := values["name"].(string)
		if ok && c.server.suffixed(schema.FromAPIVersionAndKind(version, kind)) {
			values["name"] = c.server.toName(name)
		}
	}
	for name, value := range values {
		if name == "managedFields" && at(path, "metadata") {
			renameOwners(value, func(uid string) string {
				uid, _ = c.server.serverUID(uid)
				return uid
			})
			continue
		}
		values[name] = c.toServer(append(slices.Clip(path), name), value)
	}
}

func (c content) stringToServer(path []string, value string) string {
	last := ""
	if len(path) > 0 {
		last = path[len(path)-1]
	}
	switch {
	case at(path, "metadata", "resourceVersion"):
		return c.server.serverVersion(c.key, value)
	case at(path, "metadata", "name"):
		if c.suffixed {
			return c.server.toName(value)
		}
		return value
	case at(path, "metadata", "labels", corev1.LabelMetadataName):
		return c.server.toName(value)
	case last == "namespace" && (len(path) == 2 || !isFreeForm(path)):
		return c.server.toName(value)
	}
	return c.server.uidToServer(last, value)
}

// isFreeForm reports whether the names of the fields at a path are made up by users.
func isFreeForm(path []string) bool {
	return path[0] == "metadata" && len(path) > 2 || path[0] == "data" || path[0] == "stringData"
}

func at(path []string, names ...string) bool { return slices.Equal(path, names) }

// uidToServer maps a string that is a UID of the row. One that is a name too is a UID only in a field that says so.
func (s *Server) uidToServer(field, value string) string {
	uid, ok := s.serverUID(value)
	if ok && (strings.EqualFold(field, "uid") || !s.isName(value)) {
		return uid
	}
	return value
}

func (s *Server) isName(value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names.Has(value)
}

// toName returns the name on the API server of a namespace, or of an object in none.
func (s *Server) toName(name string) string {
	if name == "" || strings.HasSuffix(name, s.suffix) {
		return name
	}
	return name + s.suffix
}

// fromServer maps a value of an answer to the row, in place if it has parts, and returns it.
func (s *Server) fromServer(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			if name == "managedFields" {
				renameOwners(v, s.text)
				continue
			}
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

// ofOwner begins a managed field of an owner reference, which ends with the UID of the owner.
const ofOwner, endOfOwner = `k:{"uid":"`, `"}`

// renameOwners changes the UIDs in managed fields.
func renameOwners(value any, rename func(uid string) string) {
	switch value := value.(type) {
	case []any:
		for i := range value {
			renameOwners(value[i], rename)
		}
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(value)) {
			renameOwners(value[name], rename)
			if uid, ok := strings.CutPrefix(strings.TrimSuffix(name, endOfOwner), ofOwner); ok {
				fields := value[name]
				delete(value, name)
				value[ofOwner+rename(uid)+endOfOwner] = fields
			}
		}
	}
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// text maps a text of the API server to the row.
func (s *Server) text(text string) string {
	text = strings.ReplaceAll(text, s.suffix, "")
	if len(text) < len("00000000-0000-0000-0000-000000000000") {
		return text
	}
	return uidPattern.ReplaceAllStringFunc(text, func(uid string) string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if row, ok := s.rowUIDs[uid]; ok {
			return row
		}
		return uid
	})
}

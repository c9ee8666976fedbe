package differential

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/jsondiff"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// compareErrors compares the reasons of errors. Their texts may differ.
func (s *Server) compareErrors(inMemory, onServer error) []string {
	memory, server := reason(inMemory), reason(onServer)
	switch {
	case memory == server:
		return nil
	case onServer == nil:
		return []string{fmt.Sprintf("memory refuses it (%s), the server does not: %v", memory, inMemory)}
	case inMemory == nil:
		text := s.text(onServer.Error())
		return []string{fmt.Sprintf("the server refuses it (%s), memory does not: %s", server, text)}
	default:
		text := s.text(onServer.Error())
		return []string{fmt.Sprintf("the server answers %s, memory %s: %s; %v", server, memory, text, inMemory)}
	}
}

func reason(err error) string {
	switch {
	case err == nil:
		return ""
	case meta.IsNoMatchError(err):
		return "NoMatch"
	}
	return cmp.Or(string(apierrors.ReasonForError(err)), "an error")
}

func keyOf(call store.Call) store.Key {
	return store.Key{Kind: call.Kind.GroupKind(), Namespace: call.Namespace, Name: call.Name}
}

// compareObjects compares what the two servers have answered to a call, and makes the answers one object from then on.
func (s *Server) compareObjects(of store.Call, memory client.Object, server *unstructured.Unstructured) []string {
	key := keyOf(of)
	key.Name = cmp.Or(memory.GetName(), key.Name) // It may be generated.
	writes := s.compareWrites(of, key, memory.GetResourceVersion(), server.GetResourceVersion())
	s.pair(key, memory, server, of.DryRun)
	inMemory := contentOf(memory)
	onServer := s.shown(memory, inMemory, server)
	if inMemory == nil || onServer == nil {
		return nil
	}
	if of.Subresource == "token" {
		ignoreToken(inMemory, onServer)
	}
	differences := []string{compareContent(inMemory, onServer), writes}
	return slices.DeleteFunc(differences, func(text string) bool { return text == "" })
}

// compareWrites compares whether a call has changed the object.
func (s *Server) compareWrites(of store.Call, key store.Key, memory, server string) string {
	before, ok := s.seen[key]
	if !ok || !of.Writes() || of.Verb == store.Create {
		return ""
	}
	switch inMemory, onServer := memory != before, server != s.versions[versionOf{key, before}]; {
	case onServer && !inMemory:
		return "the server writes it, memory finds no change"
	case inMemory && !onServer:
		return "memory writes it, the server finds no change"
	}
	return ""
}

// pair says that an object in memory is the same as one on the API server, and in the same state but for a dry run.
func (s *Server) pair(key store.Key, memory, server client.Object, dryRun bool) {
	if memory.GetUID() == "" || server.GetUID() == "" {
		return
	}
	s.pairUIDs(memory.GetUID(), server.GetUID())
	if version := memory.GetResourceVersion(); version != "" && !dryRun {
		s.versions[versionOf{key, version}], s.seen[key] = server.GetResourceVersion(), version
	}
}

func (s *Server) pairUIDs(row, server types.UID) {
	s.uids[string(row)], s.rowUIDs[string(server)] = string(server), string(row)
}

// shown returns the content of an answer of the API server as the row would see it, in an object of the Go type of the
// one in memory. It is nil if the answer does not fit that.
func (s *Server) shown(
	memory runtime.Object, inMemory map[string]any, answer *unstructured.Unstructured,
) map[string]any {
	g, ok := s.given[string(answer.GetUID())]
	s.fromServer(answer.Object)
	if ok {
		generation := g.wanted.GetGeneration()
		if answer.GetGeneration() != 0 {
			answer.SetGeneration(generation + answer.GetGeneration() - g.made.GetGeneration())
		} else if generation != 0 && answer.GroupVersionKind().GroupKind() == g.key.Kind {
			answer.SetGeneration(generation) // A subresource of another kind, such as Scale, has none.
		}
		hide(answer.Object, g.made.Object, inMemory)
	}
	if _, ok := memory.(runtime.Unstructured); ok {
		return answer.Object
	}
	typed := reflect.New(reflect.TypeOf(memory).Elem()).Interface().(runtime.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, typed); err != nil {
		return nil
	}
	return contentOf(typed)
}

// compareLists compares the items of two lists, and their order.
func (s *Server) compareLists(of store.Call, list client.ObjectList, items []unstructured.Unstructured) []string {
	inMemory, err := meta.ExtractList(list)
	if err != nil {
		return []string{err.Error()}
	}
	var names, others []string
	for _, item := range inMemory {
		names = append(names, nameOf(item.(client.Object)))
	}
	for i := range items {
		others = append(others, s.text(nameOf(&items[i])))
	}
	if !slices.Equal(names, others) {
		return []string{fmt.Sprintf("the server lists %s, memory %s", others, names)}
	}
	var differences []string
	for i := range items {
		item := inMemory[i].(client.Object)
		of.Namespace, of.Name = item.GetNamespace(), item.GetName()
		for _, difference := range s.compareObjects(of, item, &items[i]) {
			differences = append(differences, names[i]+": "+difference)
		}
	}
	return differences
}

func nameOf(obj client.Object) string {
	return strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")
}

// ignoreToken removes from two answers about a token what each API server decides for itself: the token, until when it
// is valid, and for whom. It stays if only one has it.
func ignoreToken(memory, server map[string]any) {
	for _, path := range [][]string{{"spec", "audiences"}, {"status", "token"}, {"status", "expirationTimestamp"}} {
		_, inMemory, _ := unstructured.NestedFieldNoCopy(memory, path...)
		_, onServer, _ := unstructured.NestedFieldNoCopy(server, path...)
		if inMemory && onServer {
			unstructured.RemoveNestedField(memory, path...)
			unstructured.RemoveNestedField(server, path...)
		}
	}
}

// ignored are the fields of the metadata that differ, or that memory has only when it must.
var ignored = []string{
	"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
	"selfLink",
}

// compareContent says which fields only one of two objects has, and which are different.
func compareContent(memory, server map[string]any) string {
	for _, content := range []map[string]any{memory, server} {
		delete(content, "apiVersion")
		delete(content, "kind")
		metadata, _ := content["metadata"].(map[string]any)
		for _, name := range ignored {
			delete(metadata, name)
		}
	}
	var onServer, inMemory, other []string
	for _, d := range jsondiff.Diff(memory, server) {
		switch {
		case isEmpty(d.Got) && isEmpty(d.Want):
		case isEmpty(d.Got):
			onServer = append(onServer, d.Path)
		case isEmpty(d.Want):
			inMemory = append(inMemory, d.Path)
		default:
			other = append(other,
				fmt.Sprintf("%s %s, memory %s", d.Path, jsondiff.Short(d.Want), jsondiff.Short(d.Got)))
		}
	}
	var parts []string
	for _, kind := range []struct {
		format string
		paths  []string
	}{
		{"the server sets %s, memory does not", onServer},
		{"memory has %s, the server does not", inMemory},
		{"the server has %s", other},
	} {
		if len(kind.paths) > 0 {
			parts = append(parts, fmt.Sprintf(kind.format, strings.Join(kind.paths, ", ")))
		}
	}
	return strings.Join(parts, "; ")
}

// isEmpty reports whether a value says nothing. Go types have such values where JSON has none.
func isEmpty(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

// contentOf returns a copy of the JSON of an object, nil if it has none.
func contentOf(obj runtime.Object) map[string]any {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	content := map[string]any{}
	if utiljson.Unmarshal(raw, &content) != nil {
		return nil
	}
	return content
}

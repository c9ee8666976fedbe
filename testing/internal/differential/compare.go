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
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/jsondiff"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// compare notes what is different about a call that was made on both servers.
func (c *Comparison) compare(of call, inMemory, onServer error) {
	add := func(difference string) {
		if difference != "" {
			c.differences = append(c.differences, Difference{of.Call, difference})
		}
	}
	if inMemory != nil || onServer != nil {
		add(compareErrors(inMemory, onServer))
		return
	}
	if of.inMemory == nil {
		return
	}
	memory, server := contentOf(of.inMemory), contentOf(of.onServer)
	if memory == nil || server == nil {
		return
	}
	if of.Subresource == "token" {
		ignoreToken(memory, server)
	}
	if items, ok := memory["items"].([]any); ok {
		others, _ := server["items"].([]any)
		add(c.compareItems(items, others))
		c.pairItems(of)
		return
	}
	add(compareContent(memory, server))
	if a, ok := of.inMemory.(client.Object); ok && !of.DryRun {
		b := of.onServer.(client.Object)
		add(c.compareWrites(of, a.GetResourceVersion(), b.GetResourceVersion()))
		c.pair(a, b)
	}
}

// compareErrors compares the reasons of errors. Their texts may differ.
func compareErrors(inMemory, onServer error) string {
	memory, server := reason(inMemory), reason(onServer)
	switch {
	case memory == server:
		return ""
	case onServer == nil:
		return fmt.Sprintf("memory refuses it (%s), the server does not: %v", memory, inMemory)
	case inMemory == nil:
		return fmt.Sprintf("the server refuses it (%s), memory does not: %v", server, onServer)
	default:
		return fmt.Sprintf("the server answers %s, memory %s: %v; %v", server, memory, onServer, inMemory)
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

// compareWrites compares whether an update or a patch has changed the object.
func (c *Comparison) compareWrites(of call, memory, server string) string {
	before, ok := c.versions[keyOf(of.Call)]
	if !ok || !of.writes || (memory == before) == (server == before) {
		return ""
	}
	if memory == before {
		return "the server writes it, memory finds no change"
	}
	return "memory writes it, the server finds no change"
}

func keyOf(call store.Call) store.Key {
	return store.Key{Kind: call.Kind.GroupKind(), Namespace: call.Namespace, Name: call.Name}
}

// pair makes the identity in memory that of both answers.
func (c *Comparison) pair(memory, server client.Object) {
	if memory.GetUID() == "" {
		return
	}
	if key, err := c.server.Pair(server, memory); err == nil {
		c.versions[key] = memory.GetResourceVersion()
	}
}

// pairItems pairs the items of two lists by name.
func (c *Comparison) pairItems(of call) {
	memory, err := meta.ExtractList(of.inMemory)
	if err != nil {
		return
	}
	server, err := meta.ExtractList(of.onServer)
	if err != nil {
		return
	}
	others := map[client.ObjectKey]client.Object{}
	for _, item := range server {
		if obj, ok := item.(client.Object); ok {
			others[client.ObjectKeyFromObject(obj)] = obj
		}
	}
	for _, item := range memory {
		if obj, ok := item.(client.Object); ok && others[client.ObjectKeyFromObject(obj)] != nil {
			c.pair(obj, others[client.ObjectKeyFromObject(obj)])
		}
	}
}

// compareItems compares the items of two lists, and their order.
func (c *Comparison) compareItems(memory, server []any) string {
	inMemory, onServer := namesOf(memory), namesOf(server)
	if !slices.Equal(inMemory, onServer) {
		return fmt.Sprintf("the server lists %s, memory %s", onServer, inMemory)
	}
	for i := range memory {
		a, _ := memory[i].(map[string]any)
		b, _ := server[i].(map[string]any)
		if difference := compareContent(a, b); difference != "" {
			return inMemory[i] + ": " + difference
		}
	}
	return ""
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

func namesOf(items []any) []string {
	names := make([]string, len(items))
	for i, item := range items {
		metadata, _ := item.(map[string]any)["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		name, _ := metadata["name"].(string)
		names[i] = strings.TrimPrefix(namespace+"/"+name, "/")
	}
	return names
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

// contentOf returns a copy of the JSON of an object or a list, nil if it has none.
func contentOf(obj runtime.Object) map[string]any {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	content := map[string]any{}
	if utiljson.Unmarshal(raw, &content) != nil {
		return nil
	}
	if _, ok := content["items"]; ok {
		delete(content, "metadata")
	}
	return content
}

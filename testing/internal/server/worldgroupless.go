package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// noGroup is the group of Go types in the empty group while the library has their objects: it accepts no apiVersion
// without a slash. Neither clients nor the storage see it.
const noGroup = "no-group.espalier.invalid"

// groupOf returns the group that the library has for one.
func groupOf(group string) string {
	if group == "" {
		return noGroup
	}
	return group
}

// withGroup puts the group into the apiVersion of an object without one, and of its managers of fields. It returns what
// is no object as it is.
func withGroup(encoded []byte) []byte {
	content := map[string]any{}
	if err := utiljson.Unmarshal(encoded, &content); err != nil {
		return encoded
	}
	setGroup(content)
	metadata, _ := content["metadata"].(map[string]any)
	managers, _ := metadata["managedFields"].([]any)
	for _, manager := range managers {
		if manager, ok := manager.(map[string]any); ok {
			setGroup(manager)
		}
	}
	with, err := json.Marshal(content)
	if err != nil {
		return encoded
	}
	return with
}

func setGroup(content map[string]any) {
	if version, ok := content["apiVersion"].(string); ok && !strings.Contains(version, "/") {
		content["apiVersion"] = noGroup + "/" + version
	}
}

var withoutGroupIn = strings.NewReplacer(noGroup+"/", "", "."+noGroup, "", noGroup, "")

// withoutGroup undoes [withGroup], and leaves the group out of texts.
func withoutGroup(data []byte) []byte {
	if !bytes.Contains(data, []byte(noGroup)) {
		return data
	}
	return []byte(withoutGroupIn.Replace(string(data)))
}

// serveWithGroup has a handler serve a request for an object in the empty group.
func serveWithGroup(handler http.Handler, w http.ResponseWriter, r *http.Request) {
	info, _ := request.RequestInfoFrom(r.Context())
	with := *info
	with.APIGroup = noGroup
	r = r.WithContext(request.WithRequestInfo(r.Context(), &with))
	// The body of a deletion has options.
	if r.Body != nil && r.Method != http.MethodDelete {
		sent, err := io.ReadAll(r.Body)
		if err == nil {
			sent = withGroup(sent)
		}
		r.Body = readCloser{io.MultiReader(bytes.NewReader(sent), failing{err}), r.Body}
		r.ContentLength = int64(len(sent))
	}
	answer := &grouplessWriter{ResponseWriter: w}
	handler.ServeHTTP(responsewriter.WrapForHTTP1Or2(answer), r)
	answer.end()
}

type readCloser struct {
	io.Reader
	io.Closer
}

// failing is the end of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// grouplessWriter leaves the group out of an answer, line by line: an event of a watch is a line.
type grouplessWriter struct {
	http.ResponseWriter
	rest []byte
}

var _ responsewriter.UserProvidedDecorator = &grouplessWriter{}

// Write implements [http.ResponseWriter].
func (g *grouplessWriter) Write(data []byte) (int, error) {
	g.rest = append(g.rest, data...)
	lines := bytes.LastIndexByte(g.rest, '\n') + 1
	if lines == 0 {
		return len(data), nil
	}
	_, err := g.ResponseWriter.Write(withoutGroup(g.rest[:lines]))
	g.rest = append([]byte(nil), g.rest[lines:]...)
	return len(data), err
}

// Unwrap implements [responsewriter.UserProvidedDecorator].
func (g *grouplessWriter) Unwrap() http.ResponseWriter { return g.ResponseWriter }

func (g *grouplessWriter) end() {
	if len(g.rest) > 0 {
		_, _ = g.ResponseWriter.Write(withoutGroup(g.rest)) // Who would learn of an error has gone.
	}
}

// grouplessCodec stores objects without the group.
type grouplessCodec struct{ runtime.Codec }

// codecOf returns the codec of objects as they are stored.
func codecOf(group string) runtime.Codec {
	if group == noGroup {
		return grouplessCodec{unstructured.UnstructuredJSONScheme}
	}
	return unstructured.UnstructuredJSONScheme
}

// Encode implements [runtime.Encoder].
func (c grouplessCodec) Encode(obj runtime.Object, w io.Writer) error {
	var encoded bytes.Buffer
	if err := c.Codec.Encode(obj, &encoded); err != nil {
		return err
	}
	_, err := w.Write(withoutGroup(encoded.Bytes()))
	return err
}

// Decode implements [runtime.Decoder].
func (c grouplessCodec) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	return c.Codec.Decode(withGroup(data), defaults, into)
}

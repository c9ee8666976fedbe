package large_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// apiServer lists the objects of many resources, and never changes anything. It makes up what it lists, so it takes no
// room. An apply is answered by the object as it is.
type apiServer struct {
	templates []template
	resources int
	// pages is whether the limit of a list is kept to. An API server does that for lists that its watch cache does not
	// answer.
	pages bool

	mu     sync.Mutex
	counts map[string]int
	// others are the requests that are not reads.
	others []string
}

// serve starts the server, and returns how to reach it.
func (s *apiServer) serve(t testing.TB) *rest.Config {
	s.counts = map[string]int{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// taken returns how often each verb was asked for, and the requests that are not reads.
func (s *apiServer) taken() (counts map[string]int, others []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts), slices.Clone(s.others)
}

func (s *apiServer) count(verb string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[verb]++
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for i := range s.templates {
		t := &s.templates[i]
		if r.Method == http.MethodGet && r.URL.Path == t.prefix+"/"+t.plural {
			s.read(w, r, t)
			return
		}
	}
	s.mu.Lock()
	s.counts["other"]++
	if len(s.others) < 10 {
		s.others = append(s.others, r.Method+" "+r.URL.Path)
	}
	s.mu.Unlock()
	if t, i, ok := s.find(r.URL.Path); ok && r.Method == http.MethodPatch {
		w.Header().Set("Content-Type", "application/json")
		w.Write(t.json.write(nil, i))
		return
	}
	http.Error(w, "this server only lists", http.StatusMethodNotAllowed)
}

// find returns of which resource, and of which type, an object is.
func (s *apiServer) find(path string) (t *template, i int, ok bool) {
	for k := range s.templates {
		t := &s.templates[k]
		rest, ok := strings.CutPrefix(path, t.prefix+"/namespaces/")
		if !ok {
			continue
		}
		if _, name, ok := strings.Cut(rest, "/"+t.plural+"/widget-"); ok {
			i, err := strconv.Atoi(name)
			return t, i, err == nil
		}
	}
	return nil, 0, false
}

// read lists or watches all objects of a type.
func (s *apiServer) read(w http.ResponseWriter, r *http.Request, t *template) {
	accept := r.Header.Get("Accept")
	a := answer{
		Writer: bufio.NewWriterSize(w, 64<<10), template: t, objects: s.resources,
		metadata: strings.Contains(accept, "as=PartialObjectMetadata"),
		proto:    strings.HasPrefix(accept, "application/vnd.kubernetes.protobuf") && len(t.event.text) > 0,
	}
	a.proto = a.proto && !a.metadata
	query := r.URL.Query()
	switch {
	case query.Get("watch") == "":
		s.count("list")
		a.begin, _ = strconv.Atoi(query.Get("continue"))
		if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && s.pages {
			a.objects = min(a.objects, a.begin+limit)
		}
		next := ""
		if a.objects < s.resources {
			next = strconv.Itoa(a.objects)
		}
		w.Header().Set("Content-Type", a.contentType())
		a.list(next)
		a.Flush()
	default:
		s.count("watch")
		w.Header().Set("Content-Type", a.contentType()+";stream=watch")
		if query.Get("sendInitialEvents") == "true" {
			a.watch()
		}
		a.Flush()
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// answer writes the objects of a type.
type answer struct {
	*bufio.Writer
	template        *template
	begin, objects  int
	proto, metadata bool
	buffer          []byte
}

func (a *answer) contentType() string {
	if a.proto {
		return "application/vnd.kubernetes.protobuf"
	}
	return "application/json"
}

func (a *answer) object(f form, i int) {
	a.buffer = f.write(a.buffer[:0], i)
	a.Write(a.buffer)
}

func (a *answer) json() (f form, apiVersion, kind string) {
	if a.metadata {
		return a.template.metadata, metav1.SchemeGroupVersion.String(), "PartialObjectMetadata"
	}
	return a.template.json, a.template.apiVersion, a.template.kind
}

// list writes a page of a list. The token is the number of the first object of the next page.
func (a *answer) list(next string) {
	if a.proto {
		a.listProto(next)
		return
	}
	f, apiVersion, kind := a.json()
	fmt.Fprintf(a, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":%q,"continue":%q},"items":[`,
		kind, apiVersion, version, next)
	for i := a.begin; i < a.objects; i++ {
		if i > a.begin {
			a.WriteByte(',')
		}
		a.object(f, i)
	}
	io.WriteString(a, "]}")
}

// listProto writes a page in protobuf: an envelope with the type, and in it the metadata and the objects.
func (a *answer) listProto(next string) {
	field := func(number byte, length int) []byte { // of bytes
		return binary.AppendUvarint([]byte{number<<3 | 2}, uint64(length))
	}
	list := metav1.ListMeta{ResourceVersion: version, Continue: next}
	metadata, _ := list.Marshal()
	item := field(2, len(a.template.proto.text))
	kind := a.template.kind + "List"
	typeMeta := slices.Concat(field(1, len(a.template.apiVersion)), []byte(a.template.apiVersion),
		field(2, len(kind)), []byte(kind))
	header := field(1, len(metadata))
	length := len(header) + len(metadata) + (a.objects-a.begin)*(len(item)+len(a.template.proto.text))
	for _, part := range [][]byte{
		[]byte("k8s\x00"), field(1, len(typeMeta)), typeMeta, field(2, length), header, metadata,
	} {
		a.Write(part)
	}
	for i := a.begin; i < a.objects; i++ {
		a.Write(item)
		a.object(a.template.proto, i)
	}
}

// watch writes all objects, and that these are all.
func (a *answer) watch() {
	if a.proto {
		for i := range a.objects {
			a.object(a.template.event, i)
		}
		a.Write(a.template.endsFrame)
		return
	}
	f, apiVersion, kind := a.json()
	for i := range a.objects {
		io.WriteString(a, `{"type":"ADDED","object":`)
		a.object(f, i)
		io.WriteString(a, "}\n")
	}
	ends := a.template.ends
	if a.metadata {
		ends = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q,"annotations":{%q:"true"}}}`,
			kind, apiVersion, version, metav1.InitialEventsAnnotationKey)
	}
	fmt.Fprintf(a, `{"type":"BOOKMARK","object":%s}`+"\n", ends)
}

package large_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// template is an object of one resource, as JSON. The same object of another resource differs in number alone.
type template struct {
	// kind and apiVersion are of the object, and path is where its type is listed.
	kind, apiVersion, path string
	text                   []byte
}

// number stands for the number of a resource: in its name, and in the UIDs of its objects.
const number = "00000000"

// object returns the object of resource i.
func (t *template) object(i int) []byte {
	return bytes.ReplaceAll(t.text, []byte(number), []byte(fmt.Sprintf("%0*d", len(number), i)))
}

// templateOf makes a template of an object whose name has number in it. uids maps UIDs to those with number.
func templateOf(t testing.TB, scheme *runtime.Scheme, mapper meta.RESTMapper, obj client.Object, uids map[string]string) template {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		t.Fatal(err)
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	obj = obj.DeepCopyObject().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	obj.SetResourceVersion("1000")
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range uids {
		text = bytes.ReplaceAll(text, []byte(from), []byte(to))
	}
	path := "/api/" + gvk.Version
	if gvk.Group != "" {
		path = "/apis/" + gvk.GroupVersion().String()
	}
	return template{
		kind: gvk.Kind, apiVersion: gvk.GroupVersion().String(), path: path + "/" + mapping.Resource.Resource, text: text,
	}
}

// apiServer lists resources, and the objects of each, and never changes anything.
type apiServer struct {
	templates []template
	resources int

	mu     sync.Mutex
	counts map[string]int
	// others are the requests that it does not serve.
	others []string
}

// serve starts the server, and returns how to reach it.
func (s *apiServer) serve(t testing.TB) *rest.Config {
	s.counts = map[string]int{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// taken returns how often each verb was asked for, and what the server does not serve.
func (s *apiServer) taken() (counts map[string]int, others []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts, slices.Clone(s.others)
}

func (s *apiServer) count(verb string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[verb]++
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i := slices.IndexFunc(s.templates, func(t template) bool { return t.path == r.URL.Path })
	if r.Method != http.MethodGet || i < 0 {
		s.count("other")
		s.mu.Lock()
		s.others = append(s.others, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		http.Error(w, "this server only lists", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case query.Get("watch") == "":
		s.count("list")
		s.list(w, &s.templates[i], query.Get("limit"), query.Get("continue"))
	default:
		s.count("watch")
		s.watch(r.Context(), w, &s.templates[i], query.Get("sendInitialEvents") == "true")
	}
}

// list writes a page of a list. The token is the number of the first object of the next page.
func (s *apiServer) list(w http.ResponseWriter, t *template, limit, from string) {
	begin, _ := strconv.Atoi(from)
	end := s.resources
	if n, _ := strconv.Atoi(limit); n > 0 {
		end = min(end, begin+n)
	}
	next := ""
	if end < s.resources {
		next = strconv.Itoa(end)
	}
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1000","continue":%q},"items":[`,
		t.kind, t.apiVersion, next)
	for i := begin; i < end; i++ {
		if i > begin {
			w.Write([]byte{','})
		}
		w.Write(t.object(i))
	}
	w.Write([]byte("]}"))
}

// watch writes all objects if they are wanted, and then nothing until the client goes.
func (s *apiServer) watch(ctx context.Context, w http.ResponseWriter, t *template, initial bool) {
	if initial {
		for i := range s.resources {
			fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%s}\n", t.object(i))
		}
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1000",`+
			`"annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", t.kind, t.apiVersion)
	}
	w.(http.Flusher).Flush()
	<-ctx.Done()
}

// uidOf returns the UID of the object of a template, with number in it.
func uidOf(i int) string {
	return fmt.Sprintf("%s-0000-4000-8000-%012d", number, i+1)
}

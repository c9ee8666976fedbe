package componentfaults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// faultSort is a way in which one call to the API server goes wrong.
type faultSort string

const (
	diesBefore faultSort = "dies before"
	diesAfter  faultSort = "dies after"
	// failsWithout answers 503 and does nothing.
	failsWithout faultSort = "fails without effect"
	// losesAnswer does what was asked for, and reports a broken connection.
	losesAnswer faultSort = "loses the answer"
	// conflicts has another client write to the object just before the call.
	conflicts faultSort = "conflicts"
	// staleRead answers as the API server would have before the operator's last write of the type.
	staleRead faultSort = "stale read"
)

var errDead = errors.New("the process is dead")

// apiCall is a request to the API server, as far as it is about objects.
type apiCall struct {
	method string
	// path is the path of the URL.
	path             string
	group, version   string
	resource         string
	namespace, name  string
	sub              string
	dryRun, watching bool
	body             []byte
}

// parseCall returns ok only for requests about objects of a resource.
func parseCall(request *http.Request) (c apiCall, ok bool) {
	c = apiCall{method: request.Method, path: request.URL.Path}
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		c.version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		c.group, c.version, parts = parts[1], parts[2], parts[3:]
	default:
		return c, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		c.namespace, parts = parts[1], parts[2:]
	}
	c.resource = parts[0]
	if len(parts) > 1 {
		c.name = parts[1]
	}
	if len(parts) > 2 {
		c.sub = parts[2]
	}
	query := request.URL.Query()
	c.dryRun = query.Get("dryRun") != ""
	c.watching = query.Get("watch") != ""
	return c, true
}

func (c *apiCall) write() bool { return c.method != http.MethodGet && c.method != http.MethodHead }

// object identifies what the call is about, also before it has a name in the path.
func (c *apiCall) object() string {
	return strings.Trim(c.resource+"/"+c.namespace+"/"+c.name, "/")
}

func (c *apiCall) String() string {
	words := c.method + " " + c.object()
	if c.sub != "" {
		words += "/" + c.sub
	}
	if c.dryRun {
		words += " (dry run)"
	}
	return words
}

// collection is the path of all objects of the type, in the namespace if there is one.
func (c *apiCall) collection() string {
	path := "/api/" + c.version
	if c.group != "" {
		path = "/apis/" + c.group + "/" + c.version
	}
	if c.namespace != "" {
		path += "/namespaces/" + c.namespace
	}
	return path + "/" + c.resource
}

// process is one instance of the operator, as the network sees it. All its requests pass one after the other.
type process struct {
	run  *faultRun
	next http.RoundTripper
	dead bool
}

// WrappedRoundTripper lets client-go find the transport it has to close.
func (p *process) WrappedRoundTripper() http.RoundTripper { return p.next }

// RoundTrip implements [http.RoundTripper].
func (p *process) RoundTrip(request *http.Request) (*http.Response, error) {
	r := p.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.dead {
		return nil, errDead
	}
	c, ok := parseCall(request)
	if !ok || c.watching {
		return p.next.RoundTrip(request)
	}
	if !c.write() {
		return p.read(request, &c)
	}
	if c.resource == "events" {
		return p.next.RoundTrip(request)
	}
	if err := c.take(request); err != nil {
		return nil, err
	}
	return p.write(request, &c)
}

// take reads the body of a request, and the name of what is to be created.
func (c *apiCall) take(request *http.Request) error {
	if request.Body == nil {
		return nil
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	_ = request.Body.Close()
	request.Body = io.NopCloser(bytes.NewReader(body))
	c.body = body
	if c.method == http.MethodPost && c.name == "" {
		var object struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(body, &object); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		c.name = object.Metadata.Name
	}
	return nil
}

func (p *process) write(request *http.Request, c *apiCall) (*http.Response, error) {
	r := p.run
	// A trial is repeated as long as the API server takes to see the fence: only the first is a point.
	repeated := c.dryRun && r.lastDryRun
	r.lastDryRun = c.dryRun
	hit := false
	if !repeated {
		r.writes = append(r.writes, r.anonymous(c.String()))
		hit = r.point.sort != staleRead && r.point.at == len(r.writes)
	}
	if !hit {
		return p.pass(request, c)
	}
	r.fired = c.String()
	r.logf("FAULT %s", r.point.sort)
	switch r.point.sort {
	case diesBefore:
		p.dead = true
		return nil, errDead
	case diesAfter:
		answer, err := p.pass(request, c)
		p.dead = true
		return nil, drop(answer, err, errDead)
	case failsWithout:
		return refusal(request, http.StatusServiceUnavailable, "ServiceUnavailable"), nil
	case losesAnswer:
		answer, err := p.pass(request, c)
		return nil, drop(answer, err, errors.New("the connection broke"))
	case conflicts:
		if err := r.meddle(request.Context(), c); err != nil {
			r.violated("the other actor failed: %v", err)
		}
	}
	return p.pass(request, c)
}

func drop(answer *http.Response, err, instead error) error {
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	return instead
}

// pass lets a write through, and looks at what it did.
func (p *process) pass(request *http.Request, c *apiCall) (*http.Response, error) {
	r := p.run
	if err := r.beforeWrite(request.Context(), c); err != nil {
		return nil, err
	}
	answer, err := p.next.RoundTrip(request)
	if err != nil {
		r.logf("%s: %v", c, err)
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	r.afterWrite(request.Context(), c, answer.StatusCode, body)
	return answer, nil
}

func (p *process) read(request *http.Request, c *apiCall) (*http.Response, error) {
	r := p.run
	version, stale := r.beforeRead(c)
	if !stale {
		answer, err := p.next.RoundTrip(request)
		if err == nil {
			r.logf("%s: %d", c, answer.StatusCode)
		}
		return answer, err
	}
	r.fired = c.String()
	r.logf("FAULT stale read: %s", c)
	return p.readOld(request, c, version)
}

// readOld answers with what there was at a version.
func (p *process) readOld(request *http.Request, c *apiCall, version string) (*http.Response, error) {
	old := request.Clone(request.Context())
	query := old.URL.Query()
	if c.name != "" {
		old.URL = &url.URL{Scheme: request.URL.Scheme, Host: request.URL.Host, Path: c.collection()}
		query = url.Values{"fieldSelector": {"metadata.name=" + c.name}}
	}
	query.Set("resourceVersion", version)
	query.Set("resourceVersionMatch", "Exact")
	old.URL.RawQuery = query.Encode()
	old.Header.Set("Accept", "application/json")
	answer, err := p.next.RoundTrip(old)
	if err != nil || c.name == "" || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	defer func() { _ = answer.Body.Close() }()
	var list struct {
		APIVersion, Kind string
		Items            []map[string]any
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return refusal(request, http.StatusNotFound, "NotFound"), nil
	}
	item := list.Items[0]
	item["apiVersion"], item["kind"] = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
	return respond(request, http.StatusOK, item), nil
}

func refusal(request *http.Request, code int, reason string) *http.Response {
	return respond(request, code, map[string]any{
		"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{},
		"status": "Failure", "reason": reason, "message": "as the test wants it", "code": code,
	})
}

func respond(request *http.Request, code int, content any) *http.Response {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // a mistake in a test
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       request,
	}
}

// ask makes a request that no fault hits, and returns what the API server says.
func (w *faultWorld) ask(ctx context.Context, method, path string, query url.Values, contentType string, content any) (int, []byte, error) {
	var reader io.Reader
	if content != nil {
		body, err := json.Marshal(content)
		if err != nil {
			return 0, nil, err
		}
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, w.host+path+"?"+query.Encode(), reader)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	answer, err := w.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// look reads.
func (w *faultWorld) look(ctx context.Context, path string, query url.Values) (int, []byte, error) {
	return w.ask(ctx, http.MethodGet, path, query, "", nil)
}

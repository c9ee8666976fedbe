package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/proxy"
)

// operator has a page with a form, which is refused if a browser says that a page of another origin sends it. It keeps
// what it is asked.
type operator struct {
	asked []*http.Request
	*httptest.Server
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{}
	o.Server = httptest.NewServer(http.NewCrossOriginProtection().Handler(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			o.asked = append(o.asked, r)
			http.SetCookie(w, &http.Cookie{Name: "other", Value: "of the operator"})
			_, _ = fmt.Fprint(w, r.Method, " ", r.URL)
		})))
	t.Cleanup(o.Close)
	return o
}

// withToken adds the token of the user.
type withToken struct{ http.RoundTripper }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer of the user")
	return w.RoundTripper.RoundTrip(r)
}

// open returns a browser that has opened a proxy for the page, and the address of that.
func open(t *testing.T, o *operator) (browser *http.Client, at string) {
	t.Helper()
	page, err := url.Parse(o.URL + "/espalier/")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	p := proxy.New(server.Listener.Addr(), page, withToken{transport})
	handler = p
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser = &http.Client{Jar: jar, Transport: server.Client().Transport}
	if status := send(t, browser, http.MethodGet, p.Open(), nil); status != http.StatusOK {
		t.Fatalf("the page opens with %d, want %d", status, http.StatusOK)
	}
	return browser, server.URL
}

func send(t *testing.T, browser *http.Client, method, at string, header http.Header) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// What a browser sends reaches the page below its path, as if it came from a page of its own, with the token of the user
// and without the key.
func TestRequestsArePassedOn(t *testing.T) {
	o := newOperator(t)
	browser, at := open(t, o)
	form := http.Header{"Origin": {at}, "Sec-Fetch-Site": {"same-origin"}, "Authorization": {"Basic of the browser"}}
	if status := send(t, browser, http.MethodPost, at+"/plan?of=a%2Fb", form); status != http.StatusOK {
		t.Fatalf("a form of the page is answered with %d, want %d", status, http.StatusOK)
	}
	asked := o.asked[len(o.asked)-1]
	got := fmt.Sprintf("%s %s of %s, from %s, by %s, with cookies %q", asked.Method, asked.URL, asked.Host,
		asked.Header.Get("Origin"), asked.Header.Get("Authorization"), asked.Header.Get("Cookie"))
	host := strings.TrimPrefix(o.URL, "http://")
	want := fmt.Sprintf("POST /espalier/plan?of=a%%2Fb of %s, from %s, by Bearer of the user, with cookies %q",
		host, o.URL, "")
	if got != want {
		t.Errorf("the page is asked for\n%s\nwant\n%s", got, want)
	}
	for _, name := range []string{"X-Forwarded-For", "Forwarded"} {
		if value := asked.Header.Get(name); value != "" {
			t.Errorf("the page gets %s %q, want none: one on the loopback interface refuses that", name, value)
		}
	}
}

// A request of another page, by another name of the host, or without the key does not reach the operator.
func TestForeignRequestsAreRefused(t *testing.T) {
	o := newOperator(t)
	browser, at := open(t, o)
	stranger := &http.Client{Transport: browser.Transport}
	before := len(o.asked)
	for name, tc := range map[string]struct {
		by     *http.Client
		at     string
		header http.Header
		want   int
	}{
		"no key":                 {stranger, at, nil, http.StatusUnauthorized},
		"a wrong key":            {stranger, at + "/?key=guess", nil, http.StatusUnauthorized},
		"a form of another page": {browser, at, http.Header{"Origin": {"https://example.com"}}, http.StatusForbidden},
		"a form of no page":      {browser, at, http.Header{"Origin": {"null"}}, http.StatusForbidden},
		"a way out of the page":  {browser, at + "/%2e%2e/metrics", nil, http.StatusNotFound},
		"a picture on a page":    {browser, at, http.Header{"Sec-Fetch-Site": {"cross-site"}}, http.StatusForbidden},
	} {
		if status := send(t, tc.by, http.MethodGet, tc.at, tc.header); status != tc.want {
			t.Errorf("%s: the answer is %d, want %d", name, status, tc.want)
		}
	}
	if n := len(o.asked) - before; n != 0 {
		t.Errorf("%d requests have reached the operator, want none", n)
	}
}

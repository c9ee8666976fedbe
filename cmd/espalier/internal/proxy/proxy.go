// Package proxy serves the live page of an operator to one browser on this machine, with the rights of a user.
package proxy

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/espalier-dev/espalier/internal/loopback"
)

// cookie has the key of a proxy. Browsers share cookies among the ports of a host, so its name has the port.
const cookie = "espalier-page-"

// Proxy passes requests on to a page.
//
// Whoever reaches it acts as the user. So it answers only who knows its key, which is part of the address that it is
// opened at and then a cookie: another user of the machine, who reaches its port too, does not. It answers no page of
// another origin, and no other name of the host, which a foreign name server may point here.
type Proxy struct {
	key     string
	port    string
	forward http.Handler
}

// New returns a proxy that listens at an address for the page at a URL, which ends with a slash. The transport adds
// what says who the user is.
func New(address net.Addr, page *url.URL, transport http.RoundTripper) *Proxy {
	_, port, _ := net.SplitHostPort(address.String())
	p := &Proxy{key: rand.Text(), port: port}
	p.forward = &httputil.ReverseProxy{
		Transport: transport,
		// Events reach the browser at once.
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = page.Scheme, page.Host, page.Host
			r.Out.URL.Path, r.Out.URL.RawPath = page.Path+strings.TrimPrefix(r.In.URL.Path, "/"), ""
			r.Out.Header.Del("Authorization")
			// Browsers send the cookies of all servers at 127.0.0.1. The page has none.
			r.Out.Header.Del("Cookie")
			if r.In.Header.Get("Origin") != "" {
				// It was that of the proxy, and the page wants its own.
				r.Out.Header.Set("Origin", page.Scheme+"://"+page.Host)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Set-Cookie")
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "502: the operator does not answer: "+err.Error(), http.StatusBadGateway)
		},
	}
	return p
}

// Open returns the address to open in a browser.
func (p *Proxy) Open() string { return "http://127.0.0.1:" + p.port + "/?key=" + p.key }

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !loopback.IsHost(r.Host) || !isSameOrigin(r) {
		http.Error(w, "403: this is for pages of this address alone.", http.StatusForbidden)
		return
	}
	if given := r.URL.Query().Get("key"); given != "" && p.isKey(given) {
		http.SetCookie(w, &http.Cookie{
			Name: cookie + p.port, Value: p.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
		// The key does not stay in the address, which is shown, copied and kept.
		w.Header().Set("Referrer-Policy", "no-referrer")
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if known, err := r.Cookie(cookie + p.port); err != nil || !p.isKey(known.Value) {
		http.Error(w, "401: open the address that espalier page has printed.", http.StatusUnauthorized)
		return
	}
	if strings.Contains(r.URL.Path, "..") {
		http.Error(w, "404: the page has no such path.", http.StatusNotFound)
		return
	}
	p.forward.ServeHTTP(w, r)
}

func (p *Proxy) isKey(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(p.key)) == 1
}

// isSameOrigin reports whether no page of another origin has made a request.
func isSameOrigin(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	isOwn := r.Header.Get("Origin") != "" || site == "" || site == "same-origin" || site == "none"
	return isOwn && loopback.IsSameOrigin(r)
}

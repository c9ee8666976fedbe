package oci

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// validate returns an error if one of the hosts is none.
func (r *Registry) validate() error {
	for _, host := range slices.Concat([]string{r.Host}, r.TokenHosts, r.BlobHosts) {
		if parsed, err := url.Parse("https://" + host); err != nil || host == "" || parsed.Host != host {
			return fmt.Errorf("%q is no host: it is a name or an address, with a port if URLs have one", host)
		}
	}
	return nil
}

// refuse returns why a request is not sent, or nil. redirected says that the answer of another one asked for it.
func (r *Registry) refuse(method string, target *url.URL, redirected bool) error {
	others, field := r.TokenHosts, "TokenHosts"
	if redirected {
		others, field = r.BlobHosts, "BlobHosts"
	}
	switch {
	case target.Scheme != "https" && (target.Scheme != "http" || !r.PlainHTTP):
		return terminal("the registry asks to reach the host %q without HTTPS", target.Host)
	case redirected && method != http.MethodGet:
		return terminal("the registry redirects credentials to the host %q", target.Host)
	case target.Host != r.Host && !slices.Contains(others, target.Host):
		return terminal("the registry asks to reach the host %q, which is not in %s of the operator",
			target.Host, field)
	}
	return nil
}

// guard is a RoundTripper that sends only what may be sent.
type guard struct {
	*Registry
	next http.RoundTripper
}

// RoundTrip never sends credentials to another host that it is redirected to.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	redirected := request.Response != nil
	if err := g.refuse(request.Method, request.URL, redirected); err != nil {
		return nil, err
	}
	if redirected && request.URL.Host != g.Host {
		// An earlier redirect may have removed them, and the client adds them again.
		request = request.Clone(request.Context())
		request.Header.Del("Authorization")
	}
	return g.next.RoundTrip(request)
}

// transport returns one for a fetch. It checks addresses after names are resolved.
func (r *Registry) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		resolved, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(resolved.Addr(), r.Internal) {
			return terminal("the host %s or one of its others has an address that is not allowed: "+
				"for a private or loopback address, set Internal", r.Host)
		}
		return nil
	}}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: r.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
}

// never are ranges that no registry is in: this host, metadata services, and ranges that stand for others.
var never = prefixes("0.0.0.0/8", "100.100.100.200/32", "255.255.255.255/32", "fd00:ec2::/32", "::/96",
	"64:ff9b:1::/48", "2002::/16", "2001::/32")

// internal are ranges that are not public, besides those that package netip knows.
var internal = prefixes("100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "fec0::/10")

// translated are the IPv6 addresses of IPv4 addresses.
var translated = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// allowed reports whether a registry may have the address.
func allowed(address netip.Addr, isInternal bool) bool {
	address = address.Unmap().WithZone("")
	if translated.Contains(address) {
		bytes := address.As16()
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	within := func(p netip.Prefix) bool { return p.Contains(address) }
	switch {
	case !address.IsValid(), address.IsUnspecified(), address.IsMulticast(), address.IsLinkLocalUnicast():
		return false
	case address.IsLoopback(), address.IsPrivate() && !slices.ContainsFunc(never, within):
		return isInternal
	case slices.ContainsFunc(never, within):
		return false
	}
	return isInternal || !slices.ContainsFunc(internal, within)
}

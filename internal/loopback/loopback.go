// Package loopback tells requests of this machine from others.
package loopback

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// IsHost reports whether a host, which may have a port, is this machine by name or address.
func IsHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}

// IsSameOrigin reports whether the header Origin of a request, if it has one, says that no page of another origin has
// made it.
func IsSameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && strings.EqualFold(from.Host, r.Host)
}

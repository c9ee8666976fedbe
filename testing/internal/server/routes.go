package server

import (
	"net/http"
	"strings"
	"sync"

	restful "github.com/emicklei/go-restful/v3"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// routes is a router that remembers which route it has found for requests of one form. The one of the library compares
// each request with all routes, and copies those that match its path.
type routes struct {
	restful.CurlyRouter
	mu    sync.RWMutex
	found map[form]route
}

// form is what the choice of a route depends on.
type form struct {
	method, resource, subresource string
	namespaced, named             bool
	// parts is how many parts the path has.
	parts                int
	contentType, accepts string
}

type route struct {
	service *restful.WebService
	*restful.Route
}

// maxForms is more than clients have, unless they make headers up.
const maxForms = 256

// SelectRoute implements [restful.RouteSelector].
func (c *routes) SelectRoute(
	services []*restful.WebService, r *http.Request,
) (*restful.WebService, *restful.Route, error) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest {
		return c.CurlyRouter.SelectRoute(services, r)
	}
	f := form{
		method: r.Method, resource: info.Resource, subresource: info.Subresource,
		namespaced: info.Namespace != "", named: info.Name != "", parts: strings.Count(r.URL.Path, "/"),
		contentType: r.Header.Get("Content-Type"), accepts: r.Header.Get("Accept"),
	}
	c.mu.RLock()
	known, ok := c.found[f]
	c.mu.RUnlock()
	if ok {
		return known.service, known.Route, nil
	}
	service, selected, err := c.CurlyRouter.SelectRoute(services, r)
	if err != nil || selected == nil {
		return service, selected, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil || len(c.found) >= maxForms {
		c.found = map[form]route{}
	}
	c.found[f] = route{service, selected}
	return service, selected, nil
}

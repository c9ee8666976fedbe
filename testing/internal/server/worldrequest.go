package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// worldHandler serves requests in the world of their context. Requests for resources come past the filters of a server
// that do nothing in a world: its roles allow everything, its requests have no deadline, and nobody audits them.
type worldHandler struct {
	base        *storage.Storage
	infos       request.RequestInfoResolver
	credentials authenticator.Request
	// resources serves resources, whole serves all with all filters.
	resources, whole http.Handler
}

func newWorldHandler(c *customResources, credentials Credentials, infos request.RequestInfoResolver, whole http.Handler,
) *worldHandler {
	return &worldHandler{c.base, infos, credentials, filters.WithWarningRecorder(c), whole}
}

// ServeHTTP implements [http.Handler].
func (h *worldHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if query, ok := withoutDryRun(r); ok {
		// Libraries know nothing of a world's clock and identities where they skip the storage. So a dry run is a
		// request in a fork that nobody has.
		ctx = storage.With(ctx, storage.Of(ctx, h.base).DryRun())
		address := *r.URL
		address.RawQuery = query
		r = r.WithContext(ctx)
		r.URL, r.RequestURI = &address, address.RequestURI()
	}
	if r.Method == http.MethodPost {
		name := &generatedName{}
		defer name.end()
		ctx = context.WithValue(ctx, generatedKey{}, name)
	}
	info, who := h.resource(r)
	if info == nil {
		r = r.WithContext(ctx)
		r.Header = r.Header.Clone()
		h.whole.ServeHTTP(w, r)
		return
	}
	// A patch notes something for audit, and panics if nobody has it.
	ctx = request.WithUser(request.WithRequestInfo(audit.WithAuditContext(ctx), info), who.User)
	h.resources.ServeHTTP(w, r.WithContext(ctx))
}

// resource returns what a request for a resource asks for, and who makes it. It returns nil for any other request, one
// of an unknown client, and one in the name of another user.
func (h *worldHandler) resource(r *http.Request) (*request.RequestInfo, *authenticator.Response) {
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return nil, nil
		}
	}
	info, err := h.infos.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return nil, nil
	}
	who, ok, err := h.credentials.AuthenticateRequest(r)
	if err != nil || !ok {
		return nil, nil
	}
	return info, who
}

// withoutDryRun returns the query of a dry run that would be none. It returns false for any other request, and for a
// deletion, which gives nothing an identity.
func withoutDryRun(r *http.Request) (string, bool) {
	if !strings.Contains(r.URL.RawQuery, "dryRun") {
		return "", false
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return "", false
	}
	query := r.URL.Query()
	if !slices.Equal(query["dryRun"], []string{"All"}) {
		return "", false
	}
	query.Del("dryRun")
	return query.Encode(), true
}

// generatedName is the name that was generated for a request. The nil one is that of a request that creates nothing.
type generatedName struct {
	kept   *storage.Storage
	number int
	taken  bool
}

type generatedKey struct{}

func generatedIn(ctx context.Context) *generatedName {
	name, _ := ctx.Value(generatedKey{}).(*generatedName)
	return name
}

func (g *generatedName) begin(kept *storage.Storage, number int) {
	if g != nil {
		g.kept, g.number = kept, number
	}
}

// take says that an object has the name.
func (g *generatedName) take() {
	if g != nil {
		g.taken = true
	}
}

func (g *generatedName) end() {
	if g.kept != nil {
		g.kept.EndName(g.number, g.taken)
	}
}

package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// serveWorld serves a request in the world of its context. A dry run is a request in a fork that nobody has: libraries
// know nothing of a world's clock and identities where they skip the storage.
func serveWorld(handler http.Handler, base *storage.Storage, w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if query, ok := withoutDryRun(r); ok {
		ctx = storage.With(ctx, storage.Of(ctx, base).DryRun())
		address := *r.URL
		address.RawQuery = query
		r = r.WithContext(ctx)
		r.URL, r.RequestURI = &address, address.RequestURI()
	}
	if r.Method != http.MethodPost {
		handler.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	name := &generatedName{}
	defer name.end()
	handler.ServeHTTP(w, r.WithContext(context.WithValue(ctx, generatedKey{}, name)))
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

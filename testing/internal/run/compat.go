package run

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/testing/internal/apiresources"
	"github.com/espalier-dev/espalier/testing/internal/memserver"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// compat returns two servers behind controller-runtime's fake client: one for the Client, with the GivenObjects, and
// one for the APIReader, with the APIGivenObjects. What they know of identity, validation and deletion is what that
// client knows.
func (g Given) compat(journal *recording.Journal) Server {
	mapper, problems := apiresources.NewMapper(g.GivenAPIResources)
	server := memserver.New(g.Scheme, apiresources.AddServedTypes(mapper))
	apiServer := memserver.New(g.Scheme)
	b := Server{Memory: server, Problems: problems}
	b.Client, b.Fake = g.newFakeClient(server, g.GivenObjects, mapper, journal)
	b.Reader, _ = g.newFakeClient(apiServer, g.APIGivenObjects, mapper, nil)
	b.Discovery = apiresources.NewDiscovery(g.GivenAPIResources, server)
	release := sync.OnceFunc(func() {
		server.Close()
		apiServer.Close()
	})
	b.Close = func(context.Context) error {
		release()
		return nil
	}
	return b
}

// newFakeClient returns a recording client of a server that has the objects, and the fake client behind it.
func (g Given) newFakeClient(
	server *memserver.Server, objs []client.Object, mapper meta.RESTMapper, journal *recording.Journal,
) (*recording.Client, client.Client) {
	builder := fake.NewClientBuilder().WithScheme(g.Scheme).WithRESTMapper(mapper)
	for _, obj := range g.StatusSubResourceTypes {
		builder = builder.WithStatusSubresource(mustBeGiven(obj, g.Scheme))
	}
	for _, obj := range objs {
		stored := mustBeGiven(obj, g.Scheme)
		builder = builder.WithObjects(stored)
		if len(stored.GetManagedFields()) > 0 {
			builder = builder.WithReturnManagedFields()
		}
	}
	if g.Builder != nil {
		builder = g.Builder(builder)
	}
	built, behind := server.Build(builder)
	inner := duck.NewDuckAwareClientWrapper(built)
	options := recording.Options{Add: AddGiven(inner, nil), Journal: journal}
	if behind {
		options.Add = AddGiven(inner, server)
	}
	r := recording.NewClient(inner, options)
	g.addReactors(r)
	r.AddReactor("create", "*", apiresources.RefuseFenced(server))
	return r, built
}

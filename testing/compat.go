package testing

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

// newCompat returns two servers behind controller-runtime's fake client: one for the Client, with the GivenObjects, and
// one for the APIReader, with the APIGivenObjects. What they know of identity, validation and deletion is what that
// client knows.
func (c *ExpectConfig) newCompat(journal *recording.Journal) backend {
	mapper, problems := apiresources.NewMapper(c.GivenAPIResources)
	server := memserver.New(c.Scheme, apiresources.AddServedTypes(mapper))
	apiServer := memserver.New(c.Scheme)
	b := backend{server: server, problems: problems}
	b.client, b.fake = c.newFakeClient(server, c.GivenObjects, mapper, journal)
	b.reader, _ = c.newFakeClient(apiServer, c.APIGivenObjects, mapper, nil)
	b.discovery = apiresources.NewDiscovery(c.GivenAPIResources, server)
	release := sync.OnceFunc(func() {
		server.Close()
		apiServer.Close()
	})
	b.close = func(context.Context) error {
		release()
		return nil
	}
	return b
}

// newFakeClient returns a recording client of a server that has the objects, and the fake client behind it.
func (c *ExpectConfig) newFakeClient(
	server *memserver.Server, objs []client.Object, mapper meta.RESTMapper, journal *recording.Journal,
) (*recording.Client, client.Client) {
	builder := fake.NewClientBuilder().WithScheme(c.Scheme).WithRESTMapper(mapper)
	for _, obj := range c.StatusSubResourceTypes {
		builder = builder.WithStatusSubresource(mustBeGiven(obj, c.Scheme))
	}
	for _, obj := range objs {
		stored := mustBeGiven(obj, c.Scheme)
		builder = builder.WithObjects(stored)
		if len(stored.GetManagedFields()) > 0 {
			builder = builder.WithReturnManagedFields()
		}
	}
	builder = withIndexes(builder, c.GivenIndexes)
	if c.WithClientBuilder != nil {
		builder = c.WithClientBuilder(builder)
	}
	built, behind := server.Build(builder)
	inner := duck.NewDuckAwareClientWrapper(built)
	options := recording.Options{Add: addGiven(inner, nil), Journal: journal}
	if behind {
		options.Add = addGiven(inner, server)
	}
	r := recording.NewClient(inner, options)
	c.addReactors(r)
	r.AddReactor("create", "*", apiresources.RefuseFenced(server))
	return r, built
}
